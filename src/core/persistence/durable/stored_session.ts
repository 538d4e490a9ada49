/**
 * The session of a run in its store, under the lease of this process: it is changed one save after another, and its lease is renewed.
 *
 * @module
 */
import { startTimer } from "../../lib/cancellation.ts";
import type { EngineRun } from "../../run/run.ts";
import { outage, withRetries } from "../retries.ts";
import { leavesNothing } from "../saved_session.ts";
import type { Lease, Mail, Unsaved } from "../session.ts";
import { isSameMark, openHead, type SessionVersion } from "../session_version.ts";
import type { SessionStore } from "../store.ts";
import { closingOf, type Draft, sessionToStore } from "./draft.ts";

/** Changes the stored session of one run, and receives the messages that other processes put into it. */
export class StoredSession {
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
  #held: Lease | undefined;
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
    return (this.#held?.until ?? Infinity) - Date.now();
  }

  /**
   * True if the store has the reason why the run is being stopped, or need not have it: a process that takes over has to know that the run ends. No process takes
   * over a paused run, which has no lease.
   */
  get #isStopKnown(): boolean {
    return this.#run.control.stop.leave || !this.#held || this.#held.closing === closingOf(this.#run);
  }

  /** The first save fails soon, since nothing depends on it; so does each save of a run that is stopped or handed over, since its process may end. */
  readonly #patience = (): number => {
    const isLeaving = closingOf(this.#run) !== undefined || this.#next?.released;
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
    const held = this.#held;
    const movesLease = !lease || !held || draft.released || this.#leaseLeft <= this.#leaseTime * 2 / 3;
    const { addition, version } = this.#version.next(session, { holder: this.#holder, isWriter: true, movesLease });
    this.#tried = { version, draft, lease: movesLease ? lease : { ...lease, until: held.until } };
    if (!await withRetries(() => this.#store.append(session.id, addition), this.#patience)) return false;
    this.#confirm(version);
    return true;
  }

  /** Notes that the draft which was tried last is stored. */
  #confirm(version: SessionVersion): void {
    this.#version = version;
    this.#held = this.#tried?.lease;
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
    this.#held = lease;
    this.#run.arrivals.receive(arrived);
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
      if (!renewed) this.#run.control.abort("lost");
    } catch (error) {
      this.#run.events.report(error);
      this.#renewAfter(this.#leaseTime / 3);
    }
  }

  /** Moves the end of the stored lease. A move that failed may have been stored all the same, which counts as a success. */
  async #extend(lease = this.#leaseTime): Promise<boolean> {
    const until = Math.ceil(Date.now() + lease);
    const moved = await withRetries(async (attempt) => {
      const session = { id: this.#run.session, version: this.#version.n, ...(this.#held && { lease: this.#held }) };
      if (await this.#store.touch(session, until)) return true;
      if (attempt === 0) return false;
      const { version, session: { lease } = {} } = await openHead(this.#store, this.#run.session);
      return version.n === this.#version.n && lease?.until === until;
    });
    if (moved) this.#held = { ...this.#held, until };
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
