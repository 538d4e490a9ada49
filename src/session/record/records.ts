/**
 * The records of runs: their events in the journals of their sessions, whichever process executes them. They are followed, and lost runs are taken over.
 *
 * @module
 */
import {
  type Journal,
  type JournalHead,
  type JournalPage,
  placeOf,
  runIdOf,
  type RunPlace,
} from "../../core/journal.ts";
import { anySignal } from "../../core/lib/cancellation.ts";
import { type Stop, stops } from "../../core/position.ts";
import { type Mail, SessionError, type SessionHead } from "../../core/session.ts";
import { openHead } from "../../core/session_version.ts";
import { reviewForRemoteRun, reviewsInput } from "../../core/start.ts";
import { UnreadableError, withRetries } from "../../core/store.ts";
import { brand } from "../../protocol/brand.ts";
import type { Event } from "../../protocol/event.ts";
import { emittedForm } from "../../protocol/question.ts";
import { type Followers, followers } from "../followers.ts";
import type { EventCursor, LiveRun, Owned, Requester, RunAddress, RunHost } from "./run_host.ts";
import { isRunning, leaseEnd, runOf } from "./run_state.ts";

// Errors of the records of runs.

/**
 * The reason of a `RecordError`.
 *
 * - `unknown`: there is no record of the run.
 * - `forgotten`: the next events have been deleted.
 * - `ahead`: the cursor is after the last event.
 * - `key-reused`: another request has the idempotency key.
 * - `repeated`: the same request is being handled, and its events cannot be joined.
 */
type RecordProblem = "unknown" | "forgotten" | "ahead" | "key-reused" | "repeated";

/** A request that the record of a run does not allow. Its message may be sent to the client. */
export class RecordError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "RecordError");

  override readonly name = "RecordError";

  /** Takes the message and the reason. */
  constructor(message: string, readonly code: RecordProblem) {
    super(message);
  }
}

// The records that a server uses: they follow and stop runs of any process.

/** The records of the runs of a server. For a requester, the records of other owners do not exist. */
export class Records {
  readonly #journal: Journal;
  readonly #host: RunHost;
  readonly #followers: Followers;

  /** Reads the records in `journal` of the runs of `host`. */
  constructor(journal: Journal, host: RunHost) {
    this.#journal = readableJournal(journal);
    this.#host = host;
    this.#followers = followers(this.#journal);
  }

  // Events.

  /**
   * Returns the events after a cursor and those that follow, until the run ends or pauses; nothing if it has, and no event is left. Throws a `RecordError` if
   * there is no such event.
   */
  async follow(
    { run, after }: EventCursor,
    requester: Requester,
    signal: AbortSignal,
  ): Promise<AsyncIterable<JournalPage> | undefined> {
    const place = placeOf(run);
    const page = place && await this.#journal.read(place.key, place.run, after);
    if (!place || !page || page.owner !== requester.owner) {
      throw new RecordError(`Cannot follow run "${run}": there is none`, "unknown");
    }
    const named = `run "${run}" after event ${after}`;
    if (after > page.last) throw new RecordError(`Cannot follow ${named}: the last is ${page.last}`, "ahead");
    if (after < page.last && page.first > after + 1) {
      throw new RecordError(`Cannot follow ${named}: the next events have been deleted`, "forgotten");
    }
    if (page.over && after === page.last) return undefined;
    if (!page.over) await this.#resumeIfLost(place.key, requester);
    const end = page.over ? page.last : undefined;
    if (page.first + page.lines.length - 1 === end) return only(page);
    // followers read the page again, and share its lines: in V8, a suspended generator that passes a page on keeps it
    return this.#pages(place, { after, end }, requester, signal);
  }

  /**
   * Yields the events after event `after`, up to event `end` if the run is over. If no event comes for the length of a lease, the process of the run may be
   * dead.
   */
  async *#pages(
    place: RunPlace,
    { after, end }: { readonly after: number; readonly end: number | undefined },
    requester: Requester,
    signal: AbortSignal,
  ): AsyncGenerator<JournalPage> {
    const over = new AbortController();
    const ends = anySignal([signal, over.signal, ...this.#host.signal ? [this.#host.signal] : []]);
    try {
      let at = after;
      while (!ends.aborted) {
        const silence = new AbortController();
        const startTimer = () => setTimeout(() => silence.abort(), this.#host.lease);
        let timer = startTimer();
        try {
          for await (const page of this.#followers.tail(place, at, anySignal([ends, silence.signal]))) {
            clearTimeout(timer);
            if (page.first > at + 1) return;
            yield page;
            at += page.lines.length;
            if (at === end) return;
            timer = startTimer();
          }
        } finally {
          clearTimeout(timer);
        }
        if (!silence.signal.aborted) return;
        await this.#resumeIfLost(place.key, requester);
      }
    } finally {
      over.abort(); // removes the listeners of `anySignal()` where `AbortSignal.any()` is missing
    }
  }

  /** Returns the last event of a run that has ended or paused, with its number; undefined if there is no such record. */
  async lastEvent(run: string, { owner }: Owned): Promise<Event | undefined> {
    const place = placeOf(run);
    const end = place && await this.#journal.read(place.key, place.run, Number.MAX_SAFE_INTEGER);
    return end?.over ? await this.event(run, end.last, { owner }) : undefined;
  }

  /** Returns an event of a run by its number; undefined if there is no such event, or if it was deleted. */
  async event(run: string, at: number, { owner }: Owned): Promise<Event | undefined> {
    const place = placeOf(run);
    const page = place && await this.#journal.read(place.key, place.run, at - 1);
    if (page?.first !== at || page.owner !== owner) return undefined;
    const [line] = page.lines;
    return line === undefined ? undefined : emittedForm(JSON.parse(line));
  }

  /** Resolves when a run of another process has ended or paused, when a lease has passed, or when `signal` aborts. Returns false if there is no such run. */
  async untilOver(run: string, { owner }: Owned, signal: AbortSignal): Promise<boolean> {
    const place = placeOf(run);
    const end = place && await this.#journal.read(place.key, place.run, Number.MAX_SAFE_INTEGER);
    if (!place || !end || end.over || end.owner !== owner) return false;
    const expired = new AbortController();
    const timer = setTimeout(() => expired.abort(), this.#host.lease);
    try {
      for await (const _ of this.#followers.tail(place, end.last, anySignal([signal, expired.signal])));
      return true;
    } finally {
      clearTimeout(timer);
      expired.abort(); // removes the listeners of `anySignal()` where `AbortSignal.any()` is missing
    }
  }

  // Stops and messages.

  /**
   * Stops a run that this process does not execute: it is executed elsewhere, is lost, or is paused. `rollback` restores the transcript to the start of the
   * run. Resolves once the stop is accepted, to whether there is such a run. A run that has ended counts as stopped.
   */
  async stop({ run }: RunAddress, requester: Requester, rollback = false): Promise<boolean> {
    const place = placeOf(run);
    if (!place) return false;
    const busy = `Cannot stop run "${run}": another process changed it during each attempt`;
    return await withRetries(async () => {
      const { head, session } = await this.#open(place.key, requester) ?? {};
      if (!head || !session || head.run < place.run) return false;
      if (runOf(session) !== run) return true; // it has ended
      if (isRunning(session) && !this.#isLost(session, requester)) {
        const mail = { type: "stop", reason: stops.stop.reason, ...(rollback && { rollback }) } as const;
        const entry = { type: "mail", id: crypto.randomUUID(), mail } as const;
        const { status } = await this.#journal.post(place.key, { run: place.run, entry });
        if (status === "posted") return true;
      }
      await this.#closeNow(run, session.id, stops.stop, requester, rollback); // rejects if the run's own process saved it at this moment
      return true;
    }).catch((error) => {
      throw error instanceof SessionError && error.code === "busy" ? new SessionError(busy, "busy", run) : error;
    });
  }

  /** Posts mail for a run that another process executes. The `input` hooks review it before. Returns whether there was room for it; nothing if there is no such run. */
  async send({ run }: RunAddress, mail: Mail, requester: Requester): Promise<boolean | undefined> {
    const place = placeOf(run);
    const { session: head } = place && await this.#open(place.key, requester) || {};
    if (!head || !isRunning(head, run)) return undefined;
    const reviewed = await this.#reviewed(head.id, mail, requester);
    return reviewed && await this.#host.post({ run, session: head.id }, reviewed, requester);
  }

  /** Runs the `input` hooks for a message. Returns nothing if its session is gone. */
  async #reviewed(id: string, mail: Mail, requester: Requester): Promise<Mail | undefined> {
    const { agent, onError } = this.#host;
    if (mail.type !== "message" || !reviewsInput(agent)) return mail;
    const session = await this.#host.load(id, requester);
    return session && await reviewForRemoteRun(agent, { session, mail, vars: requester.vars, onError });
  }

  /** Takes over the run that has a session and ends it. Returns the run while it ends, or nothing if another process was faster. */
  async close(run: string, session: string, stop: Stop, requester: Requester): Promise<LiveRun | undefined> {
    return await this.#closeNow(run, session, stop, requester).catch(unlessFaster);
  }

  /** Ends the run that has a session if its process has died, so that another run can have the session. Returns false if the run lives. */
  async releaseIfLost(session: SessionHead, requester: Requester): Promise<boolean> {
    const run = runOf(session);
    if (run === undefined || !this.#isLost(session, requester)) return false;
    await (await this.close(run, session.id, stops.lost, requester))?.untilOver();
    return true;
  }

  async #closeNow(run: string, session: string, stop: Stop, requester: Requester, rollback = false): Promise<LiveRun> {
    return await this.#host.launch({ run, session, answers: [], stop, rollback, busy: "replace" }, requester);
  }

  /** Opens the head of a journal, if the requester owns it. */
  async #open(
    key: string,
    { owner }: Owned,
  ): Promise<{ readonly head: JournalHead; readonly session: SessionHead } | undefined> {
    const opened = await openHead(this.#journal, key);
    return opened?.head.owner === owner ? opened : undefined;
  }

  /** Whether the process of the run that has the session is dead. */
  #isLost(session: SessionHead, requester: Requester): boolean {
    const run = runOf(session);
    if (run === undefined || !isRunning(session) || this.#host.executes(run, requester)) return false;
    return Date.now() >= leaseEnd(session) || this.#host.isDead(run, requester);
  }

  /** Continues the run that has a session, if its process is dead. */
  async #resumeIfLost(key: string, requester: Requester): Promise<void> {
    const { session } = await this.#open(key, requester) ?? {};
    const run = runOf(session);
    if (!session || run === undefined || !this.#isLost(session, requester)) return;
    await this.#host.launch({ run, session: session.id, answers: [] }, requester).catch(unlessFaster);
  }
}

/** Yields one page. */
async function* only(page: JournalPage): AsyncGenerator<JournalPage> {
  yield page;
}

/** Returns a journal that throws an `UnreadableError` for a page of events that is damaged, so that no client reads it. */
function readableJournal(journal: Journal): Journal {
  return {
    ...journal,
    async read(key, run, after) {
      const page = await journal.read(key, run, after);
      const cause = page && damageOf(page);
      if (!cause) return page;
      const message = `Cannot read the record of run "${runIdOf({ key, run })}": an event is damaged`;
      throw new UnreadableError(message, { subject: "record of the run", cause });
    },
  };
}

/** Returns the reason why no client may read a page: one of its lines is no JSON object, or a number is damaged. */
function damageOf({ first, last, lines }: JournalPage): unknown {
  try {
    const isWhole = Number.isInteger(first) && Number.isInteger(last) && lines.every(isObject);
    return isWhole ? undefined : new TypeError("it is not a list of objects");
  } catch (error) {
    return error;
  }
}

/** Returns true if a line is a JSON object. Throws if it is no JSON. */
function isObject(line: string): boolean {
  const value: unknown = JSON.parse(line);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns nothing for the error of a run that another process has taken over before. Throws any other error. */
function unlessFaster(error: unknown): undefined {
  if (!(error instanceof SessionError || error instanceof RecordError)) throw error;
}
