/**
 * Following logs: the followers of a run share what is read.
 *
 * Each follower belongs to a request, and on Cloudflare Workers a promise or a timer of another request may never settle. So followers share lines, and one of them
 * reads for the others in its own request. They wait for it with promises and timers of their own, and after a while one of them reads again.
 *
 * @module
 */
import { startTimer } from "../core/lib/cancellation.ts";
import { endOfLines } from "../stream/sse.ts";
import type { Addition, LogPage } from "./log.ts";
import { pageLength } from "./pieces.ts";

/** Options of `followers()`. */
export interface FollowersOptions {
  /** Reads a page. `seen` is the number of the last event that an earlier read has seen; undefined if there was none. */
  read(run: string, after: number, seen: number | undefined): Promise<LogPage | undefined>;
  /**
   * The most milliseconds between two looks for additions of other processes. The next look is after `shortest` milliseconds if the last one has found some, and
   * otherwise after twice the interval before. Default: never.
   */
  readonly longest?: number | undefined;
  /** The least milliseconds between two looks. Default: `longest`. */
  readonly shortest?: number | undefined;
  /** Begins to receive the notifications of a run, as long as it has followers. Default: there are none. */
  readonly watch?: ((run: string, watcher: Watcher) => Promise<() => unknown>) | undefined;
}

/** Receives the notifications of a run. */
export interface Watcher {
  /** The record may have changed. `end` is its end, if that is known. */
  notify(end?: End): void;
  /** No more notifications will come. Each follower throws the error. */
  fail(error: unknown): void;
}

/** The end of a record. */
type End = Omit<LogPage, "first" | "lines">;

/** Returns a notification that a record has another end. An empty one says that it was deleted. */
export function notificationOf({ last, ended }: End): string {
  return `${last} ${ended}`;
}

/** Returns the end of a record that a notification contains. */
export function endIn(notification: string): End | undefined {
  const [last, ended] = notification.split(" ");
  return last ? { last: Number(last), ended: ended === "true" } : undefined;
}

/** The followers of a log, within one process. */
export interface Followers {
  /** Yields the events after event `after` of a run, and those that are added later, as `tail()` of a log does. */
  tail(run: string, after: number, signal: AbortSignal): AsyncIterable<LogPage>;
  /** Passes on an addition that this process has made. */
  add(run: string, addition: Addition): void;
  /** Lets the followers of a run read, unless they know its end. Default: those of all runs, since notifications may have been lost. */
  notify(run?: string, end?: End): void;
  /** Forgets the lines of a record that was deleted. */
  remove(run: string): void;
}

/** The milliseconds for which followers wait for a read of another one, or for the start of the notifications. After that, one of them reads, too. */
const patience = 250;

/** The most characters that a log keeps for its followers. */
const bufferLength = 8 * pageLength;

/** Lines without a gap, which grow at their end. */
interface Chunk {
  readonly run: FollowedRun;
  readonly first: number;
  readonly lines: string[];
  length: number;
}

/** A read of one follower, or the start of the notifications, for which others wait. */
class SharedStep {
  readonly #waiting = new Set<(outcome: "over" | "failed") => void>();

  end(outcome: "over" | "failed"): void {
    for (const resolve of this.#waiting) resolve(outcome);
  }

  /** Resolves when the step is over, or with "late" after a while. `onWait` receives the function that ends the wait. */
  async outcome(onWait: (end: () => void) => void): Promise<"over" | "failed" | "late"> {
    const { promise, resolve } = Promise.withResolvers<"over" | "failed" | "late">();
    const timer = startTimer(() => resolve("late"), patience);
    this.#waiting.add(resolve);
    onWait(() => resolve("over"));
    const outcome = await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    return outcome;
  }
}

/** A run that is followed. Times are counts of `clock`. */
class FollowedRun {
  followers = 0;
  clock = 0;
  /** The time from which on the record must be read, because it may have changed. */
  wanted = 0;
  /** The time at which the latest read began that is over. */
  readAt = 0;
  /** The time at which the end became known. */
  knownAt = 0;
  /** The time of the last addition of this process. */
  addedAt = 0;
  /** The end of the record; undefined if there is none. */
  end: End | undefined;
  /** The number of the last event that a read has seen. */
  seen: number | undefined;
  /** The number of reads that are over. */
  reads = 0;
  failure: { readonly error: unknown } | undefined;
  /** Resolves to the function that ends the notifications, once they are received. */
  watched: Promise<() => unknown> | undefined;
  /** The start of the notifications, until it is over. */
  starting: SharedStep | undefined;
  readonly reading = new Map<number, SharedStep>();
  readonly chunks = new Set<Chunk>();
  /** Functions that end the waits of followers. */
  readonly waiting = new Set<() => void>();

  constructor(
    /** Milliseconds until the next look. */
    public interval: number,
  ) {}

  want(): void {
    this.wanted = ++this.clock;
    this.wake();
  }

  wake(): void {
    for (const resolve of this.waiting) resolve();
  }
}

/** The lines that followers share. The oldest are dropped. */
class LineBuffer {
  /** The chunks, the one that was used last at the end. */
  readonly #chunks = new Set<Chunk>();
  #length = 0;

  put(run: FollowedRun, first: number, lines: readonly string[]): void {
    let chunk = this.#chunkOf(run, first, ({ length }) => length < pageLength);
    if (!chunk) run.chunks.add(chunk = { run, first, lines: [], length: 0 });
    for (const line of lines.slice(chunk.first + chunk.lines.length - first)) {
      chunk.lines.push(line);
      chunk.length += line.length;
      this.#length += line.length;
    }
    this.#use(chunk);
    for (const oldest of this.#chunks) {
      if (this.#length <= bufferLength || oldest === chunk) break;
      this.#remove(oldest);
    }
  }

  /** Returns the lines after event `after`, or the first page of them; nothing if there are none. */
  linesAfter(run: FollowedRun, after: number): readonly string[] | undefined {
    const chunk = this.#chunkOf(run, after + 1, ({ first, lines }) => after + 1 < first + lines.length);
    if (!chunk) return undefined;
    this.#use(chunk);
    const start = after + 1 - chunk.first;
    return chunk.lines.slice(start, endOfLines(chunk.lines, start, pageLength));
  }

  drop(run: FollowedRun): void {
    for (const chunk of run.chunks) this.#remove(chunk);
  }

  /** Returns a chunk that contains event `first`, or ends before it. */
  #chunkOf(run: FollowedRun, event: number, fits: (chunk: Chunk) => boolean): Chunk | undefined {
    for (const chunk of run.chunks) {
      if (chunk.first <= event && event <= chunk.first + chunk.lines.length && fits(chunk)) return chunk;
    }
    return undefined;
  }

  #use(chunk: Chunk): void {
    this.#chunks.delete(chunk);
    this.#chunks.add(chunk);
  }

  #remove(chunk: Chunk): void {
    this.#chunks.delete(chunk);
    chunk.run.chunks.delete(chunk);
    this.#length -= chunk.length;
  }
}

/**
 * Creates the followers of a log. Those of a run share each read, and the lines that it returns, up to a number of characters for the whole log; a follower that is slower
 * reads for itself. Lines that this process adds are not read.
 */
export function followers({ read, longest = Infinity, shortest = longest, watch }: FollowersOptions): Followers {
  const runs = new Map<string, FollowedRun>();
  const buffer = new LineBuffer();

  function join(id: string): FollowedRun {
    const known = runs.get(id);
    const run = known ?? new FollowedRun(shortest);
    run.followers++;
    if (known) return run;
    runs.set(id, run);
    if (!watch) return run;
    const starting = run.starting = new SharedStep();
    const fail = (error: unknown) => {
      run.failure = { error };
      run.wake();
    };
    run.watched = watch(id, { notify: (end) => notifyRun(run, end), fail });
    run.watched.catch(fail).then(() => {
      run.starting = undefined;
      run.want(); // those that did not wait for the notifications may have missed one
      starting.end("over");
    });
    return run;
  }

  function leave(id: string, run: FollowedRun): void {
    if (--run.followers > 0) return;
    if (runs.get(id) === run) runs.delete(id);
    buffer.drop(run);
    run.watched?.then((end) => end()).catch(() => {}); // a failure to begin was thrown to the followers; what comes after the end is ignored
  }

  function notifyRun(run: FollowedRun, end?: End): void {
    const known = end && run.end;
    if (!known || end.last > known.last || (end.last === known.last && end.ended !== known.ended)) run.want();
  }

  /** Keeps what a read has returned that began at the time `began`. */
  function learn(run: FollowedRun, began: number, page: LogPage | undefined): void {
    run.reads++;
    const { end } = run;
    const [last, lastKnown] = [page?.last ?? 0, end?.last ?? 0];
    const isLater = began >= run.readAt;
    const isNewest = last > lastKnown || began >= run.knownAt || // others may overlap
      (last === lastKnown && isLater && began >= run.addedAt);
    if (isNewest && last < lastKnown) buffer.drop(run); // the record was deleted, and may have begun again
    if (page) buffer.put(run, page.first, page.lines);
    if (isLater) {
      run.readAt = began;
      run.seen = page?.last;
      run.interval = page?.lines.length ? shortest : Math.min(2 * run.interval, longest);
    }
    if (!isNewest) return;
    run.end = page && { last, ended: page.ended };
    run.knownAt = ++run.clock;
    if (page?.last !== end?.last || page?.ended !== end?.ended) run.wake();
  }

  /** Reads a page for a follower, and for those that wait for `shared`. */
  async function readPage(id: string, run: FollowedRun, at: number, shared: SharedStep): Promise<LogPage | undefined> {
    const began = ++run.clock;
    let outcome: "over" | "failed" = "failed";
    try {
      const page = await read(id, at, run.seen);
      if (run.followers > 0) learn(run, began, page);
      outcome = "over";
      return page;
    } finally {
      endRead(run, at, shared, outcome);
    }
  }

  function endRead(run: FollowedRun, at: number, shared: SharedStep, outcome: "over" | "failed"): void {
    if (run.reading.get(at) === shared) run.reading.delete(at);
    shared.end(outcome);
  }

  /** Waits until a run is to be read, or its next look is due. `onWait` receives the function that ends the wait. */
  async function untilWanted(run: FollowedRun, onWait: (end: () => void) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { reads } = run;
    const timer = startTimer(() => {
      if (run.reads === reads && run.wanted <= run.readAt) run.wanted = ++run.clock; // otherwise another follower looks, or has looked
      resolve();
    }, run.interval);
    run.waiting.add(resolve);
    onWait(resolve);
    await promise;
    clearTimeout(timer);
    run.waiting.delete(resolve);
  }

  async function* tail(id: string, after: number, signal: AbortSignal): AsyncGenerator<LogPage> {
    if (signal.aborted) return;
    const run = join(id); // before the first read, so that no addition in between is missed
    let endWait = () => {};
    const onWait = (end: () => void) => void (endWait = end);
    let hasLeft = false;
    const leaveOnce = () => {
      if (!hasLeft) leave(id, run);
      hasLeft = true;
    };
    const onAbort = () => { // the request may have ended, so that nothing continues after this
      endWait();
      leaveOnce();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      if (run.starting) await run.starting.outcome(onWait);
      const joined = ++run.clock;
      /** The last event of the record when a read found no line after `at`. */
      let emptyUntil = 0;
      let isAlone = false;
      for (let at = after; !signal.aborted;) {
        if (run.failure) throw run.failure.error;
        const { end } = run;
        const wanted = Math.max(joined, run.wanted);
        const lines = buffer.linesAfter(run, at);
        const shared = run.reading.get(at);
        if (lines) {
          at += lines.length;
          yield { first: at - lines.length + 1, lines, last: Math.max(end?.last ?? 0, at), ended: end?.ended === true };
        } else if (run.readAt >= wanted && Math.max(at, emptyUntil) >= (end?.last ?? 0)) {
          if (!end || end.ended) return;
          await untilWanted(run, onWait);
        } else if (shared && !isAlone) {
          const outcome = await shared.outcome(onWait);
          if (outcome === "late" && run.reading.get(at) === shared) run.reading.delete(at);
          isAlone = outcome === "failed"; // the read of another request may succeed
        } else {
          const step = new SharedStep();
          if (!shared) run.reading.set(at, step);
          isAlone = false;
          const reading = readPage(id, run, at, step);
          endWait = () => endRead(run, at, step, "over"); // another follower reads
          const page = await reading;
          if (!page || signal.aborted) return;
          if (page.lines.length === 0) emptyUntil = page.last;
          else {
            at = page.first + page.lines.length - 1;
            yield page;
          }
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      leaveOnce();
    }
  }

  return {
    tail,
    add(id, { after, lines, ended }) {
      const run = runs.get(id);
      if (!run) return;
      const last = after + lines.length;
      if (run.end?.last !== after) return notifyRun(run, { last, ended });
      run.knownAt = run.addedAt = ++run.clock;
      if (lines.length > 0) buffer.put(run, after + 1, lines);
      run.end = { last, ended };
      run.wake();
    },
    notify(id, end) {
      const notified = id === undefined ? runs.values() : [runs.get(id)];
      for (const run of notified) if (run) notifyRun(run, end);
    },
    remove(id) {
      const run = runs.get(id);
      if (!run) return;
      buffer.drop(run);
      run.want();
    },
  };
}
