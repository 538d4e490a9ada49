import { assertEquals, assertRejects } from "@std/assert";
import { spy } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { type Session, user } from "@jizai/jizai";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { journalLaws } from "@jizai/jizai/testing";
import { added, begun } from "../support/begun_journal.ts";
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

Deno.test("sweep() of denoKvStore() deletes expired sessions, with all of their keys", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const store = denoKvStore(kv, { expireIn: 1_000 });
  for (let number = 0; number < 120; number++) await store.save({ ...sessionOf(0, "a", "b"), id: `old${number}` });
  time.tick(60_000);
  await store.save({ ...sessionOf(0, "a"), id: "new1" });
  const heads = async () => (await Array.fromAsync(kv.list({ prefix: ["jizai", "journal"] }))).length;
  assertEquals(await heads(), 121);
  assertEquals([await store.journal.sweep(100, 0), await heads()], [100, 21]);
  assertEquals([await store.journal.sweep(100, 0), await heads()], [20, 1]);
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

Deno.test("denoKvStore() deletes the pieces of a long session in groups", async () => {
  using kv = await Deno.openKv(":memory:");
  const { journal } = denoKvStore(kv);
  await journal.append("s", begun("s"));
  for (let n = 2; n <= 250; n++) await journal.append("s", added(n, [`${n}`]));
  using commits = spy(Deno.AtomicOperation.prototype, "commit");
  await journal.delete("s");
  assertEquals([commits.calls.length, await kept(kv)], [5, []]); // the head, an entry, and 250 events
});

Deno.test("denoKvStore() throws if a piece is missing, instead of searching forever", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = denoKvStore(kv);
  await store.save(sessionOf(0, "a"));
  for await (const { key } of kv.list({ prefix: ["jizai", "journal_entry"] })) await kv.delete(key);
  await assertRejects(() => store.load("s"), Error, 'Cannot read session "s": an entry is missing');
});

Deno.test("denoKvStore() appends the events of its own run in a single round trip", async () => {
  using kv = await Deno.openKv(":memory:");
  const { journal } = denoKvStore(kv);
  await journal.append("s", begun("s"));
  using gets = spy(Deno.Kv.prototype, "get");
  using commits = spy(Deno.AtomicOperation.prototype, "commit");
  for (let n = 2; n <= 10; n++) await journal.append("s", added(n, [`${n}`]));
  assertEquals([gets.calls.length, commits.calls.length], [0, 9]);
});

Deno.test("denoKvStore() continues the events of another process, and leaves no keys behind", async () => {
  using kv = await Deno.openKv(":memory:");
  const [{ journal: one }, { journal: other }] = [denoKvStore(kv), denoKvStore(kv)];
  const line = `"${"x".repeat(700_000)}"`;
  await one.append("s", begun("s"));
  assertEquals((await other.append("s", added(2, ["2"], "other")))?.stored, true);
  assertEquals(await one.append("s", added(2, ["late"], "late")), undefined);
  const from = { holder: "other", n: 2 };
  const taken = await Promise.all(
    [one, other].map((journal, index) => journal.append("s", { ...added(3, [line], `taker${index}`), from })),
  );
  assertEquals(taken.map((outcome) => outcome?.stored ?? false).toSorted(), [false, true]);
  const mark = (await one.head("s"))?.mark;
  assertEquals((await one.append("s", { ...added(4, ["4"], "last"), from: mark }))?.stored, true);
  const { lines, ...page } = await other.read("s", 1, 0) ?? { lines: [] };
  assertEquals(page, { first: 1, last: 4, over: false, session: "s", owner: undefined });
  assertEquals(lines, ["1", "2", line]);
  assertEquals((await other.read("s", 1, 3))?.lines, ["4"]);
  await other.delete("s");
  assertEquals(await kept(kv), []);
});

Deno.test("denoKvStore() ignores the pieces of a writer that failed", async () => {
  using kv = await Deno.openKv(":memory:");
  const { journal } = denoKvStore(kv);
  const line = "x".repeat(299_999); // ten pieces, with the end of the line
  const entries = [{ type: "message" as const, message: user("x".repeat(300_000)) }];
  const change = { run: 1, state: "over" as const, base: 1, waiting: 0, head: "{}", last: 1, entries };
  await journal.append("s", begun("s"));
  await journal.append("s", { ...added(2, [line]), change });
  const [record, opened] = [await journal.read("s", 1, 0), await journal.open("s")];
  for (const kind of ["journal_event", "journal_entry"]) {
    const last = await Array.fromAsync(kv.list({ prefix: ["jizai", kind] }, { limit: 1, reverse: true }));
    const at = last[0]?.key.slice(0, -2) ?? [];
    const [number = 0] = at.slice(kind === "journal_event" ? -2 : -1).map(Number); // of the first event or entry
    const places = kind === "journal_entry"
      ? [at, [...at.slice(0, -1), number + 1]]
      : [at, [...at.slice(0, -1), number + 7], [...at.slice(0, -2), number + 1, number + 7]];
    for (const place of places) {
      for (const writer of ["!", "~"]) { // sorted before and after all others
        for (const part of [10, 11]) await kv.set([...place, writer, part], "left\n");
      }
    }
  }
  assertEquals(record?.lines, ["1", line]);
  assertEquals(opened?.entries.length, 2);
  const { journal: other } = denoKvStore(kv);
  assertEquals([await other.read("s", 1, 0), await other.open("s")], [record, opened]);
});
