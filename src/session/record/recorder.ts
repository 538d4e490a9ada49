/**
 * The record of a run while it is written: an event is on record before anybody hears of it.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/events.ts";
import type { Event } from "../../protocol/event.ts";
import type { Sink } from "../../stream/channel.ts";
import { lineOf } from "../../stream/line.ts";
import { clearTurn, turn } from "../../stream/turn.ts";
import type { Addition, Lines, Log } from "../log.ts";

/** Puts the events of a run on record, and hands them on. */
export interface Recorder extends Sink<NumberedEvent> {
  /** Begins to write, after the event of number `after`. Gives whether the first events are on record, once there are any. */
  begin(after: number): Promise<boolean>;
  settled(): Promise<void>;
  /** Settles when nothing more is written. */
  readonly over: Promise<void>;
}

/** What a record is written to. */
export interface RecorderOptions {
  readonly log: Log;
  /** The id of the record. */
  readonly id: string;
  /** Hears of every event once it is on record. */
  readonly out?: Sink<Lines> | undefined;
  /** Told that nothing more is written: somebody else writes the record, or an error says why not. */
  readonly onLost: (error?: unknown) => void;
}

/** The characters of events from which on the run is asked to wait. */
const highWater = 65_536;

/** Milliseconds before each further try to add to a log that fails. */
const pauses = [50, 250, 1_000];

/** Events that are added in one go. */
class Batch {
  readonly lines: string[] = [];
  length = 0;
  /** Whether the run ends with them. */
  ended = false;
  /** Settles when they should be added. */
  readonly due = Promise.withResolvers<void>();
  /** Settles when there is room for others. */
  readonly taken = Promise.withResolvers<void>();
  /** Settles when they are on record, or never will be. */
  readonly done = Promise.withResolvers<void>();

  add(event: Event): void {
    const line = lineOf(event);
    this.lines.push(line);
    this.length += line.length;
    this.ended = event.type.startsWith("run.") && event.type !== "run.started";
  }
}

/**
 * Writes the record of a run, batch by batch: what is said while one is added, and then until the event loop turns, goes with the next. A client that is
 * slow slows the run, as it does without a record; one that has gone does not.
 */
export function recorder({ log, id, out, onLost }: RecorderOptions): Recorder {
  let next = new Batch();
  /** The batch that was taken last. */
  let last = new Batch();
  last.done.resolve();
  let corked = false;
  let begun = false;
  let closed = false;
  let lost = false;
  let wake = () => {};
  const over = Promise.withResolvers<void>();

  /** Adds batch after batch, to the end; gives false where somebody else has added. */
  async function write(after: number): Promise<boolean> {
    for (let at = after;;) {
      await next.due.promise;
      const { lines, ended, taken, done } = last = next;
      if (lost || lines.length === 0) return true;
      next = new Batch();
      if (closed) next.due.resolve();
      taken.resolve();
      if (!await add(log, id, { after: at, lines, ended })) return false;
      out?.write({ first: at + 1, lines });
      at += lines.length;
      done.resolve();
      if (!closed && next.length < highWater) await turned();
    }
  }

  /** Settles when the event loop turns, or somebody waits for what is said. */
  function turned(): Promise<void> {
    return new Promise((resolve) => {
      const timer = turn(resolve);
      wake = () => {
        clearTurn(timer);
        resolve();
      };
    });
  }

  /** Has what was said added as soon as what was taken is. */
  function hurry(): void {
    wake();
    next.due.resolve();
  }

  function finish(kept: boolean, error?: unknown): void {
    if (lost) return;
    lost = !kept;
    for (const { taken, done } of [last, next]) {
      taken.resolve();
      done.resolve();
    }
    out?.close();
    over.resolve();
    if (lost) onLost(error);
  }

  return {
    over: over.promise,
    async begin(after) {
      begun = true;
      const { done } = next;
      write(after).then(finish, (error) => finish(false, error));
      await done.promise;
      return !lost;
    },
    write({ event }) {
      if (lost) return;
      next.add(event);
      if (next.length >= highWater) hurry();
      else if (!corked) next.due.resolve();
    },
    cork() {
      corked = true;
    },
    uncork() {
      corked = false;
      if (next.lines.length > 0) next.due.resolve();
    },
    get full() {
      return next.length >= highWater && !lost ? next.taken.promise : out?.full;
    },
    settled() {
      if (next.lines.length === 0) return last.done.promise;
      hurry();
      return next.done.promise;
    },
    yield: () => finish(false),
    close() {
      closed = true;
      hurry();
      if (!begun) finish(true);
    },
  };
}

/** Adds to a record, and again where the log fails. */
async function add(log: Log, id: string, addition: Addition): Promise<boolean> {
  for (let tries = 0;; tries++) {
    try {
      return await log.append(id, addition) || await has(log, id, addition);
    } catch (error) {
      const pause = pauses[tries];
      if (pause === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** Whether a record ends with these lines all the same: they were added though that had failed, or somebody else has added the end that they are. */
async function has(log: Log, id: string, { after, lines }: Addition): Promise<boolean> {
  const page = await log.read(id, after);
  return page?.last === after + lines.length && lines.every((line, index) => line === page.lines[index]);
}
