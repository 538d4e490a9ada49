/**
 * The laws of logs.
 *
 * @module
 */
import type { Log } from "../../session/log.ts";
import { readLog } from "./log_reader.ts";
import { checkLaws, expireIn, type ExpiryLaws, type LawOptions, type Laws, type Make } from "./run_laws.ts";
import { long, oddText } from "./sample_sessions.ts";
import { tailLaws } from "./tail_laws.ts";

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
      const taken = await Promise.all(lines.map((lines) => log.append("r", { after, lines, ended: false })));
      expect("the results of append()", [...taken].sort(), [false, false, false, true]);
      expect("read() after the writes", await all(log, "r", after), lines[taken.indexOf(true)] ?? []);
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
