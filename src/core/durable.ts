/**
 * The writer of durable sessions, which saves the progress of a run, gives the run to another process, and takes over the run of one that died.
 *
 * @module
 */
import { cleanUp } from "./failure.ts";
import { conclude, openCalls } from "./finish.ts";
import { startTimer } from "./lib/cancellation.ts";
import type { RunResult } from "./points.ts";
import { type Position, type Stop, stops } from "./position.ts";
import type { EngineRun } from "./run.ts";
import {
  type Lease,
  leavesNothing,
  type Mail,
  mailedMessages,
  restoredSession,
  savedSession,
  type Unsaved,
} from "./session.ts";
import { isSameMark, openHead, type SessionVersion } from "./session_version.ts";
import {
  endedSession,
  type OpenWriter,
  outage,
  type SessionStore,
  type SessionWriter,
  withRetries,
  type WriterOptions,
} from "./store.ts";
import type { Event } from "../protocol/event.ts";
import { nextTick, promiseTry } from "../stream/tick.ts";

// Hand-over: a process that shuts down gives its runs to other processes.

/** Saves a session for another process to continue its run, and ends the lease. */
type Release = (session: Unsaved) => Promise<unknown>;

/**
 * Hands a run over. At the next safe place, or after `grace` milliseconds, its state is saved without its lease, and this process does nothing more for it.
 */
function handOver(run: EngineRun, release: Release, grace: number): void {
  const { control, loop, exit, events } = run;
  const releaseOnce = () => {
    const ends = control.aborted || events.closed || loop.detached || exit.current !== undefined;
    if (!ends) releaseNow(run, release);
  };
  control.releaseAfter(grace, releaseOnce);
  loop.stopAtSafePlace(releaseOnce);
}

/** Saves the state as it is now, and stops the work: no later event, move or save has an effect. If the state cannot be saved, the run counts as lost. */
function releaseNow(run: EngineRun, release: Release): void {
  const { events, loop, control, writer } = run;
  const saved = promiseTry(() => release(frozenSession(run))); // it throws if a hook has put a value into the state that is not JSON
  events.mute();
  loop.detach();
  const failed = (error: unknown) => {
    writer.close?.();
    events.report(error);
  };
  // clients reconnect when their streams close, and then find the run without its lease
  control.abort(stops.handedOver, { handedOver: saved.catch(failed).then(() => run.close()) });
}

/** Returns the session with a copy of its head, since hooks that unwind may change its state. It notes whether clients have seen a part of an answer: the next process takes it back. */
function frozenSession(run: EngineRun): Unsaved {
  const { messages, ...head } = savedSession(run);
  const session: Unsaved = { ...JSON.parse(JSON.stringify(head)), messages };
  const { run: saved } = session;
  if (run.work.partial === undefined || saved?.position.at !== "model") return session;
  return { ...session, run: { ...saved, position: { ...saved.position, shown: true } } };
}

// Take-over: a run whose process died or shut down continues here.

/** Prepares a run before its hooks begin: runs the cleanup of a run whose process died. Resolves to its result if it ends or is left before. */
async function takeOver(run: EngineRun): Promise<RunResult | undefined> {
  const { control, sink, limits, loop, claimed } = run;
  const { type, snapshot: { recoveries = 0 } } = claimed;
  await sink.settled?.(); // a run whose record the log refuses is taken over again and again
  const isLeft = restoredSession(run) !== undefined || !control.effects.saves || control.stop?.continues;
  if (isLeft || recoveries > limits.recoveries + 1) return await endWithoutHooks(run);
  if (type === "lost") {
    await cleanUp(run, { reason: stops.lost.reason, source: "stop", status: "aborted" }, openCalls(run, loop.position));
  }
  return undefined;
}

/** Ends a run before its hooks begin. Another process continues it, or its process has also died when the run was to end: perhaps in one of its hooks. */
function endWithoutHooks(run: EngineRun): Promise<RunResult> {
  const { work, control, exit, steering, claimed } = run;
  void work.cleanUp(() => Promise.resolve()); // there is one cleanup
  control.abort(claimed.type === "closing" ? claimed.stop : stops.recoveries);
  exit.settle();
  steering.close();
  return conclude(run);
}

// Sessions to save: what the run has at a moment, and what is added when it is stored.

/** A session to save. */
interface Draft {
  readonly session: Unsaved;
  /** The messages from other processes that have arrived since it was read. */
  readonly arrived: Mail[];
  /** True if the lease ends with it: another process continues the run. */
  readonly released: boolean;
}

/** Returns the session of a draft as it is stored: with the messages that arrived meanwhile and, if the run goes on, a lease of `leaseTime` milliseconds. */
function sessionToStore(
  { session, arrived, released }: Draft,
  run: EngineRun,
  leaseTime: number,
): Unsaved {
  if (!session.run) {
    const late = run.loop.transcript.rolledBack ? [] : mailedMessages(arrived);
    return { ...session, messages: [...session.messages, ...late] };
  }
  const stop = stopToSave(run);
  const lease: Lease = {
    until: Math.ceil(Date.now() + (released ? 0 : leaseTime)),
    ...((released || session.lease?.released) && { released: true }),
    ...(stop && { closing: stop.reason, ...(stop.requested && { requested: true }) }),
    ...(stop && run.control.effects.rollback && { rollback: true }),
  };
  return {
    ...session,
    ...(!session.run.exit && { lease }),
    ...(arrived.length > 0 && { mail: [...session.mail ?? [], ...arrived] }),
  };
}

/** Returns the stop with which a process that takes over ends the run, if the run is being stopped. */
function stopToSave(run: EngineRun): Stop | undefined {
  const { control: { stop }, claimed, exit } = run;
  const isEnding = stop && !stop.continues && !restoredSession(run) && exit.current?.status !== "failed";
  return isEnding ? stop : claimed.type === "closing" ? claimed.stop : undefined;
}

// The session of a run in its store, under the lease of this process: it is changed one save after another, and its lease is renewed.

/** Changes the stored session of one run, and receives the messages that other processes put into it. */
class StoredSession {
  readonly #store: SessionStore;
  readonly #run: EngineRun;
  /** Milliseconds for which a save claims the session. */
  readonly #leaseTime: number;
  /** Makes the marks of this writer's saves. */
  readonly #holder = crypto.randomUUID();
  /** The version that is stored, and the one that a save has tried to store. */
  #version: SessionVersion;
  #tried: { readonly version: SessionVersion; readonly draft: Draft; readonly lease: Lease | undefined } | undefined;
  /** The lease that is stored. */
  #storedLease: Lease | undefined;
  /** The draft that is stored, and the one that is saved next. */
  #stored: Draft | undefined;
  #next: Draft | undefined;
  /** Messages that arrive after the run has taken its last ones, until the last draft is read. */
  #late: Mail[] | undefined;
  /** The last change that has begun. */
  #running: Promise<unknown> = Promise.resolve();
  #closed = false;
  #isGone = false;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(store: SessionStore, run: EngineRun, leaseTime: number) {
    this.#store = store;
    this.#run = run;
    this.#leaseTime = leaseTime;
    this.#version = run.claimed.version;
    run.control.onAbort(() => this.isStored && !this.#isStopKnown && this.#renewAfter(0)); // if the process dies before the run ends, another one ends it
  }

  /** True if the store has the run. */
  get isStored(): boolean {
    return this.#stored !== undefined;
  }

  /** Milliseconds until the stored lease ends. */
  get #leaseLeft(): number {
    return (this.#storedLease?.until ?? Infinity) - Date.now();
  }

  /**
   * True if the store has the reason why the run is being stopped, or need not have it: a process that takes over has to know that the run ends. No process takes
   * over a paused run, which has no lease.
   */
  get #isStopKnown(): boolean {
    return !this.#run.control.effects.saves || !this.#storedLease ||
      this.#storedLease.closing === stopToSave(this.#run)?.reason;
  }

  /** The first save fails soon, since nothing depends on it; so does each save of a run that is stopped or handed over, since its process may end. */
  readonly #patience = (): number => {
    const isLeaving = stopToSave(this.#run) !== undefined || this.#next?.released;
    return this.isStored && !isLeaving ? outage : 0;
  };

  /** Keeps the messages that arrive from now on for the last draft: the run reads no more. */
  keepLate(): void {
    this.#late ??= [];
  }

  /** Returns a session as the draft that is saved next. It receives the messages that arrive before it is stored. */
  draft(session: Unsaved, last: boolean, released: boolean): Draft {
    const arrived = (last && this.#late) || [];
    if (last) this.#late = undefined;
    return this.#next = { session, arrived, released };
  }

  /** Writes one draft after another. If another process has the session, it also logs the events from then on. */
  write(draft: Draft, last: boolean): Promise<boolean> {
    if (this.#closed) return Promise.resolve(true);
    this.#closed = last;
    return this.#inTurn(() => last && leavesNothing(this.#run) ? this.#remove() : this.#put(draft));
  }

  /**
   * Changes the stored session after the change before, until that succeeds. If the lease has ended meanwhile, it is renewed before the run goes on. Resolves to
   * false if another process has the session.
   */
  #inTurn(change: () => Promise<boolean>): Promise<boolean> {
    const done = this.#running.then(async () => {
      clearTimeout(this.#renewal);
      while (!await change() || (this.#leaseLeft <= 0 && !this.#closed && !await this.#extend())) {
        if (await this.#receive()) continue;
        this.#run.sink.yield?.(); // the process that has the session logs the events
        return false;
      }
      // a change that was retried leaves less than a lease
      this.#renewAfter(this.#isStopKnown ? this.#leaseLeft - this.#leaseTime * 2 / 3 : 0);
      return true;
    });
    this.#running = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }

  /** Stores a draft. Its lease is stored once a third of the stored one has passed, since an index contains it. Returns false if another process was faster. */
  async #put(draft: Draft): Promise<boolean> {
    const session = sessionToStore(draft, this.#run, this.#leaseTime);
    const { lease } = session;
    const storedLease = this.#storedLease;
    const movesLease = !lease || !storedLease || draft.released || this.#leaseLeft <= this.#leaseTime * 2 / 3;
    const { addition, version } = this.#version.next(session, { holder: this.#holder, isWriter: true, movesLease });
    this.#tried = { version, draft, lease: movesLease ? lease : { ...lease, until: storedLease.until } };
    if (!await withRetries(() => this.#store.append(session.id, addition), this.#patience)) return false;
    this.#confirm(version);
    return true;
  }

  /** Notes that the draft which was tried last is stored. */
  #confirm(version: SessionVersion): void {
    this.#version = version;
    this.#storedLease = this.#tried?.lease;
    this.#stored = this.#tried?.draft;
    this.#tried = undefined;
  }

  /** Deletes the session. */
  async #remove(): Promise<boolean> {
    await withRetries(() => this.#store.delete(this.#run.session), this.#patience);
    return true;
  }

  /** Takes the messages that other processes put into the session. Returns false if they changed anything else. Reports a session that is gone. */
  async #receive(): Promise<boolean> {
    const id = this.#run.session;
    const { session: found, version } = await withRetries(() => openHead(this.#store, id), this.#patience);
    if (!found && this.#stored && !this.#isGone) {
      this.#isGone = true;
      this.#run.events.report(new Error(`Cannot continue session "${id}": the store has lost it`));
    }
    const { run, mail = [], lease } = found ?? {};
    if (isSameMark(version.writer, this.#tried?.version.mark)) this.#confirm(this.#tried!.version); // only the acknowledgement was lost
    const arrived = mail.slice(
      this.#stored?.arrived.length ?? this.#run.claimed.mail.length + (this.#next?.arrived.length ?? 0),
    );
    if (run?.id !== this.#run.id || arrived.length === 0 || !isSameMark(version.writer, this.#version.writer)) {
      return false;
    }
    this.#version = this.#version.followedBy(version);
    this.#storedLease = lease;
    this.#run.steering.receive(arrived);
    this.#late?.push(...arrived);
    for (const draft of new Set([this.#stored, this.#next])) draft?.arrived.push(...arrived);
    return true;
  }

  /** Renews the lease, and saves nothing else. A failure is retried at the next renewal. */
  async #renew(): Promise<void> {
    if (this.#closed) return;
    try {
      // a renewal follows a save, so there is a draft
      const renewed = await this.#inTurn(() => this.#isStopKnown ? this.#extend() : this.#put(this.#stored as Draft));
      if (!renewed) this.#run.control.abort(stops.lost);
    } catch (error) {
      this.#run.events.report(error);
      this.#renewAfter(this.#leaseTime / 3);
    }
  }

  /** Moves the end of the stored lease. A move that failed may have been stored all the same, which counts as a success. */
  async #extend(lease = this.#leaseTime): Promise<boolean> {
    const until = Math.ceil(Date.now() + lease);
    const moved = await withRetries(async (attempt) => {
      const session = {
        id: this.#run.session,
        version: this.#version.n,
        ...(this.#storedLease && { lease: this.#storedLease }),
      };
      if (await this.#store.touch(session, until)) return true;
      if (attempt === 0) return false;
      const { version, session: { lease } = {} } = await openHead(this.#store, this.#run.session);
      return version.n === this.#version.n && lease?.until === until;
    });
    if (moved) this.#storedLease = { ...this.#storedLease, until };
    return moved;
  }

  /** Ends the lease of the session as it is stored. */
  expire(): Promise<boolean> {
    this.#closed = true;
    return this.#inTurn(() => this.#extend(0));
  }

  /** Renews the lease after `ms` milliseconds. */
  #renewAfter(ms: number): void {
    clearTimeout(this.#renewal);
    if (!this.#closed) this.#renewal = startTimer(() => void this.#renew(), ms); // #renew() reports its failures
  }

  /** Changes nothing more, and stops renewing the lease. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#renewal);
  }
}

// The writer of a run: what it saves at which moment.

/** Creates the writer of a run in a store that outlives the process. */
export const durableWriter: OpenWriter = (store, run: EngineRun, options) => new DurableWriter(store, run, options);

/** Writes the session of one run. Saves are requested one after another, in order. */
class DurableWriter implements SessionWriter {
  readonly #store: SessionStore;
  readonly #run: EngineRun;
  readonly #always: boolean;
  readonly #session: StoredSession;
  /** The last requested save, and one that was requested and has not begun. */
  #requested: Promise<unknown> = Promise.resolve();
  #pending: Promise<boolean> | undefined;
  /** The session that is saved in place of the run as it is, until that is done. */
  #frozen: Unsaved | undefined;
  #ending = false;
  /** Cancels a checkpoint that waits for the next tick of the event loop. */
  #cancelLater: (() => void) | undefined;

  constructor(store: SessionStore, run: EngineRun, { always, lease }: WriterOptions) {
    this.#store = store;
    this.#run = run;
    this.#always = always;
    this.#session = new StoredSession(store, run, lease);
  }

  /** True if the run has a named session, or has been saved. */
  get #saves(): boolean {
    return this.#always || this.#session.isStored;
  }

  claim(): Promise<boolean> {
    return this.#save();
  }

  checkpoint(_: Position, urgent: boolean): Promise<void> | undefined {
    if (!this.#saves) return undefined;
    if (urgent) return this.#orLeave(this.#saveOrAbort());
    this.#cancelLater ??= nextTick(() => this.#saveLater());
    return undefined;
  }

  saveNow(): Promise<void> | undefined {
    return this.#always ? this.#orLeave(this.#saveOrAbort()) : undefined;
  }

  async saveFrozen(): Promise<void> {
    this.#frozen = savedSession(this.#run);
    await this.#orLeave(this.#saveOrAbort()).finally(() => this.#frozen = undefined);
  }

  end(last: Event | undefined): Promise<boolean> {
    if (last && !this.#saves) return Promise.resolve(true);
    if (last) this.#session.keepLate();
    return this.#orLeave(this.#request(() => {
      const session = savedSession(this.#run);
      return last ? endedSession(session, last) : session;
    }, true));
  }

  takeOver(): Promise<RunResult | undefined> {
    return takeOver(this.#run);
  }

  handOver(grace: number): void {
    if (this.#always) handOver(this.#run, (session) => this.#release(session), grace);
    else this.#run.control.abort(stops.shutdown);
  }

  /** Saves the session for another process, also in place of saves that were requested before. If its events cannot be logged, it stays as it was saved. */
  #release(session: Unsaved): Promise<boolean> {
    this.#session.keepLate();
    this.#frozen = session;
    return this.#request(() => session, true, true).finally(() => this.close());
  }

  close(): void {
    this.#ending = true;
    this.#session.close();
    this.#cancelLater?.();
  }

  /** Saves a checkpoint that has waited. The save may be one that was requested before, so the next checkpoint waits anew. */
  #saveLater(): void {
    this.#cancelLater = undefined;
    this.#saveOrAbort().catch((error) => this.#run.events.report(error));
  }

  async #saveOrAbort(): Promise<void> {
    if (!await this.#save()) this.#run.control.abort(stops.lost);
  }

  /** Stops logging if a save fails: the run has not come this far, and continues elsewhere from its last save. */
  async #orLeave<T>(saved: Promise<T>): Promise<T> {
    try {
      return await saved;
    } catch (error) {
      if (this.#always) this.#run.sink.yield?.();
      throw error;
    }
  }

  /** Saves the run as it is when the save begins. Requests that arrive before share it. */
  #save(): Promise<boolean> {
    if (!this.#saves) return Promise.resolve(true);
    return this.#pending ??= this.#request(() => {
      this.#pending = undefined;
      const isUndone = this.#run.loop.transcript.rolledBack; // the last save follows: a run without its prompt could not continue
      return this.#frozen ?? (isUndone ? undefined : savedSession(this.#run));
    }, false);
  }

  /** Queues a save. It waits until the events that the session knows of are logged. Nothing is saved if `read` returns nothing. */
  #request(read: () => Unsaved | undefined, last: boolean, released = false): Promise<boolean> {
    if (this.#ending) return Promise.resolve(true);
    this.#ending = last;
    this.#cancelLater?.();
    this.#cancelLater = undefined;
    const done = this.#requested.then(async () => {
      const session = read();
      if (!session) return true;
      const draft = this.#session.draft(session, last, released);
      const isLogged = await this.#run.sink.settled?.() ?? true;
      if (!this.#run.control.effects.saves) return true;
      if (released && !isLogged) return await this.#session.expire();
      return await this.#session.write(draft, last);
    });
    this.#requested = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }
}
