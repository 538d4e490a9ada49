/**
 * Claims and writers of sessions in journals.
 */
import { type Message, user } from "@jizai/jizai";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import type { Append, Journal, MailEntry } from "../../src/core/journal.ts";
import type { JournalClaim } from "../../src/core/journal_writer.ts";
import { openSession } from "../../src/core/session_version.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { noCounters, type RunSnapshot } from "../../src/core/position.ts";
import { claimSession } from "../support/claims.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";

const key = "k".repeat(22);
const usage = { input: 0, output: 0 };
const end = { type: "run.finished", status: "done", text: "", usage } as const;

function run(change: Partial<RunSnapshot> = {}): RunSnapshot {
  const position = { at: "model", turn: 1 } as const;
  const none = { counters: noCounters, usage, state: [], answers: [], before: 0, events: 0 };
  return { id: `${key}-1`, startedAt: 0, position, ...none, ...change };
}

function claim(texts: readonly string[], change: Partial<JournalClaim> = {}): JournalClaim {
  return { session: { id: "s", messages: texts.map((text) => user(text)), run: run() }, begins: true, ...change };
}

function mail(id: string): MailEntry {
  return { type: "mail", id, mail: { type: "message", message: user(id) } };
}

/** Wraps a journal: `lost` returns true for an append whose acknowledgement is lost. */
function losing(journal: Journal, lost: (append: Append) => boolean): Journal {
  return {
    ...journal,
    async append(key, append) {
      const outcome = await journal.append(key, append);
      if (lost(append)) throw new Error("It was stored, perhaps");
      return outcome;
    },
  };
}

Deno.test("a claim whose acknowledgement was lost does not shut itself out", async () => {
  for (const lost of [1, 5]) {
    using time = new FakeTime();
    let [attempts, decisions] = [0, 0];
    const journal = losing(memoryJournal(), () => ++attempts <= lost);
    const claiming = claimSession({ journal, key, lease: 30_000 }, (opened) => {
      assertEquals(opened, undefined);
      decisions++;
      return claim(["Hi"]);
    });
    await advanceUntilSettled(time, claiming);
    const writer = await claiming;
    assertEquals([decisions, attempts, writer.run], [1, lost === 1 ? 2 : 5, 1]);
    assertEquals(await writer.put(() => ({ session: { id: "s", messages: [user("Hi")] }, ended: end })), true);
    const { head } = await openSession(journal, key) ?? {};
    assertEquals([head?.state, head?.due], ["over", null]);
  }
});

Deno.test("an append whose acknowledgement was lost is repeated as it is", async () => {
  using time = new FakeTime();
  const memory = memoryJournal();
  let isLost = false;
  const journal = losing(memory, () => isLost && !(isLost = false));
  const writer = await claimSession({ journal, key, lease: 30_000 }, () => claim(["Hi"]));
  isLost = true;
  assertEquals(await advanceUntilSettled(time, writer.emit(() => ["1"])), true);
  isLost = true;
  const session = { id: "s", messages: [user("Hi")] };
  assertEquals(await advanceUntilSettled(time, writer.put(() => ({ session, lines: ["2"], ended: end }))), true);
  assertEquals((await memory.read(key, 1, 0))?.lines, ["1", "2", JSON.stringify(end)]);
  assertEquals([writer.isLost, (await memory.head(key))?.mark.n], [false, 3]);
});

Deno.test("a claim decides again if the session has changed meanwhile", async () => {
  const journal = memoryJournal();
  const received: string[] = [];
  const options = { journal, key, lease: 30_000, onMail: ({ id }: MailEntry) => void received.push(id) };
  const first = await claimSession(options, () => claim(["Hi"]));
  const seen: (number | undefined)[] = [];
  const second = await claimSession(options, async (opened) => {
    seen.push(opened?.head.mark.n);
    if (seen.length === 1) await first.emit(() => ["{}"]);
    if (seen.length === 2) await journal.post(key, { run: 1, entry: mail("m") });
    return claim(["Hi", "again"]);
  });
  assertEquals([seen, received], [[1, 2], ["m"]]); // mail is received, and changes no decision
  assertEquals([await first.emit(() => ["{}"]), first.isLost, second.run], [false, true, 2]);
  assertEquals((await journal.read(key, 2, 0))?.lines, []);
  await assertRejects(() => claimSession(options, () => Promise.reject(new TypeError("busy"))), TypeError, "busy");
});

Deno.test("an end waits for the mail that has arrived, and each mail is received once", async () => {
  const journal = memoryJournal();
  const received: string[] = [];
  const onMail = ({ id }: MailEntry) => void received.push(id);
  const writer = await claimSession({ journal, key, lease: 30_000, onMail }, () => claim(["Hi"]));
  for (const id of ["a", "b", "a"]) await journal.post(key, { run: 1, entry: mail(id) });
  let reads = 0;
  const put = writer.put(() => {
    reads++;
    const messages = [user("Hi"), ...received.map((id) => user(id))];
    return { session: { id: "s", messages }, lines: [`{"type":"x"}`], ended: end };
  });
  assertEquals([await put, reads, received], [true, 2, ["a", "b"]]);
  const { session, mail: left } = await openSession(journal, key) ?? {};
  assertEquals(session?.messages, [user("Hi"), user("a"), user("b")]);
  assertEquals(left, []);
  assertEquals((await journal.read(key, 1, 0))?.lines, [`{"type":"x"}`, JSON.stringify(end)]);
});

Deno.test("mail that was not taken reaches the next process, and what was taken does not", async () => {
  const journal = memoryJournal();
  const first = await claimSession({ journal, key, lease: 30_000 }, () => claim(["Hi"]));
  await journal.post(key, { run: 1, entry: mail("taken") });
  await first.put(() => ({ session: { id: "s", messages: [user("Hi"), user("taken")], run: run() } }));
  for (const id of ["taken", "left", "left"]) await journal.post(key, { run: 1, entry: mail(id) });
  await first.release();
  assertEquals(await journal.pending(9), [key]);
  const received: string[] = [];
  const onMail = ({ id }: MailEntry) => void received.push(id);
  const second = await claimSession({ journal, key, lease: 30_000, onMail }, (opened) => {
    const { version: _, ...session } = opened!.session;
    return { session, begins: false };
  });
  assertEquals([received, second.run], [["left"], 1]);
  for (const id of ["left", "new"]) await journal.post(key, { run: 1, entry: mail(id) });
  await second.renew(); // any append tells of mail
  assertEquals(received, ["left", "new"]);
});

Deno.test("mail that a process has received and not stored reaches each process that continues the run", async () => {
  const journal = memoryJournal();
  await claimSession({ journal, key, lease: 30_000 }, () => claim(["Hi"]));
  await journal.post(key, { run: 1, entry: mail("early") });
  for (let process = 0; process < 3; process++) {
    const received: string[] = [];
    const onMail = ({ id }: MailEntry) => void received.push(id);
    await claimSession({ journal, key, lease: 30_000, onMail }, (opened) => {
      const { version: _, ...session } = opened!.session;
      return { session, begins: false };
    });
    assertEquals(received, ["early"]);
  }
});

Deno.test("a session that continues elsewhere continues the numbers of its events", async () => {
  const journal = memoryJournal();
  const session = { id: "s", messages: [user("Hi")], run: run({ events: 7 }) };
  const writer = await claimSession({ journal, key, lease: 30_000 }, () => ({ session, begins: false }));
  assertEquals(await writer.emit(() => [`{"type":"x"}`]), true);
  const { first, lines, last } = await journal.read(key, 1, 0) ?? {};
  assertEquals([first, lines, last], [8, [`{"type":"x"}`], 8]);
});

Deno.test("a writer stores its lease once a third of it has passed, and finds out after a failure what was stored", async () => {
  using time = new FakeTime();
  const dues: unknown[] = [];
  const memory = memoryJournal();
  let fails = false;
  const journal: Journal = {
    ...memory,
    append(key, append) {
      dues.push(append.due);
      return fails ? Promise.reject(new Error("down")) : memory.append(key, append);
    },
  };
  const messages: readonly Message[] = [user("Hi")];
  const writer = await claimSession({ journal, key, lease: 30_000 }, () => claim(["Hi"]));
  const put = () => writer.put(() => ({ session: { id: "s", messages, run: run() } }));
  await put();
  time.tick(10_001);
  await put();
  await writer.emit(() => ["{}"]);
  time.tick(10_001);
  await writer.emit(() => ["{}"]);
  assertEquals(dues, [30_000, undefined, 30_000, undefined, 30_000]);
  fails = true;
  await assertRejects(() => advanceUntilSettled(time, put()), Error, "down");
  fails = false;
  assertEquals([await put(), await writer.renew(), writer.isLost, dues.length], [true, true, false, 12]);
  assertEquals([(await memory.read(key, 1, 0))?.lines, writer.events], [["{}", "{}"], 2]);
});
