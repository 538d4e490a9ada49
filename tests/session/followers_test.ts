import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Journal, type JournalPage, type JournalWatcher, journalWatchers } from "../../src/core/journal.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { followers } from "../../src/session/followers.ts";
import { settled } from "../support/batch.ts";

const place = { key: "s", run: 1 };

/** A record of one run that another process writes, and the reads of it: the position of each, in order. */
class Record {
  readonly lines: string[] = [];
  ended = false;
  readonly reads: number[] = [];

  read(after: number): JournalPage {
    const { ended: over, lines: { length: last } } = this;
    return { first: after + 1, lines: this.lines.slice(after), last, over, session: "s", owner: undefined };
  }
}

/** Followers of a record. `reading` waits before each read. */
function followed(options: Partial<Journal> = {}, reading: (read: number) => Promise<void> = async () => {}) {
  const record = new Record();
  const { watch, notify } = journalWatchers();
  const ofJournal = followers({
    ...memoryJournal(),
    watch,
    ...options,
    async read(_key, _run, after) {
      record.reads.push(after);
      const page = record.read(after);
      await reading(record.reads.length);
      return page;
    },
  });
  const of = { ...ofJournal, notify: (key = "s") => notify(key) };
  const leaving = new AbortController();
  const tail = (after = 0) => of.tail(place, after, leaving.signal)[Symbol.asyncIterator]();
  const add = (...lines: string[]) => void record.lines.push(...lines);
  /** Adds lines with an append of this process. */
  const addHere = (...lines: string[]) => {
    add(...lines);
    notify("s");
  };
  const end = () => void (record.ended = true);
  return { record, of, tail, add, addHere, end, leaving };
}

/** Collects the lines of a follower, each with its number. */
function collected(pages: AsyncIterator<JournalPage>) {
  const lines: string[] = [];
  const all = (async () => {
    for (let next = await pages.next(); !next.done; next = await pages.next()) {
      const { first, lines: added } = next.value;
      added.forEach((line, index) => lines.push(`${first + index} ${line}`));
    }
    return lines;
  })();
  all.catch(() => {}); // awaited by the test
  return { lines, all };
}

Deno.test("a follower reads after a notification, and not before", async () => {
  const { record, of, tail, end } = followed();
  const { all } = collected(tail());
  await settled();
  assertEquals(record.reads, [0]);
  of.notify("other");
  await settled();
  assertEquals(record.reads, [0]);
  of.notify();
  of.notify();
  await settled();
  assertEquals(record.reads, [0, 0]);
  end();
  of.notify();
  assertEquals(await all, []);
  assertEquals(record.reads, [0, 0, 0]);
});

Deno.test("a follower reads again after a notification during a read", async () => {
  const { record, of, tail, end } = followed({}, (read) => {
    if (read === 1) end();
    if (read === 1) of.notify();
    return Promise.resolve();
  });
  assertEquals(await collected(tail()).all, []);
  assertEquals(record.reads, [0, 0]);
});

Deno.test("followers look for additions of other processes each pollEvery, and share the looks", async () => {
  using time = new FakeTime();
  const looks: number[] = [];
  const begins = Date.now();
  const { tail, add, leaving } = followed({ pollEvery: 200 }, () => {
    looks.push(Date.now() - begins);
    return Promise.resolve();
  });
  const followers = [tail(), tail(), tail()].map((pages) => collected(pages));
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 5) await time.tickAsync(5);
  };
  await advance(1_100);
  assertEquals(looks.splice(0), [0, 0, 200, 400, 600, 800, 1_000]); // those who come during a read need the next one
  add("1");
  await advance(110);
  for (const { lines } of followers) assertEquals(lines, ["1 1"]);
  add("2", "3");
  await advance(200);
  assertEquals(looks.every((at) => at % 200 === 0), true);
  leaving.abort();
  for (const { all } of followers) assertEquals(await all, ["1 1", "2 2", "3 3"]);
});

Deno.test("100 followers of a run share each read, also after an append of this process", async () => {
  const { record, of, tail, add, addHere, end } = followed();
  const all = Array.from({ length: 100 }, () => collected(tail()));
  await settled();
  record.reads.length = 0;
  for (let number = 1; number <= 200; number++) {
    add(`${number}`);
    of.notify();
    await settled();
  }
  assertEquals(record.reads.length, 200);
  for (let number = 201; number <= 400; number++) addHere(`${number}`);
  await settled();
  assertEquals(record.reads.length, 201); // the appends of one tick need one read
  const expected = Array.from({ length: 400 }, (_, index) => `${index + 1} ${index + 1}`);
  for (const { lines } of all) assertEquals(lines, expected);
  end();
  of.notify();
  for (const lines of await Promise.all(all.map(({ all }) => all))) assertEquals(lines, expected);
  assertEquals(record.reads.length, 202);
});

Deno.test("followers at several positions receive each line once, however slowly they read", async () => {
  const { record, of, tail, add, addHere, end } = followed();
  add("a", "b", "c");
  const slow = tail();
  assertEquals((await slow.next()).value?.lines, ["a", "b", "c"]);
  const late = collected(tail(2));
  await settled();
  addHere("d");
  add("e");
  of.notify();
  await settled();
  addHere("f", "g");
  await settled();
  assertEquals(late.lines, ["3 c", "4 d", "5 e", "6 f", "7 g"]);
  const reads = record.reads.length;
  const rest = collected(slow);
  await settled();
  assertEquals(rest.lines, ["4 d", "5 e", "6 f", "7 g"]);
  assertEquals(record.reads.length, reads);
  end();
  of.notify();
  assertEquals([await late.all, await rest.all].map((lines) => lines.length), [5, 4]);
});

Deno.test("a read that is slower than an addition, or than another read, loses and repeats nothing", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { of, tail, add, addHere, end } = followed({}, (read) => gates[read - 1]?.promise ?? Promise.resolve());
  add("a");
  const [one, two] = [collected(tail()), collected(tail(1))]; // each reads, and both see one line
  await settled();
  add("b");
  gates[1]?.resolve();
  await settled();
  addHere("c");
  gates[0]?.resolve();
  await settled();
  of.notify();
  await settled();
  assertEquals([one.lines, two.lines], [["1 a", "2 b", "3 c"], ["2 b", "3 c"]]);
  end();
  of.notify();
  await Promise.all([one.all, two.all]);
});

Deno.test("a read that never ends is taken over after a while, and at once if its follower leaves", async () => {
  using time = new FakeTime();
  const never = new Promise<void>(() => {});
  const { record, of, add } = followed({}, (read) => read === 3 || read === 4 ? never : Promise.resolve());
  const leaving = Array.from({ length: 5 }, () => new AbortController());
  const all = leaving.map(({ signal }) => collected(of.tail(place, 0, signal)[Symbol.asyncIterator]()));
  await time.tickAsync();
  assertEquals(record.reads.length, 2);
  add("a");
  of.notify(); // the request of the first one is dead: its read never ends
  await time.tickAsync(249);
  assertEquals(record.reads.length, 3);
  await time.tickAsync(1); // so is that of the second one
  await time.tickAsync();
  assertEquals(record.reads.length, 4);
  leaving[1]?.abort();
  await time.tickAsync();
  assertEquals(record.reads.length, 5);
  assertEquals(all.map(({ lines }) => lines.length), [0, 0, 1, 1, 1]);
  for (const controller of leaving) controller.abort();
});

Deno.test("a follower whose read fails fails alone", async () => {
  const failing = new Set([3]);
  const { record, of, tail, add, end } = followed({}, (read) => {
    if (failing.has(read)) return Promise.reject(new Error("no disk"));
    return Promise.resolve();
  });
  const all = [tail(), tail(), tail()].map(collected);
  await settled();
  assertEquals(record.reads.length, 2);
  add("a");
  of.notify();
  await settled();
  end();
  of.notify();
  const ends = await Promise.allSettled(all.map(({ all }) => all));
  assertEquals(ends.map(({ status }) => status), ["rejected", "fulfilled", "fulfilled"]);
  assertEquals(all.map(({ lines }) => lines), [[], ["1 a"], ["1 a"]]);
});

Deno.test("followers of a run receive its notifications as long as there is one, and throw their failure", async () => {
  const watched: string[] = [];
  let watcher: JournalWatcher | undefined;
  const watch = (run: string, given: JournalWatcher) => {
    watched.push(`begin ${run}`);
    watcher = given;
    return () => watched.push(`end ${run}`);
  };
  const { of, tail, add } = followed({ watch });
  const leaving = [new AbortController(), new AbortController()];
  const two = leaving.map(({ signal }) => collected(of.tail(place, 0, signal)[Symbol.asyncIterator]()));
  await settled();
  add("a");
  watcher?.notify();
  await settled();
  assertEquals(two.map(({ lines }) => lines), [["1 a"], ["1 a"]]);
  leaving[0]?.abort();
  await settled();
  assertEquals(watched, ["begin s"]);
  leaving[1]?.abort();
  await settled();
  assertEquals(watched.splice(0), ["begin s", "end s"]);
  const all = [tail(), tail()].map(collected);
  await settled();
  watcher?.fail(new Error("no connection"));
  for (const follower of all) await assertRejects(() => follower.all, Error, "no connection");
  await settled();
  assertEquals(watched, ["begin s", "end s"]);
});

Deno.test("a follower receives at once what the look of another one has found", async () => {
  using time = new FakeTime();
  const { record, of, add } = followed({ pollEvery: 1_000 });
  const leaving = new AbortController();
  const one = collected(of.tail(place, 0, leaving.signal)[Symbol.asyncIterator]());
  await time.tickAsync(500);
  const two = collected(of.tail(place, 0, leaving.signal)[Symbol.asyncIterator]());
  await time.tickAsync(900); // the second one has looked last, so its look is the next one
  add("a");
  await time.tickAsync(100);
  await time.tickAsync();
  assertEquals([one.lines, two.lines, record.reads.length], [["1 a"], ["1 a"], 3]);
  leaving.abort();
  await Promise.all([one.all, two.all]);
});

Deno.test("a follower waits if the next event is missing, and continues behind it", async () => {
  let reads = 0;
  const of = { over: false, session: "s", owner: undefined };
  let page: JournalPage = { ...of, first: 2, lines: [], last: 3 }; // event 2 and event 3 have lost a piece
  const { watch, notify } = journalWatchers();
  const { tail } = followers({
    ...memoryJournal(),
    watch,
    read(_key, _run, after) {
      if (++reads > 10) throw new Error("It reads for ever");
      return Promise.resolve(after === 0 ? { ...of, first: 1, lines: ["a"], last: 3 } : page);
    },
  });
  const { lines, all } = collected(tail(place, 0, new AbortController().signal)[Symbol.asyncIterator]());
  await settled();
  assertEquals([lines, reads], [["1 a"], 2]);
  page = { ...of, first: 4, lines: ["d"], last: 4, over: true };
  notify("s");
  assertEquals(await all, ["1 a", "4 d"]);
});

Deno.test("a follower receives no line of a record that was deleted, also if another one begins", async () => {
  const { record, of, add, addHere, tail, end } = followed();
  add("a");
  const slow = [tail(), tail()];
  for (const pages of slow) assertEquals((await pages.next()).value?.lines, ["a"]);
  const next = slow.map((pages) => pages.next());
  await settled();
  addHere("b");
  assertEquals((await Promise.all(next)).map(({ value }) => value?.lines), [["b"], ["b"]]);
  addHere("c");
  record.lines.length = 0;
  add("x");
  end();
  of.notify();
  assertEquals((await slow[0]?.next())?.done, true);
  assertEquals(await collected(tail()).all, ["1 x"]);
});

Deno.test("a follower receives no line of a record that another process has replaced", async () => {
  const { record, of, tail, add, addHere, end } = followed();
  add("a");
  const [waiting, slow] = [collected(tail()), tail()];
  assertEquals((await slow.next()).value?.lines, ["a"]);
  await settled();
  addHere("b");
  await settled();
  assertEquals(waiting.lines, ["1 a", "2 b"]);
  record.lines.length = 0;
  add("x");
  of.notify();
  await settled();
  const late = collected(tail());
  await settled();
  assertEquals(late.lines, ["1 x"]);
  end();
  of.notify();
  await Promise.all([waiting.all, late.all]);
});

Deno.test("followers who do not read hold the lines once, and others cost no more than a bound", async () => {
  const { record, of, tail, add } = followed();
  const line = (number: number) => `${number} ${"x".repeat(99_990)}`;
  for (let number = 0; number < 100; number++) add(line(number));
  const page = { read: record.read.bind(record) };
  record.read = (after) => {
    const { lines, ...rest } = page.read(after);
    return { ...rest, lines: lines.slice(0, 5).map((text) => JSON.parse(JSON.stringify(text))) }; // other copies, as a database returns
  };
  const stuck = Array.from({ length: 300 }, () => tail());
  const first = await Promise.all(stuck.map(async (pages) => (await pages.next()).value?.lines));
  assertEquals(record.reads.length, 1);
  assertEquals(first.every((lines) => lines?.length === 5), true);
  const fast = collected(of.tail(place, 0, new AbortController().signal)[Symbol.asyncIterator]());
  await settled();
  assertEquals(fast.lines.length, 100);
  assertEquals(record.reads.slice(1, 4), [5, 10, 15]);
  const reads = record.reads.length;
  const second = await stuck[0]?.next(); // the lines were dropped
  assertEquals([second?.value?.first, record.reads.slice(reads)], [6, [5]]);
});
