import { assertEquals, assertRejects } from "@std/assert";
import { spy } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { type Session, user } from "@jizai/jizai";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { journalLaws, logLaws } from "@jizai/jizai/testing";
import { checkLeasedExpiry, expireIn } from "../support/leased_expiry.ts";

/** A session with a text per letter, each 30 KB in a piece of its own. */
function sessionOf(version: number, ...letters: readonly string[]): Session {
  return { id: "s", version, messages: [user(letters.map((letter) => letter.repeat(30_000)).join(""))] };
}

/** Returns the last parts of all keys, and the time of their last write. */
async function kept(kv: Deno.Kv): Promise<readonly string[]> {
  const entries = await Array.fromAsync(kv.list({ prefix: [] }));
  return entries.map(({ key, versionstamp }) => `${String(key.at(-1))} ${versionstamp}`);
}

Deno.test("denoKvStore() keeps the laws of journals", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => {
    const prefix = crypto.randomUUID();
    return [1, 2, 3].map(() => denoKvStore(kv, { ...options, prefix }).journal);
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("denoKvLog() keeps the laws of logs", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => denoKvLog(kv, { ...options, prefix: crypto.randomUUID() });
  await logLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("denoKvStore() writes only what is new", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = denoKvStore(kv);
  const { messages } = sessionOf(0, "a", "b", "c");
  await store.save({ id: "s", version: 0, messages });
  const before = await kept(kv);
  await store.save({ id: "s", version: 1, messages: [...messages, user("d")] });
  const after = await kept(kv);
  assertEquals([before.length, after.length], [6, 7]); // the head, its index and the pieces
  assertEquals(after.filter((each) => before.includes(each)).length, 5);
});

Deno.test("denoKvStore() keeps a session and its pieces while its run renews the lease, and deletes it after that", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  /** Checks that the head has all of its pieces. */
  const checkPieces = async () => {
    for await (const { value: { record } } of kv.list<{ record: string }>({ prefix: ["jizai", "journal"] })) {
      const pieces = await Array.fromAsync(kv.list({ prefix: ["jizai", "journal_entry", record] }));
      assertEquals(pieces.length, 4);
    }
  };
  await checkLeasedExpiry(denoKvStore(kv, { expireIn }), time, checkPieces);
});

Deno.test("denoKvStore() deletes expired sessions, with all of their keys, when it writes", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const store = denoKvStore(kv, { expireIn: 1_000 });
  for (let number = 0; number < 120; number++) await store.save({ ...sessionOf(0, "a", "b"), id: `old${number}` });
  time.tick(60_000);
  await store.save({ ...sessionOf(0, "a"), id: "new1" });
  assertEquals((await Array.fromAsync(kv.list({ prefix: ["jizai", "journal"] }))).length, 21); // 100 are deleted at once
  time.tick(60_000);
  await store.save({ ...sessionOf(0, "a"), id: "new2" });
  const left = await Array.fromAsync(kv.list({ prefix: [] }), ({ key }) => key[1]);
  assertEquals([...left].sort(), ["journal", "journal_entry", "journal_entry", "journal_expiry", "journal_of"]);
});

Deno.test("denoKvStore() leaves no keys behind", async () => {
  using kv = await Deno.openKv(":memory:");
  const [store, other] = [denoKvStore(kv), denoKvStore(kv)];
  const letters = [..."abcdefghijklmnopqrstuvwxyz"];
  const saves = await Promise.all([store.save(sessionOf(0, ...letters)), other.save(sessionOf(0, ...letters, "!"))]);
  assertEquals(saves.filter((version) => version === 1).length, 1);
  const length = (await kept(kv)).length;
  assertEquals([29, 30].includes(length), true); // the head, its index, and the pieces of one of the sessions
  await other.delete("s");
  assertEquals(await kept(kv), []);
});

Deno.test("denoKvStore() throws if a piece is missing, instead of searching forever", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = denoKvStore(kv);
  await store.save(sessionOf(0, "a"));
  for await (const { key } of kv.list({ prefix: ["jizai", "journal_entry"] })) await kv.delete(key);
  await assertRejects(() => store.load("s"), Error, 'Cannot read session "s": an entry is missing');
});

Deno.test("denoKvLog() appends to its own run in a single round trip", async () => {
  using kv = await Deno.openKv(":memory:");
  using gets = spy(Deno.Kv.prototype, "get");
  using commits = spy(Deno.AtomicOperation.prototype, "commit");
  const log = denoKvLog(kv);
  for (let after = 0; after < 10; after++) await log.append("r", { after, lines: [`${after}`], ended: false });
  assertEquals([gets.calls.length, commits.calls.length], [1, 10]);
});

Deno.test("denoKvLog() continues a log of another process, and leaves no keys behind", async () => {
  using kv = await Deno.openKv(":memory:");
  const [one, other] = [denoKvLog(kv), denoKvLog(kv)];
  const line = `"${"x".repeat(700_000)}"`;
  assertEquals(await one.append("r", { after: 0, lines: ["1"], ended: false }), true);
  assertEquals(await other.append("r", { after: 1, lines: ["2"], ended: false }), true);
  assertEquals(await one.append("r", { after: 1, lines: ["late"], ended: false }), false);
  const taken = await Promise.all(
    [one, other].map((log) => log.append("r", { after: 2, lines: [line], ended: false })),
  );
  assertEquals(taken.toSorted(), [false, true]);
  assertEquals(await one.append("r", { after: 3, lines: ["4"], ended: true }), true);
  assertEquals(await other.read("r", 0), { first: 1, lines: ["1", "2", line], last: 4, ended: true });
  assertEquals(await other.read("r", 3), { first: 4, lines: ["4"], last: 4, ended: true });
  await other.delete("r");
  assertEquals(await kept(kv), []);
});

Deno.test("denoKvLog() ignores the pieces of a writer that failed", async () => {
  using kv = await Deno.openKv(":memory:");
  const log = denoKvLog(kv);
  const line = "x".repeat(299_999); // ten pieces, with the end of the line
  await log.append("r", { after: 0, lines: [line], ended: false });
  await log.append("r", { after: 1, lines: ["2"], ended: true });
  const [first] = await Array.fromAsync(kv.list({ prefix: ["jizai", "log_piece"] }, { limit: 1 }));
  const at = first?.key.slice(0, 4) ?? [];
  for (const writer of ["!", "~"]) { // sorted before and after all others
    for (const part of [10, 11]) await kv.set([...at, writer, part], "left\n");
  }
  assertEquals(await log.read("r", 0), { first: 1, lines: [line, "2"], last: 2, ended: true });
});
