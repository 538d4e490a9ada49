import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { agent, serve, tool, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { SlowStoreError } from "@jizai/jizai/session/durable";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { followers } from "../../src/session/followers.ts";
import { added, begun, ended } from "../support/begun_journal.ts";
import { first, framesOf, post } from "../support/requests.ts";
import { folder } from "./folder.ts";

/** Opens the database of a folder, with the schema. An operation waits `timeout` milliseconds for another connection. */
function open({ path }: { readonly path: string }, timeout = 5_000): DatabaseSync & Disposable {
  const database = new DatabaseSync(`${path}/sessions.db`, { timeout });
  migrate(database);
  return Object.assign(database, { [Symbol.dispose]: () => database.close() });
}

Deno.test("two connections to a file: of two sqliteStore() writers one wins, and each reads what the other saved", async () => {
  await using disk = await folder();
  using first = open(disk);
  using second = open(disk);
  const stores = [sqliteStore(first), sqliteStore(second)];
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  const versions = await Promise.all(stores.map((store) => store.save(session)));
  assertEquals(versions, [1, undefined]);
  for (const store of stores) assertEquals(await store.load("s"), { ...session, version: 1 });
});

Deno.test("followers of sqliteStore() receive the events that another connection has added", async () => {
  await using disk = await folder();
  using first = open(disk);
  using second = open(disk);
  const [writer, reader] = [sqliteStore(first).journal, sqliteStore(second, { pollEvery: 5 }).journal];
  await writer.append("r", begun("r"));
  const { signal } = new AbortController();
  const pages = followers(reader).tail({ key: "r", run: 1 }, 0, signal)[Symbol.asyncIterator]();
  const end = { over: false, session: "r", owner: undefined };
  assertEquals((await pages.next()).value, { ...end, first: 1, lines: ["1"], last: 1 });
  const next = pages.next();
  assertEquals(await writer.append("r", ended(2, ["2"])), { stored: true, last: 1 });
  assertEquals((await next).value, { ...end, first: 2, lines: ["2"], last: 2, over: true });
  assertEquals((await pages.next()).done, true);
});

Deno.test("sqliteStore() finds sessions and the events of runs when the file is opened again", async () => {
  await using disk = await folder();
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  {
    using database = open(disk);
    await sqliteStore(database).save(session);
    await sqliteStore(database).journal.append("r", begun("r"));
  }
  using database = open(disk);
  assertEquals(await sqliteStore(database).load("s"), { ...session, version: 1 });
  const { journal } = sqliteStore(database);
  assertEquals((await journal.append("r", added(2, ["2", "3"])))?.stored, true);
  const page = { first: 1, lines: ["1", "2", "3"], last: 3, over: false, session: "r", owner: undefined };
  assertEquals(await journal.read("r", 1, 0), page);
});

/** Runs an agent whose tool locks the file. `unlock` receives the text of the stream, and resolves when the lock ends. */
async function runWithLock(unlock: (stream: Promise<string>) => Promise<unknown>) {
  await using disk = await folder();
  using database = open(disk, 0);
  using other = open(disk);
  const store = sqliteStore(database);
  const locked = Promise.withResolvers<void>();
  const lock = tool({
    name: "lock",
    description: "Locks the file",
    input: z.object({}),
    execute() {
      other.exec("BEGIN EXCLUSIVE");
      locked.resolve();
      return "Locked.";
    },
  });
  const model = scripted({ calls: [{ id: "c1", name: "lock", input: {} }] }, "Done.");
  const errors: unknown[] = [];
  const app = serve(agent({ model, tools: [lock] }), {
    store,
    lease: 60_000,
    onError(error) {
      if (!(error instanceof SlowStoreError)) errors.push(error instanceof Error && error.message); // a locked file is slow
    },
  });
  const stream = (await post(app, "/runs", { prompt: "Hi" })).text();
  await locked.promise;
  await unlock(stream);
  other.exec("COMMIT");
  const events = framesOf(await stream);
  await app.settled();
  return { events, errors, session: await store.load(first("run.started", events).session) };
}

Deno.test("a run continues after another connection has held the file locked for four seconds", async () => {
  const unlock = () => new Promise((resolve) => setTimeout(resolve, 4_000));
  const { events, errors, session } = await runWithLock(unlock);
  assertEquals([errors, events.at(-1)?.type], [[], "run.finished"]);
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  assertEquals(session?.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
  assertEquals(session?.last?.event.type, "run.finished");
});

Deno.test("a run whose file stays locked ends its stream, and reports the lock", async () => {
  const { events, errors } = await runWithLock((stream) => stream);
  const ends = events.map(({ type }) => type).filter((type) => type.startsWith("run."));
  assertEquals([ends, new Set(errors)], [["run.started"], new Set(["database is locked"])]);
});
