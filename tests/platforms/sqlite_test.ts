import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { user } from "@jizai/jizai";
import { migrate, sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import { folder } from "./folder.ts";

/** Opens the database of a folder, with the schema. */
function open({ path }: { readonly path: string }): DatabaseSync & Disposable {
  const database = new DatabaseSync(`${path}/sessions.db`, { timeout: 5_000 });
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

Deno.test("sqliteLog() yields the events that another connection has added", async () => {
  await using disk = await folder();
  using first = open(disk);
  using second = open(disk);
  const [writer, reader] = [sqliteLog(first), sqliteLog(second, { pollEvery: 5 })];
  await writer.append("r", { after: 0, lines: ["1"], ended: false });
  const pages = reader.tail("r", 0, new AbortController().signal)[Symbol.asyncIterator]();
  assertEquals((await pages.next()).value, { first: 1, lines: ["1"], last: 1, ended: false });
  const next = pages.next();
  assertEquals(await writer.append("r", { after: 1, lines: ["2"], ended: true }), true);
  assertEquals((await next).value, { first: 2, lines: ["2"], last: 2, ended: true });
  assertEquals((await pages.next()).done, true);
});

Deno.test("sqliteStore() and sqliteLog() find their entries when the file is opened again", async () => {
  await using disk = await folder();
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  {
    using database = open(disk);
    await sqliteStore(database).save(session);
    await sqliteLog(database).append("r", { after: 0, lines: ["1", "2"], ended: false });
  }
  using database = open(disk);
  assertEquals(await sqliteStore(database).load("s"), { ...session, version: 1 });
  assertEquals(await sqliteLog(database).append("r", { after: 2, lines: ["3"], ended: true }), true);
  assertEquals(await sqliteLog(database).read("r", 1), { first: 2, lines: ["2", "3"], last: 3, ended: true });
});
