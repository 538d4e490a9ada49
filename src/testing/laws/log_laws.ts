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
 * - gives back what it was given, in its order, from any event on, however much it is;
 * - takes what comes next and nothing else: of several writers one wins;
 * - lets everyone who follows a run see every event once, until the run has ended, and again from there when it is resumed;
 * - leaves nothing behind where somebody stops following;
 * - forgets what is deleted, and what has expired.
 *
 * ```ts
 * import { logLaws } from "@jizai/jizai/testing";
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { assertRejects } from "@std/assert";
 *
 * await logLaws(() => memoryLog());
 *
 * const careless = () => ({ ...memoryLog(), append: () => Promise.resolve(true) });
 * await assertRejects(() => logLaws(careless), Error, "gives back what it was given");
 * ```
 */
export async function logLaws(make: Make<Log>, options: LawOptions = {}): Promise<void> {
  await checkLaws(make, { ...laws, ...tailLaws }, expiryLaws, options);
}

const laws: Laws<Log> = {
  async "knows nothing of a run that it was never told of"(log, expect, signal) {
    expect("read()", await log.read("none", 0), undefined);
    expect("tail()", await readLog(log.tail("none", 0, signal)).all, []);
    await log.delete("none");
  },

  async "gives back what it was given, from any event on"(log, expect) {
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

  async "takes what comes next, and nothing else"(log, expect) {
    await log.append("r", { after: 0, lines: ["1", "2"], ended: false });
    for (const after of [0, 1, 3, 9]) {
      expect(`append() after ${after}`, await log.append("r", { after, lines: ["x"], ended: true }), false);
    }
    expect("read()", await log.read("r", 0), { first: 1, lines: ["1", "2"], last: 2, ended: false });
  },

  async "takes no lines, to begin a run or to end it"(log, expect) {
    expect("append() to begin", await log.append("r", { after: 0, lines: [], ended: false }), true);
    expect("read()", await log.read("r", 0), { first: 1, lines: [], last: 0, ended: false });
    await log.append("r", { after: 0, lines: ["1"], ended: false });
    expect("append() to end", await log.append("r", { after: 1, lines: [], ended: true }), true);
    expect("read() of what ended", await log.read("r", 0), { first: 1, lines: ["1"], last: 1, ended: true });
    expect("append() after the end", await log.append("r", { after: 1, lines: ["2"], ended: false }), true);
    expect("read() of what goes on", await log.read("r", 0), { first: 1, lines: ["1", "2"], last: 2, ended: false });
  },

  async "begins in the middle where the beginning has been forgotten"(log, expect) {
    expect("append()", await log.append("r", { after: 57, lines: ["58", "59"], ended: false }), true);
    for (const after of [0, 56, 57]) {
      const page = { first: 58, lines: ["58", "59"], last: 59, ended: false };
      expect(`read() after ${after}`, await log.read("r", after), page);
    }
    expect("append() before it", await log.append("r", { after: 0, lines: ["1"], ended: false }), false);
    expect("append() of more", await log.append("r", { after: 59, lines: ["60"], ended: false }), true);
    expect("read() after 58", await log.read("r", 58), { first: 59, lines: ["59", "60"], last: 60, ended: false });
  },

  async "lets one of several writers win"(log, expect) {
    let after = 0;
    for (const length of [1, 100, 500_000]) {
      const lines = ["a", "b", "c", "d"].map((writer) => [`"${writer.repeat(length)}"`, `"${writer}"`]);
      const taken = await Promise.all(lines.map((lines) => log.append("r", { after, lines, ended: false })));
      expect("what append() gave", [...taken].sort(), [false, false, false, true]);
      expect("what the winner wrote", await all(log, "r", after), lines[taken.indexOf(true)] ?? []);
      after += 2;
    }
  },

  async "gives back what is long, page by page"(log, expect) {
    const lines = ["1", ...[...long, oddText].map((text) => JSON.stringify(text)), "9"];
    for (const [after, line] of lines.entries()) await log.append("one by one", { after, lines: [line], ended: false });
    await log.append("at once", { after: 0, lines, ended: false });
    for (const run of ["one by one", "at once"]) {
      for (const after of [0, 1, 3, lines.length]) {
        expect(`read() of ${run} after ${after}`, await all(log, run, after), lines.slice(after));
      }
    }
  },

  async "gives back what was added bit by bit"(log, expect) {
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

  async "forgets what is deleted"(log, expect) {
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
  async "forgets what has expired"(log, expect) {
    await log.append("r", { after: 0, lines: ["1", "2"], ended: true });
    await pass(expireIn - 100);
    expect("read() before it expires", await log.read("r", 0), { first: 1, lines: ["1", "2"], last: 2, ended: true });
    await log.append("r", { after: 2, lines: ["3"], ended: false });
    await pass(expireIn - 100);
    expect("read() of what was added since", await log.read("r", 2), { first: 3, lines: ["3"], last: 3, ended: false });
    await pass(200);
    expect("read()", await log.read("r", 0), undefined);
    expect("append() of what comes after", await log.append("r", { after: 3, lines: ["4"], ended: false }), true);
    expect("read() of that", await log.read("r", 0), { first: 4, lines: ["4"], last: 4, ended: false });
  },
});

/** All lines after `after`, read page by page. */
async function all(log: Log, run: string, after: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const page = await log.read(run, after + lines.length);
    lines.push(...page?.lines ?? []);
    if (!page || page.lines.length === 0 || after + lines.length >= page.last) return lines;
  }
}
