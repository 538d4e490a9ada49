/**
 * Following runs: the followers of a run share what is read.
 *
 * Each follower belongs to a request, and on Cloudflare Workers a promise or a timer of another request may never settle. So followers share lines, and one of them
 * reads for the others in its own request. They wait for it with promises and timers of their own, and after a while one of them reads again.
 *
 * @module
 */
import { type Journal, type JournalPage, runIdOf, type RunPlace } from "../core/journal.ts";
import { startTimer } from "../core/lib/cancellation.ts";
import { endOfLines } from "../stream/sse.ts";
import { pageLength } from "./pieces.ts";

/** The followers of the runs in a journal, within one process. */
export interface Followers {
  /**
   * Yields the events after event `after` of a run, and those that are added later, page by page. Ends when the run is over, when there is no such record, and
   * when `signal` aborts.
   */
  tail(run: RunPlace, after: number, signal: AbortSignal): AsyncIterable<JournalPage>;
}

/** The end of a record, and its session. */
type End = Omit<JournalPage, "first" | "lines">;

/** The milliseconds for which followers wait for a read of another one. After that, one of them reads, too. */
const patience = 250;

/** The most characters that followers keep. */
const bufferLength = 8 * pageLength;

/** Lines without a gap, which grow at their end. */
interface Chunk {
  readonly run: FollowedRun;
  readonly first: number;
  readonly lines: string[];
  length: number;
}

/** A read of one follower, for which others wait. */
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
  /** The end of the record; undefined if there is none. */
  end: End | undefined;
  /** The number of reads that are over. */
  reads = 0;
  failure: { readonly error: unknown } | undefined;
  /** Ends the notifications. */
  unwatch = () => {};
  readonly reading = new Map<number, SharedStep>();
  readonly chunks = new Set<Chunk>();
  /** Functions that end the waits of followers. */
  readonly waiting = new Set<() => void>();

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
 * Creates the followers of the runs in a journal. Those of a run share each read, and the lines that it returns, up to a number of characters for the whole journal; a
 * follower that is slower reads for itself.
 */
export function followers(journal: Journal): Followers {
  const { pollEvery = Infinity } = journal;
  const runs = new Map<string, FollowedRun>();
  const buffer = new LineBuffer();

  function join(place: RunPlace): FollowedRun {
    const id = runIdOf(place);
    const known = runs.get(id);
    const run = known ?? new FollowedRun();
    run.followers++;
    if (known) return run;
    runs.set(id, run);
    run.unwatch = journal.watch(place.key, {
      notify: () => run.want(),
      fail(error) {
        run.failure = { error };
        run.wake();
      },
    });
    return run;
  }

  function leave(place: RunPlace, run: FollowedRun): void {
    if (--run.followers > 0) return;
    const id = runIdOf(place);
    if (runs.get(id) === run) runs.delete(id);
    buffer.drop(run);
    run.unwatch();
  }

  /** Keeps what a read has returned that began at the time `began`. */
  function learn(run: FollowedRun, began: number, page: JournalPage | undefined): void {
    run.reads++;
    const { end } = run;
    const last = page ? lastIn(page) : 0;
    const lastKnown = end?.last ?? 0;
    const isNewest = last > lastKnown || began >= run.knownAt; // others may overlap
    if (isNewest && last < lastKnown) buffer.drop(run); // the record was deleted, and may have begun again
    if (page) buffer.put(run, page.first, page.lines);
    if (began >= run.readAt) run.readAt = began;
    if (!isNewest) return;
    run.end = page && { ...endOf(page), last };
    run.knownAt = ++run.clock;
    if (last !== lastKnown || page?.over !== end?.over) run.wake();
  }

  /** Reads a page for a follower, and for those that wait for `shared`. */
  async function readPage(
    place: RunPlace,
    run: FollowedRun,
    at: number,
    shared: SharedStep,
  ): Promise<JournalPage | undefined> {
    const began = ++run.clock;
    let outcome: "over" | "failed" = "failed";
    try {
      const page = await journal.read(place.key, place.run, at);
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
    }, pollEvery);
    run.waiting.add(resolve);
    onWait(resolve);
    await promise;
    clearTimeout(timer);
    run.waiting.delete(resolve);
  }

  async function* tail(place: RunPlace, after: number, signal: AbortSignal): AsyncGenerator<JournalPage> {
    if (signal.aborted) return;
    const run = join(place); // before the first read, so that no addition in between is missed
    let endWait = () => {};
    const onWait = (end: () => void) => void (endWait = end);
    let hasLeft = false;
    const leaveOnce = () => {
      if (!hasLeft) leave(place, run);
      hasLeft = true;
    };
    const onAbort = () => { // the request may have ended, so that nothing continues after this
      endWait();
      leaveOnce();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const joined = ++run.clock;
      /** The last event of the record when a read found no line after `at`. */
      let emptyUntil = 0;
      let isAlone = false;
      for (let at = after; !signal.aborted;) {
        if (run.failure) throw run.failure.error;
        const { end } = run;
        if (at > after && end && end.last < at) return; // an older state, or another record: nothing continues what was read
        const wanted = Math.max(joined, run.wanted);
        const lines = buffer.linesAfter(run, at);
        const shared = run.reading.get(at);
        if (lines && end) {
          at += lines.length;
          yield { ...end, first: at - lines.length + 1, lines, last: Math.max(end.last, at) };
        } else if (run.readAt >= wanted && Math.max(at, emptyUntil) >= (end?.last ?? 0)) {
          if (!end || end.over) return;
          await untilWanted(run, onWait);
        } else if (shared && !isAlone) {
          const outcome = await shared.outcome(onWait);
          if (outcome === "late" && run.reading.get(at) === shared) run.reading.delete(at);
          isAlone = outcome === "failed"; // the read of another request may succeed
        } else {
          const step = new SharedStep();
          if (!shared) run.reading.set(at, step);
          isAlone = false;
          const reading = readPage(place, run, at, step);
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

  return { tail };
}

/** Returns the number of the last event that a page tells of: a database may read the head of a record before its lines. */
function lastIn({ first, lines, last }: JournalPage): number {
  return lines.length > 0 ? Math.max(last, first + lines.length - 1) : last;
}

function endOf({ first: _, lines: __, ...end }: JournalPage): End {
  return end;
}
