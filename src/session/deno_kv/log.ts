/**
 * Logs, and texts by key, in Deno KV.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { expectNames } from "../../protocol/shape.ts";
import {
  type DenoKvOptions,
  expectKv,
  forget,
  type Head,
  isLive,
  join,
  type Piece,
  pieceLength,
  replace,
  see,
  type Seen,
} from "./commit.ts";
import { followers, type Watcher } from "../followers.ts";
import { sumOf } from "../key_value/encoding.ts";
import { type Addition, type DeltaOptions, deltasEveryDefault, type Log, type LogPage } from "../log.ts";
import { collectLines, piecesOf, textOfLines } from "../pieces.ts";
import { records } from "../record/records_of.ts";

// Logs in Deno KV.

interface LogHead extends Head {
  /** The number of the last event. */
  readonly last: number;
  readonly ended: boolean;
}

/** Options of `denoKvLog()`. */
export interface DenoKvLogOptions extends DenoKvOptions, DeltaOptions {}

/**
 * Keeps logs in Deno KV. Followers of a run are notified by the database: on Deno Deploy everywhere, on one machine within one process. With `expireIn`, the
 * first events of a run that takes longer are deleted.
 *
 * ```ts
 * import { denoKvLog } from "@jizai/jizai/session/deno_kv";
 * import { assertEquals } from "@std/assert";
 *
 * using kv = await Deno.openKv(":memory:");
 * const log = denoKvLog(kv, { expireIn: 60 * 60 * 1_000 });
 * await log.append("r1", { after: 0, lines: [`{"type":"a"}`, `{"type":"b"}`], ended: false });
 * assertEquals(await log.read("r1", 1), { first: 2, lines: [`{"type":"b"}`], last: 2, ended: false });
 * ```
 */
export function denoKvLog(kv: Deno.Kv, options: DenoKvLogOptions = {}): Log {
  expectNames("Cannot create denoKvLog()", options, ["prefix", "expireIn", "deltasEvery"]);
  const { prefix = "jizai", expireIn = Infinity, deltasEvery = deltasEveryDefault } = options;
  expectKv(kv);
  const headOf = (run: string): Deno.KvKey => [prefix, "log", run];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "log_piece", record];
  /** The heads of the runs that this process writes, so that an addition is a single round trip. */
  const written = new Map<string, Seen<LogHead>>();
  const following = followers({ read, watch });

  /** Appends to a record whose head is `seen`. */
  async function add(run: string, seen: Seen<LogHead>, { after, lines, ended }: Addition): Promise<boolean> {
    const { record, last } = seen.head ?? { record: crypto.randomUUID(), last: after };
    if (last !== after) return false;
    const writer = crypto.randomUUID(); // concurrent writers write different pieces
    const pieces = piecesOf(textOfLines(lines), pieceLength)
      .map((text, part): Piece => [[...piecesUnder(record), after + 1, writer, part], text]);
    const head = { record, last: last + lines.length, ended, expires: Date.now() + expireIn };
    const done = await replace(kv, { key: headOf(run), seen, head, pieces, dropped: [], expireIn });
    if (done && !ended) written.set(run, done);
    else written.delete(run);
    return done !== undefined;
  }

  async function read(run: string, after: number): Promise<LogPage | undefined> {
    const { head } = await see<LogHead>(kv, headOf(run));
    if (!head) return undefined;
    const { record, last, ended } = head;
    if (last <= after) return { first: after + 1, lines: [], last, ended };
    const collector = collectLines(after);
    let writer: Deno.KvKeyPart | undefined;
    for await (const { key, value } of kv.list<string>(await rangeOf(record, after, last))) {
      const [first, by, part] = key.slice(3);
      if (part === 0) writer = by;
      if (by === writer && !collector.add({ first: Number(first), part: Number(part), text: value })) break;
    }
    return { ...collector.lines(), last, ended };
  }

  /** Returns the range of the pieces with the events after `after`: from the last piece that begins before them. */
  async function rangeOf(record: string, after: number, last: number): Promise<Deno.KvListSelector> {
    const all = piecesUnder(record);
    const end = [...all, last + 1];
    const before = kv.list({ start: all, end: [...all, after + 2] }, { reverse: true, limit: 1 });
    for await (const { key } of before) return { start: key.slice(0, 4), end };
    return { start: all, end };
  }

  /** Watches the head of a run. The first notification comes at once. */
  function watch(run: string, { notify, fail }: Watcher): Promise<() => unknown> {
    const changes = kv.watch<[LogHead]>([headOf(run)]).getReader();
    async function pass(): Promise<void> {
      for (let change = await changes.read(); !change.done; change = await changes.read()) {
        const [{ value }] = change.value;
        notify(value ?? undefined);
      }
    }
    pass().catch(fail);
    return Promise.resolve(() => changes.cancel());
  }

  return {
    records,
    deltasEvery,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    async append(run, addition) {
      const known = written.get(run);
      const done = (known?.head && isLive(known.head) && await add(run, known, addition)) ||
        await add(run, await see(kv, headOf(run)), addition);
      if (done) following.add(run, addition);
      return done;
    },
    read,
    tail: following.tail,
    async delete(run) {
      written.delete(run);
      await forget(kv, headOf(run), piecesUnder);
      following.remove(run);
    },
  };
}

// Texts by key in Deno KV.

interface ValueHead extends Head {
  /** The number of pieces of the text; 0 if the text is `text`. */
  readonly pieces: number;
  readonly text: string;
}

/**
 * Keeps texts by key in Deno KV.
 *
 * ```ts
 * import { denoKvKeyValue } from "@jizai/jizai/session/deno_kv";
 * import { assertEquals } from "@std/assert";
 *
 * using kv = await Deno.openKv(":memory:");
 * assertEquals(await denoKvKeyValue(kv).increment("visits"), 1);
 * ```
 */
export function denoKvKeyValue(kv: Deno.Kv, { prefix = "jizai" }: Pick<DenoKvOptions, "prefix"> = {}): KeyValue {
  expectKv(kv);
  const headOf = (key: string): Deno.KvKey => [prefix, "value", key];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "value_piece", record];

  function keysOf({ record, pieces }: ValueHead): Deno.KvKey[] {
    return Array.from({ length: pieces }, (_, index) => [...piecesUnder(record), index]);
  }

  /** Returns the text of a head. Returns nothing if one of its pieces was deleted meanwhile. */
  async function textOf(head: ValueHead): Promise<string | undefined> {
    return head.pieces === 0 ? head.text : await join(kv, keysOf(head));
  }

  /** Replaces the text that was seen. Returns false if another writer was faster. */
  async function put(key: string, seen: Seen<ValueHead>, text: string, expires: number): Promise<boolean> {
    const record = crypto.randomUUID();
    const texts = text.length > pieceLength ? piecesOf(text, pieceLength) : [];
    const head = { record, expires, pieces: texts.length, text: texts.length > 0 ? "" : text };
    const done = await replace<ValueHead>(kv, {
      key: headOf(key),
      seen,
      head,
      pieces: texts.map((piece, index): Piece => [[...piecesUnder(record), index], piece]),
      dropped: seen.head ? keysOf(seen.head) : [],
      expireIn: expires - Date.now(),
    });
    return done !== undefined;
  }

  return {
    async get(key) {
      for (let missed: string | null = null;;) {
        const { head, versionstamp } = await see<ValueHead>(kv, headOf(key));
        const text = head && await textOf(head);
        if (!head || text !== undefined) return text;
        if (missed === versionstamp) throw new Error(`Cannot read "${key}": a piece of its text is missing`);
        missed = versionstamp; // the text was replaced in between
      }
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      while (!await put(key, await see(kv, headOf(key)), value, Date.now() + expireIn));
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      for (;;) {
        const seen = await see<ValueHead>(kv, headOf(key));
        const sum = sumOf(key, seen.head && await textOf(seen.head), by);
        if (await put(key, seen, String(sum), seen.head?.expires ?? Date.now() + expireIn)) return sum;
      }
    },
    delete: (key) => forget(kv, headOf(key), piecesUnder),
  };
}
