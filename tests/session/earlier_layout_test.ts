/**
 * Sessions as versions of the package before heads and entries stored them: they are read, moved by their first save, and kept from processes of these versions.
 */
import { agent, memory, serve, type Session, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";
import { recordingStore } from "../support/recording_store.ts";
import { eventsOf, post } from "../support/requests.ts";

/** A database with the layout before. */
interface Earlier {
  readonly store: Store;
  /** Stores a session as an earlier version did. */
  put(session: Session): Promise<void>;
  /** Reads a session as an earlier version does. Rejects or returns undefined if it is kept from that version. */
  load(id: string): Promise<Session | undefined>;
  /** Saves a session as an earlier version does. Returns false if it cannot. */
  save(session: Session): Promise<boolean>;
  /** Returns the ids of ended leases that an earlier version finds. */
  pending(): Promise<readonly string[]>;
}

function textOf({ messages, version: _, ...rest }: Session): string {
  return JSON.stringify({ messages, ...rest });
}

/** Returns an SQLite database that version 0.1.0 has created. */
function sqlite(): Earlier {
  const database = new DatabaseSync(":memory:");
  database.exec(`CREATE TABLE jizai_session (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER, lease INTEGER) WITHOUT ROWID`);
  database.exec(`CREATE TABLE jizai_session_piece (
    id TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, part)) WITHOUT ROWID`);
  migrate(database);
  const run = (sql: string, ...values: (string | number | null)[]) => database.prepare(sql).all(...values);
  const write = (session: Session, version: number) => {
    run(
      "INSERT OR REPLACE INTO jizai_session (id, version, expires, lease) VALUES (?, ?, ?, ?)",
      session.id,
      version,
      null,
      session.lease?.until ?? null,
    );
    const [head, tail] = [textOf(session).slice(0, 50), textOf(session).slice(50)];
    for (const [part, text] of [head, tail].entries()) {
      run("INSERT OR REPLACE INTO jizai_session_piece VALUES (?, ?, ?)", session.id, part, text);
    }
  };
  return {
    store: sqliteStore(database),
    put: (session) => Promise.resolve(write(session, session.version)),
    load(id) {
      const rows = run(
        "SELECT version, text FROM jizai_session JOIN jizai_session_piece USING (id) WHERE id = ? ORDER BY part",
        id,
      );
      const [row] = rows;
      return Promise.resolve(
        row && { ...JSON.parse(rows.map(({ text }) => text).join("")), version: Number(row.version) },
      );
    },
    save(session) {
      const [row] = run("SELECT version FROM jizai_session WHERE id = ?", session.id);
      if (Number(row?.version ?? 0) !== session.version) return Promise.resolve(false);
      write(session, session.version + 1);
      return Promise.resolve(true);
    },
    pending: () =>
      Promise.resolve(
        run("SELECT id FROM jizai_session WHERE lease <= ? ORDER BY lease", 2 ** 50).map(({ id }) => String(id)),
      ),
  };
}

/** Returns a database of Deno KV that version 0.1.0 has written to. */
async function denoKv(): Promise<Earlier & Disposable> {
  interface Head {
    readonly record: string;
    readonly expires: number;
    readonly version: number;
    readonly pieces: readonly { readonly name: string }[];
    readonly lease: number | null;
  }
  const kv = await Deno.openKv(":memory:");
  const write = async (session: Session, version: number) => {
    const head: Head = {
      record: "r",
      expires: Infinity,
      version,
      pieces: [{ name: "p" }],
      lease: session.lease?.until ?? null,
    };
    await kv.set(["jizai", "session_piece", "r", "p"], textOf(session));
    await kv.set(["jizai", "session", session.id], head);
    if (head.lease !== null) await kv.set(["jizai", "lease", head.lease, session.id], Infinity);
  };
  return {
    store: denoKvStore(kv),
    put: (session) => write(session, session.version),
    async load(id) {
      const { value } = await kv.get<Head>(["jizai", "session", id]);
      if (!value) return undefined;
      const keys = value.pieces.map(({ name }) => ["jizai", "session_piece", value.record, name]);
      const texts = await kv.getMany<string[]>(keys);
      return { ...JSON.parse(texts.map(({ value }) => value).join("")), version: value.version };
    },
    async save(session) {
      const { value } = await kv.get<Head>(["jizai", "session", session.id]);
      const { version = 0, pieces = [] } = value ?? {};
      if (version !== session.version) return false;
      pieces.filter(() => true); // it lists the pieces to drop
      await write(session, version + 1);
      return true;
    },
    async pending() {
      return (await Array.fromAsync(kv.list({ prefix: ["jizai", "lease"] }))).map(({ key }) => String(key[3]));
    },
    [Symbol.dispose]: () => kv.close(),
  };
}

const pay = tool({
  name: "pay",
  description: "Pays",
  input: z.object({ amount: z.number() }),
  ask: true,
  execute: ({ amount }) => `Paid ${amount}`,
});

const paying = () => agent({ model: scripted({ calls: [["pay", { amount: 5 }]] }, "It is paid."), tools: [pay] });

/** Returns a session whose run waits for a person. */
async function pausedSession(id: string): Promise<Session> {
  const store = memory();
  await paying().run({ prompt: "Pay 5", session: id, store }).result;
  const session = await store.load(id);
  assert(session?.run?.exit);
  return structuredClone(session);
}

/** Returns a session whose run was lost before the model answered. */
async function lostSession(id: string): Promise<Session> {
  const { store, saved } = recordingStore();
  await agent({ model: scripted("Hello!") }).run({ prompt: "Hi", session: id, store: durable(store) }).result;
  const session = saved.find(({ run }) => run?.position.at === "model");
  assert(session);
  return { ...session, lease: { until: 1 } };
}

for (const open of [() => Promise.resolve(Object.assign(sqlite(), { [Symbol.dispose]() {} })), denoKv]) {
  const name = open === denoKv ? "Deno KV" : "SQLite";

  Deno.test(`${name}: a session of version 0.1.0 is read, and continues`, async () => {
    using earlier = await open();
    const session = {
      id: "s",
      version: 3,
      messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "Old" }] }],
    };
    await earlier.put(session);
    assertEquals(await earlier.store.load("s"), session);
    assertEquals(await earlier.store.list(), ["s"]);
    const { messages } = await agent({ model: scripted("New.") }).run({
      prompt: "Hi",
      session: "s",
      store: earlier.store,
    }).result;
    assertEquals(lines(messages), ["user Old", "user Hi", "assistant New."]);
    const moved = await earlier.store.load("s");
    assertEquals([lines(moved?.messages ?? []), (moved?.version ?? 0) > 3], [lines(messages), true]);
    assertEquals(lines((await earlier.store.history("s"))?.messages ?? []), lines(messages));
  });

  Deno.test(`${name}: a run that paused in version 0.1.0 is answered`, async () => {
    using earlier = await open();
    await earlier.put(await pausedSession("s"));
    const answers = [{ callId: "call_1", type: "approve" as const }];
    const resumed = agent({ model: scripted("It is paid."), tools: [pay] });
    const { text, messages } = await resumed.resume({ session: "s", store: earlier.store, answers }).result;
    assertEquals(text, "It is paid.");
    assertEquals(lines(messages).slice(0, 3), ["user Pay 5", "call pay", "ok Paid 5"]);
  });

  Deno.test(`${name}: a run that version 0.1.0 has lost is recovered`, async () => {
    using earlier = await open();
    await earlier.put(await lostSession("s"));
    const app = serve(agent({ model: scripted("Recovered.") }), { store: earlier.store });
    const { runs, over } = await app.recover();
    await over;
    assertEquals(runs.length, 1);
    assertEquals(lines((await earlier.store.load("s"))?.messages ?? []), ["user Hi", "assistant Recovered."]);
  });

  Deno.test(`${name}: a process of version 0.1.0 neither finds nor writes a session that was moved`, async () => {
    using earlier = await open();
    for (
      const session of [
        await pausedSession("paused"),
        { id: "idle", version: 2, messages: [] },
        await lostSession("lost"),
      ]
    ) {
      await earlier.put(session);
      const before = await earlier.load(session.id);
      const app = serve(agent({ model: scripted("Moved.", "Again.") }), { store: earlier.store, busy: "replace" });
      await eventsOf(post(app, "/runs", { prompt: "Go", session: session.id }));
      const moved = await earlier.store.load(session.id);
      assert(moved);
      assertEquals(await earlier.load(session.id).catch(() => undefined), undefined);
      for (const version of [0, before?.version ?? 0, moved.version]) {
        const late = { ...session, version, messages: [] };
        // what an earlier version saves is what it has loaded, or a new session
        const isSaved = version === moved.version ? false : await earlier.save(late).catch(() => false);
        assertEquals([session.id, version, isSaved], [session.id, version, false]);
      }
      assertEquals(await earlier.store.load(session.id), moved);
    }
    assertEquals(await earlier.pending(), []);
  });
}

Deno.test("a session in a newer format is left alone, with an error that says so", async () => {
  const store = durable(memory());
  const to = { holder: "newer", n: 1 };
  const head = JSON.stringify({ format: 99, id: "s", what: "is new" });
  await store.append("s", {
    from: undefined,
    to,
    head,
    entries: [],
    first: 1,
    base: 1,
    until: null,
    owner: undefined,
    run: undefined,
  });
  const newer =
    'Cannot read session "s": a newer version of the package has written it, in format 99; expected 1 or lower';
  await assertRejects(() => store.load("s"), Error, newer);
  await assertRejects(() => store.save({ id: "s", version: 1, messages: [] }), Error, newer);
  const { status, error } = await agent({ model: scripted("Hi") }).run({ prompt: "Hi", session: "s", store }).result;
  assertEquals([status, error instanceof Error && error.message], ["failed", newer]);
  assertEquals((await store.head("s"))?.head, head);
});
