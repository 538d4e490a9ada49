/**
 * The laws of following a log.
 *
 * @module
 */
import type { Log } from "../../session/log.ts";
import { countedSignal, readLog } from "./log_reader.ts";
import type { Laws } from "./run_laws.ts";

export const tailLaws: Laws<Log> = {
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
    const stays = readLog(log.tail("r", 0, signal));
    const [one, two] = [countedSignal(), countedSignal()];
    const [goes, late] = [readLog(log.tail("r", 0, one.signal)), readLog(log.tail("r", 1, two.signal))];
    await goes.upTo(1);
    one.abort();
    two.abort();
    expect("tail() until its signal aborted", await goes.all, ["1 a"]);
    expect("tail() whose signal aborted before the events", await late.all, []);
    expect("tail() with an aborted signal", await readLog(log.tail("r", 0, one.signal)).all, []);
    await log.append("r", { after: 1, lines: ["b"], ended: true });
    expect("tail() of another reader", await stays.all, ["1 a", "2 b"]);
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
