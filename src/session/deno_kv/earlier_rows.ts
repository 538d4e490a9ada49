/**
 * Sessions that earlier versions of the package have stored in Deno KV.
 *
 * @module
 */
import type { Mark } from "../../core/journal.ts";
import type { EarlierRow, EarlierRows } from "../earlier_rows.ts";
import { type Head, isLive, join, readEntries } from "./commit.ts";

/** The head of a session with entries. */
interface EntriesHead extends Head {
  readonly mark: Mark;
  readonly base: number;
  readonly last: number;
  readonly until: number | null;
  readonly text: string;
}

/** The head of a whole session, whose text is in pieces. */
interface WholeHead extends Head {
  readonly version: number;
  readonly pieces: readonly { readonly name: string }[];
  readonly lease: number | null;
}

/** Returns the rows under a prefix. Those that have expired are deleted by the database. */
export function denoKvEarlierRows(kv: Deno.Kv, prefix: string): EarlierRows {
  const heads: Deno.KvKey = [prefix, "session"];
  const entriesUnder = (record: string): Deno.KvKey => [prefix, "session_entry", record];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "session_piece", record];
  /** The indexes of the ends of leases: those of heads with entries, and those of whole sessions. */
  const [ends, leases]: readonly [Deno.KvKey, Deno.KvKey] = [[prefix, "session_end"], [prefix, "lease"]];

  const see = (key: string) => kv.get<EntriesHead | WholeHead>([...heads, key]);

  async function rowOf(key: string, head: EntriesHead | WholeHead): Promise<EarlierRow> {
    const due = (end: number | null) => end === null ? null : end - Date.now();
    if ("mark" in head) {
      const { record, mark: { n }, base, last, until, text } = head;
      const entries = await readEntries(kv, key, entriesUnder(record), { first: 1, last });
      return { n, head: text, base, entries, due: due(until) };
    }
    const { record, version: n, lease, pieces } = head;
    const text = await join(kv, pieces.map(({ name }) => [...piecesUnder(record), name])) ?? "";
    return { n, head: text, base: 1, entries: [], due: due(lease) };
  }

  return {
    async exist() {
      return (await Array.fromAsync(kv.list({ prefix: heads }, { limit: 1 }))).length > 0;
    },
    async read(key) {
      for (let missed: string | null = null;;) {
        const { value, versionstamp } = await see(key);
        if (!value || !isLive(value)) return undefined;
        try {
          return await rowOf(key, value);
        } catch (error) {
          if (missed === versionstamp) throw error;
          missed = versionstamp; // another process may have moved it in between
        }
      }
    },
    async delete(key) {
      const { value, versionstamp } = await see(key);
      if (!value) return;
      const [index, end] = "mark" in value ? [ends, value.until] : [leases, value.lease];
      const operation = kv.atomic().check({ key: [...heads, key], versionstamp }).delete([...heads, key]);
      if (end !== null) operation.delete([...index, end, key]);
      await operation.commit();
      for (const under of [entriesUnder(value.record), piecesUnder(value.record)]) {
        for await (const { key } of kv.list({ prefix: under })) await kv.delete(key);
      }
    },
    async pending(limit, within) {
      const found: (readonly [end: number, key: string])[] = [];
      for (const start of [ends, leases]) {
        for await (const { key } of kv.list({ start, end: [...start, Date.now() + within + 1] }, { limit })) {
          found.push([Number(key[2]), String(key[3])]);
        }
      }
      return found.sort(([a], [b]) => a - b).slice(0, limit).map(([, key]) => key);
    },
    async list(after, limit) {
      const keys: string[] = [];
      for await (const { key: [, , id], value } of kv.list<Head>({ prefix: heads, start: [...heads, after] })) {
        if (id !== after && isLive(value)) keys.push(String(id));
        if (keys.length >= limit) break;
      }
      return keys;
    },
  };
}
