/**
 * Logging the events of a run: events are logged before they are sent.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/events.ts";
import { startTimer } from "../../core/lib/cancellation.ts";
import { type Patience, withRetries } from "../../core/store.ts";
import { type Event, isLastEvent } from "../../protocol/event.ts";
import type { Addition, Lines, Log } from "../log.ts";
import type { Sink } from "../../stream/channel.ts";
import { lineOf } from "../../stream/sse.ts";
import { nextTick } from "../../stream/tick.ts";

// Appending lines to a log, with retries.

/**
 * Appends to the log, and retries as long as `patience` returns if the log fails. Returns false if another process has appended to the record.
 */
function append(log: Log, key: string, addition: Addition, patience?: Patience): Promise<boolean> {
  const work = async () => await log.append(key, addition) || await endsWith(log, key, addition);
  return withRetries(work, patience);
}

/** Whether the record ends with these lines already: a failed append may have been made, and another process may have added the same end. */
async function endsWith(log: Log, key: string, { after, lines }: Addition): Promise<boolean> {
  const page = await log.read(key, after); // of many lines, the first tell whose addition it is
  return page?.first === after + 1 && page.last === after + lines.length &&
    page.lines.every((line, index) => line === lines[index]);
}

// The recorder of a run: it logs the events before it passes them on to the response.

/** Logs the events of a run, and passes them on once they are logged. */
export interface Recorder extends Sink<NumberedEvent> {
  startAfter(after: number): Promise<boolean>;
  settled(): Promise<boolean>;
  /** Resolves when nothing more will be logged. */
  readonly over: Promise<void>;
  /** The reason of an early end of logging; undefined if there is none. */
  readonly lostTo: Loss["to"] | undefined;
}

/** An early end of logging: another process continues the record, or the log fails. `isRecorded` is false if the log failed before the first events. */
export type Loss =
  | { readonly to: "process" }
  | { readonly to: "log"; readonly error: unknown; readonly isRecorded: boolean };

/** Options of `recorder()`. */
interface RecorderOptions {
  readonly log: Log;
  /** The key of the run in the log. */
  readonly key: string;
  readonly owner: string | undefined;
  /** Receives the events once they are logged. */
  readonly out: Sink<Lines>;
  /** Returns the milliseconds for which a failure of the log is retried. */
  readonly patience: Patience;
  /** Called if logging ends early. */
  readonly onLost: (loss: Loss) => void;
}

/** The number of buffered characters above which the run has to wait. */
const highWater = 65_536;

/** Events that are appended together. */
class Batch {
  readonly lines: string[] = [];
  length = 0;
  /** Whether the run ends or pauses with them. */
  ended = false;
  paused = false;
  /** Whether they are only deltas, which may wait for more of them. */
  canWait = true;
  /** Resolves when they are to be appended. */
  readonly due = Promise.withResolvers<void>();
  /** Resolves when they begin to be appended, so that another batch takes the next ones. */
  readonly appending = Promise.withResolvers<void>();
  /** Resolves when they are logged, or never will be. */
  readonly done = Promise.withResolvers<void>();

  add(event: Event): void {
    const line = lineOf(event);
    this.lines.push(line);
    this.length += line.length;
    this.ended = isLastEvent(event);
    this.paused = event.type === "run.paused";
    this.canWait &&= event.type.endsWith(".delta");
  }
}

/**
 * Logs the events of a run in batches. Events that are written during an append, and until the event loop turns after it, are appended together; deltas also wait for
 * `deltasEvery` of the log after the last append of deltas.
 * A slow client slows the run, as it does without a log. A client that has gone does not.
 */
export function recorder({ log, key, owner, out, patience, onLost }: RecorderOptions): Recorder {
  let next = new Batch();
  /** The batch that is being appended, or was appended last. */
  let last = new Batch();
  last.done.resolve();
  let corked = false;
  /** The number of the event before the first one; undefined until logging begins. */
  let first: number | undefined;
  /** The number of the last logged event. */
  let at = 0;
  let loss: Loss | undefined;
  let closed = false;
  let wake = () => {};
  /** Ends the wait of deltas for more of them; undefined while they need not wait. */
  let endWait: (() => void) | undefined;
  let waiting: Promise<void> | undefined;
  let renewal: ReturnType<typeof setTimeout> | undefined;
  let renewedAt = 0;
  const over = Promise.withResolvers<void>();

  /** Appends one batch after another. Returns false if another process has appended to the record. */
  async function appendAll(): Promise<boolean> {
    for (;;) {
      await next.due.promise;
      if (waiting && next.canWait && next.length < highWater && !closed) await waiting;
      const { lines, canWait, ended, paused, appending, done } = last = next;
      if (loss || (closed && lines.length === 0)) return true;
      next = new Batch();
      if (closed) next.due.resolve();
      appending.resolve();
      const pinned = paused || !ended;
      const addition = { after: at, lines, ended, owner, pinned, inUse };
      const isFirst = at === first; // it fails soon, since nothing depends on it
      if (!await append(log, key, addition, isFirst ? undefined : patience)) return false;
      renewLater();
      if (canWait && lines.length > 0) waitForMore();
      if (lines.length > 0) out.write({ first: at + 1, lines });
      at += lines.length;
      done.resolve();
      if (!closed && next.length < highWater) await untilTurn();
    }
  }

  /** Lets the deltas that follow wait for each other. */
  function waitForMore(): void {
    const { deltasEvery = 0 } = log;
    if (deltasEvery <= 0) return;
    waiting = new Promise((resolve) => {
      const timer = startTimer(() => endWait?.(), deltasEvery);
      endWait = () => {
        clearTimeout(timer);
        waiting = endWait = undefined;
        resolve();
      };
    });
  }

  /** Appends nothing after a long silence, so that the record of a run that continues does not expire. */
  function renewLater(): void {
    clearTimeout(renewal);
    renewedAt = performance.now();
    if (!closed && log.renewIn !== undefined && log.renewIn < 2 ** 31) {
      renewal = setTimeout(() => next.due.resolve(), log.renewIn);
    }
  }

  /** Returns false once nothing more will be logged, also if the platform has ended the request that logs. */
  function inUse(): boolean {
    return !closed && !loss && performance.now() < renewedAt + 2 * (log.renewIn ?? Infinity);
  }

  /** Resolves when the event loop turns, or when a caller waits for the log. */
  function untilTurn(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = nextTick(resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Ends the wait for the event loop and appends the next batch. */
  function appendNow(): void {
    wake();
    endWait?.();
    next.due.resolve();
  }

  function finish(earlyLoss?: Loss): void {
    if (loss) return;
    loss = earlyLoss;
    clearTimeout(renewal);
    endWait?.();
    for (const { appending, done } of [last, next]) {
      appending.resolve();
      done.resolve();
    }
    out.close();
    over.resolve();
    if (loss) onLost(loss);
  }

  return {
    over: over.promise,
    get lostTo() {
      return loss?.to;
    },
    async startAfter(after) {
      first = at = after;
      const { done } = next;
      appendAll().then(
        (isComplete) => finish(isComplete ? undefined : { to: "process" }),
        (error) => finish({ to: "log", error, isRecorded: at !== first }),
      );
      await done.promise;
      return !loss;
    },
    write({ event }) {
      if (loss) return;
      next.add(event);
      if (!next.canWait) endWait?.();
      if (next.length >= highWater) appendNow();
      else if (!corked) next.due.resolve();
    },
    cork() {
      corked = true;
    },
    uncork() {
      corked = false;
      if (next.lines.length > 0) next.due.resolve();
    },
    get congested() {
      return !loss && (next.length >= highWater || out.congested === true);
    },
    get full() {
      return next.length >= highWater && !loss ? next.appending.promise : out.full;
    },
    async settled() {
      const { done } = next.lines.length === 0 ? last : next;
      if (done === next.done) appendNow();
      await done.promise;
      return !loss;
    },
    yield: () => finish({ to: "process" }),
    close() {
      closed = true;
      clearTimeout(renewal);
      appendNow();
      if (first === undefined) finish();
    },
  };
}
