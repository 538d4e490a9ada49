import { assertEquals } from "@std/assert";
import { user } from "@jizai/jizai";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { journalLaws } from "@jizai/jizai/testing";
import { added, begun } from "../support/begun_journal.ts";
import { folder } from "./folder.ts";

/** Milliseconds that a law may take on a busy disk. */
const time = 60_000;

Deno.test("on disk, denoKvStore() keeps the laws of journals", async () => {
  await using disk = await folder();
  using kv = await Deno.openKv(`${disk.path}/kv`);
  const make = (options: { expireIn?: number }) => {
    const prefix = crypto.randomUUID();
    return [1, 2].map(() => denoKvStore(kv, { ...options, prefix }).journal);
  };
  await journalLaws(make, { time });
});

Deno.test("on disk, data in Deno KV is there when the database is opened again", async () => {
  await using disk = await folder();
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  {
    using kv = await Deno.openKv(`${disk.path}/kv`);
    await denoKvStore(kv).save(session);
    await denoKvStore(kv).journal.append("r", begun("r"));
  }
  using kv = await Deno.openKv(`${disk.path}/kv`);
  assertEquals(await denoKvStore(kv).load("s"), { ...session, version: 1 });
  const { journal } = denoKvStore(kv);
  assertEquals((await journal.append("r", added(2, ["2", "3"])))?.stored, true);
  const page = { first: 1, lines: ["1", "2", "3"], last: 3, over: false, session: "r", owner: undefined };
  assertEquals(await journal.read("r", 1, 0), page);
});
