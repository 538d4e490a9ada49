import { assertEquals } from "@std/assert";
import { user } from "@jizai/jizai";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { journalLaws, logLaws } from "@jizai/jizai/testing";
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

Deno.test("on disk, denoKvLog() keeps the laws of logs", async () => {
  await using disk = await folder();
  using kv = await Deno.openKv(`${disk.path}/kv`);
  await logLaws((options) => denoKvLog(kv, { ...options, prefix: crypto.randomUUID() }), { time });
});

Deno.test("on disk, data in Deno KV is there when the database is opened again", async () => {
  await using disk = await folder();
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  {
    using kv = await Deno.openKv(`${disk.path}/kv`);
    await denoKvStore(kv).save(session);
    await denoKvLog(kv).append("r", { after: 0, lines: ["1", "2"], ended: false });
  }
  using kv = await Deno.openKv(`${disk.path}/kv`);
  assertEquals(await denoKvStore(kv).load("s"), { ...session, version: 1 });
  assertEquals(await denoKvLog(kv).append("r", { after: 2, lines: ["3"], ended: true }), true);
  assertEquals(await denoKvLog(kv).read("r", 1), { first: 2, lines: ["2", "3"], last: 3, ended: true });
});
