/**
 * The laws of logs: what is appended, what is read, and how a log is followed.
 *
 * @module
 */
import type { Log, LogPage } from "../../session/log.ts";
import { checkLaws, expireIn, type ExpiryLaws, type LawOptions, type Laws, long, type Make, oddText } from "./laws.ts";

// Readers of a log, and signals whose listeners are counted.

/** A reader that follows a run. */
interface LogReader {
  /** Resolves when the reader has received the event of this number, or when there are no more events. */
  upTo(number: number): Promise<void>;
  /** Resolves at the end with every event and its number. */
  readonly all: Promise<readonly string[]>;
}

/** Reads pages to the end. */
function readLog(pages: AsyncIterable<LogPage>): LogReader {
  const seen: string[] = [];
  let last = 0;
  let turned = Promise.withResolvers<void>();

  async function read(): Promise<readonly string[]> {
    try {
      for await (const { first, lines } of pages) {
        seen.push(...lines.map((line, index) => `${first + index} ${line}`));
        last = first + lines.length - 1;
        turned.resolve();
        turned = Promise.withResolvers();
      }
    } finally {
      last = Infinity;
      turned.resolve();
    }
    return seen;
  }

  const all = read();
  all.catch(() => {}); // callers that await it receive the error
  return {
    all,
    async upTo(number) {
      while (last < number) await turned.promise;
    },
  };
}

/** A signal whose listeners are counted. */
interface CountedSignal {
  readonly signal: AbortSignal;
  /** Returns the number of listeners. */
  listeners(): number;
  abort(): void;
}

/** Creates a signal whose listeners are counted. */
function countedSignal(): CountedSignal {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: AddEventListenerOptions | boolean,
  ) => {
    listeners.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: EventListenerOptions | boolean,
  ) => {
    listeners.delete(listener);
    remove(type, listener, options);
  };
  return { signal, listeners: () => listeners.size, abort: () => controller.abort() };
}

// The laws of following a log.

const tailLaws: Laws<Log> = {
  async "follows a run from a given event to its end"(log, expect, signal) {
    await log.append("r", { after: 0, lines: [], ended: false });
    const whole = readLog(log.tail("r", 0, signal));
    await add(log, 0, "a", "b", "c");
    const part = readLog(log.tail("r", 1, signal));
    const ahead = readLog(log.tail("r", 5, signal));
    await Promise.all([whole.upTo(3), part.upTo(3)]);
    await log.append("other", { after: 0, lines: ["x"], ended: true });
    await add(log, 3, "d");
    await Promise.all([whole.upTo(4), part.upTo(4)]);
    await log.append("r", { after: 4, lines: ["e", "f"], ended: true });
    expect("tail() after 0", await whole.all, ["1 a", "2 b", "3 c", "4 d", "5 e", "6 f"]);
    expect("tail() after 1", await part.all, ["2 b", "3 c", "4 d", "5 e", "6 f"]);
    expect("tail() after 5", await ahead.all, ["6 f"]);
  },

  async "follows a long run"(log, expect, signal) {
    const lines = Array.from({ length: 20 }, (_, index) => `${index}${"x".repeat(200_000)}`);
    for (const [after, line] of lines.entries()) await add(log, after, line);
    const behind = readLog(log.tail("r", 0, signal));
    await behind.upTo(20);
    await log.append("r", { after: 20, lines: [], ended: true });
    expect("tail()", await behind.all, lines.map((line, index) => `${index + 1} ${line}`));
  },

  async "follows a run whose first events were deleted"(log, expect, signal) {
    await log.append("r", { after: 57, lines: ["a", "b"], ended: false });
    const late = readLog(log.tail("r", 3, signal));
    await late.upTo(59);
    await log.append("r", { after: 59, lines: ["c"], ended: true });
    expect("tail()", await late.all, ["58 a", "59 b", "60 c"]);
  },

  async "ends at once if the run has ended"(log, expect, signal) {
    await log.append("r", { after: 0, lines: ["a", "b"], ended: true });
    expect("tail() after 0", await readLog(log.tail("r", 0, signal)).all, ["1 a", "2 b"]);
    expect("tail() after 2", await readLog(log.tail("r", 2, signal)).all, []);
    expect("tail() after 9", await readLog(log.tail("r", 9, signal)).all, []);
  },

  async "follows a resumed run"(log, expect, signal) {
    await log.append("r", { after: 0, lines: ["a"], ended: true });
    await add(log, 1, "b");
    const resumed = readLog(log.tail("r", 1, signal));
    const whole = readLog(log.tail("r", 0, signal));
    await Promise.all([resumed.upTo(2), whole.upTo(2)]);
    await log.append("r", { after: 2, lines: [], ended: true });
    expect("tail() after the first end", await resumed.all, ["2 b"]);
    expect("tail() from the beginning", await whole.all, ["1 a", "2 b"]);
  },

  async "yields every event once, also to a slow reader"(log, expect, signal) {
    await add(log, 0, "0");
    const pages = log.tail("r", 0, signal)[Symbol.asyncIterator]();
    const first = await pages.next();
    for (let after = 1; after < 40; after++) await add(log, after, `${after}`);
    const rest = readLog({ [Symbol.asyncIterator]: () => pages });
    await rest.upTo(40);
    const adding = Array.from({ length: 40 }, (_, index) => `${40 + index}`);
    for (const line of adding) await add(log, Number(line), line);
    await log.append("r", { after: 80, lines: [], ended: true });
    const expected = Array.from({ length: 80 }, (_, index) => `${index + 1} ${index}`);
    expect("the first page", first.value?.lines, ["0"]);
    expect("the rest", await rest.all, expected.slice(1));
  },

  async "stops when the signal aborts"(log, expect, signal) {
    await add(log, 0, "a");
    const following = readLog(log.tail("r", 0, signal));
    const [one, two] = [countedSignal(), countedSignal()];
    const [goes, late] = [readLog(log.tail("r", 0, one.signal)), readLog(log.tail("r", 1, two.signal))];
    await goes.upTo(1);
    one.abort();
    two.abort();
    expect("tail() until its signal aborted", await goes.all, ["1 a"]);
    expect("tail() whose signal aborted before the events", await late.all, []);
    expect("tail() with an aborted signal", await readLog(log.tail("r", 0, one.signal)).all, []);
    await log.append("r", { after: 1, lines: ["b"], ended: true });
    expect("tail() of another reader", await following.all, ["1 a", "2 b"]);
  },

  async "removes its listeners from the signal"(log, expect) {
    await log.append("ended", { after: 0, lines: ["a"], ended: true });
    await add(log, 0, "a");
    const { signal, listeners } = countedSignal();
    log.tail("r", 0, signal);
    expect("listeners before the first read", listeners(), 0);
    await readLog(log.tail("ended", 0, signal)).all;
    expect("listeners after the end", listeners(), 0);
    for await (const _ of log.tail("r", 0, signal)) break;
    expect("listeners after the reader has left", listeners(), 0);
    await readLog(log.tail("none", 0, signal)).all;
    expect("listeners for an unknown run", listeners(), 0);
  },

  async "ends when the run is deleted"(log, expect, signal) {
    await add(log, 0, "a");
    const seen = readLog(log.tail("r", 0, signal));
    await seen.upTo(1);
    await log.delete("r");
    expect("tail() until the delete", await seen.all, ["1 a"]);
  },
};

/** Appends to the run "r". */
async function add(log: Log, after: number, ...lines: readonly string[]): Promise<void> {
  await log.append("r", { after, lines, ended: false });
}

// The laws of logs, which the adapter of a user is tested with.

/**
 * Tests a log against the laws of the port. `make` creates a new, empty log for each law. Throws an `Error` that names each broken law, and how it is
 * broken. A log
 *
 * - returns the events in order, after a given event, however many there are;
 * - accepts only the next events, so that one of several writers wins;
 * - yields every event once to each follower, to the end of the run, and continues when the run is resumed;
 * - removes its listeners when a follower stops;
 * - returns nothing of a run that was deleted or has expired.
 *
 * ```ts
 * import { logLaws } from "@jizai/jizai/testing";
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { assertRejects } from "@std/assert";
 *
 * await logLaws(() => memoryLog());
 *
 * const careless = () => ({ ...memoryLog(), append: () => Promise.resolve(true) });
 * await assertRejects(() => logLaws(careless), Error, "returns the appended events");
 * ```
 */
export async function logLaws(make: Make<Log>, options: LawOptions = {}): Promise<void> {
  await checkLaws(make, { ...laws, ...tailLaws }, expiryLaws, options);
}

const laws: Laws<Log> = {
  async "finds no run that was never appended to"(log, expect, signal) {
    expect("read()", await log.read("none", 0), undefined);
    expect("tail()", await readLog(log.tail("none", 0, signal)).all, []);
    await log.delete("none");
  },

  async "returns the appended events after a given event"(log, expect) {
    expect("append()", await log.append("r", { after: 0, lines: ["1", "2", "3"], ended: false }), true);
    expect("append() of more", await log.append("r", { after: 3, lines: [`"4"`, `{"type":"5"}`], ended: false }), true);
    await log.append("other", { after: 0, lines: ["0"], ended: true });
    const all = ["1", "2", "3", `"4"`, `{"type":"5"}`];
    for (let after = 0; after <= 5; after++) {
      const page = { first: after + 1, lines: all.slice(after), last: 5, ended: false };
      expect(`read() after ${after}`, await log.read("r", after), page);
    }
    expect("read() after 9", await log.read("r", 9), { first: 10, lines: [], last: 5, ended: false });
    expect("read() of another run", await log.read("other", 0), { first: 1, lines: ["0"], last: 1, ended: true });
  },

  async "accepts only the next events"(log, expect) {
    await log.append("r", { after: 0, lines: ["1", "2"], ended: false });
    for (const after of [0, 1, 3, 9]) {
      expect(`append() after ${after}`, await log.append("r", { after, lines: ["x"], ended: true }), false);
    }
    expect("read()", await log.read("r", 0), { first: 1, lines: ["1", "2"], last: 2, ended: false });
  },

  async "accepts an addition without lines at the beginning and the end of a run"(log, expect) {
    expect("append() to begin", await log.append("r", { after: 0, lines: [], ended: false }), true);
    expect("read()", await log.read("r", 0), { first: 1, lines: [], last: 0, ended: false });
    await log.append("r", { after: 0, lines: ["1"], ended: false });
    expect("append() to end", await log.append("r", { after: 1, lines: [], ended: true }), true);
    expect("read() after the end", await log.read("r", 0), { first: 1, lines: ["1"], last: 1, ended: true });
    expect("append() after the end", await log.append("r", { after: 1, lines: ["2"], ended: false }), true);
    expect("read() after a further append()", await log.read("r", 0), {
      first: 1,
      lines: ["1", "2"],
      last: 2,
      ended: false,
    });
  },

  async "accepts a run whose first events were deleted"(log, expect) {
    expect("append()", await log.append("r", { after: 57, lines: ["58", "59"], ended: false }), true);
    for (const after of [0, 56, 57]) {
      const page = { first: 58, lines: ["58", "59"], last: 59, ended: false };
      expect(`read() after ${after}`, await log.read("r", after), page);
    }
    expect("append() before it", await log.append("r", { after: 0, lines: ["1"], ended: false }), false);
    expect("append() of more", await log.append("r", { after: 59, lines: ["60"], ended: false }), true);
    expect("read() after 58", await log.read("r", 58), { first: 59, lines: ["59", "60"], last: 60, ended: false });
  },

  async "accepts one of several concurrent writers"(log, expect) {
    let after = 0;
    for (const length of [1, 100, 500_000]) {
      const lines = ["a", "b", "c", "d"].map((writer) => [`"${writer.repeat(length)}"`, `"${writer}"`]);
      const appended = await Promise.all(lines.map((lines) => log.append("r", { after, lines, ended: false })));
      expect("the results of append()", [...appended].sort(), [false, false, false, true]);
      expect("read() after the writes", await all(log, "r", after), lines[appended.indexOf(true)] ?? []);
      after += 2;
    }
  },

  async "returns long events page by page"(log, expect) {
    const lines = ["1", ...[...long, oddText].map((text) => JSON.stringify(text)), "9"];
    for (const [after, line] of lines.entries()) await log.append("one by one", { after, lines: [line], ended: false });
    await log.append("at once", { after: 0, lines, ended: false });
    for (const run of ["one by one", "at once"]) {
      for (const after of [0, 1, 3, lines.length]) {
        expect(`read() of ${run} after ${after}`, await all(log, run, after), lines.slice(after));
      }
    }
  },

  async "returns events that were appended one by one"(log, expect) {
    const lines: string[] = [];
    while (lines.length < 600) {
      const bit = Array.from({ length: 1 + lines.length % 3 }, (_, index) => `${lines.length + index}`);
      await log.append("r", { after: lines.length, lines: bit, ended: false });
      lines.push(...bit);
    }
    for (const after of [0, 1, 2, 99, 100, 598, lines.length]) {
      expect(`read() after ${after}`, await all(log, "r", after), lines.slice(after));
    }
  },

  async "returns nothing after a delete"(log, expect) {
    await log.append("gone", { after: 0, lines: ["1", `"${long[1]}"`, "3"], ended: false });
    await log.append("stays", { after: 0, lines: ["1"], ended: false });
    await log.delete("gone");
    expect("read()", await log.read("gone", 0), undefined);
    expect("append() of a new one", await log.append("gone", { after: 0, lines: ["new"], ended: true }), true);
    expect("read() of the new one", await log.read("gone", 0), { first: 1, lines: ["new"], last: 1, ended: true });
    expect("read() of another", await log.read("stays", 0), { first: 1, lines: ["1"], last: 1, ended: false });
  },
};

const expiryLaws: ExpiryLaws<Log> = (pass) => ({
  async "deletes what has expired"(log, expect) {
    await log.append("r", { after: 0, lines: ["1", "2"], ended: true });
    await pass(expireIn - 100);
    expect("read() before it expires", await log.read("r", 0), { first: 1, lines: ["1", "2"], last: 2, ended: true });
    await log.append("r", { after: 2, lines: ["3"], ended: false });
    await pass(expireIn - 100);
    expect("read() of newer events", await log.read("r", 2), { first: 3, lines: ["3"], last: 3, ended: false });
    await pass(200);
    expect("read()", await log.read("r", 0), undefined);
    expect("append() after the expiry", await log.append("r", { after: 3, lines: ["4"], ended: false }), true);
    expect("read() of that", await log.read("r", 0), { first: 4, lines: ["4"], last: 4, ended: false });
  },
});

/** Reads all lines after `after`, page by page. */
async function all(log: Log, run: string, after: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const page = await log.read(run, after + lines.length);
    lines.push(...page?.lines ?? []);
    if (!page || page.lines.length === 0 || after + lines.length >= page.last) return lines;
  }
}
