/**
 * The writer of a run: what it saves of its session at which moment, and the mail that it receives from other processes.
 *
 * @module
 */
import { journalKey, type MailEntry } from "./journal.ts";
import { claimOpened, type JournalProgress, JournalWriter } from "./journal_writer.ts";
import { startTimer } from "./lib/cancellation.ts";
import type { RunResult } from "./points.ts";
import { type Position, type Stop, stopFor, stops } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { leavesNothing, type Mail, mailedMessages, restoredSession, savedSession, type Unsaved } from "./session.ts";
import { waitingCount } from "./steering.ts";
import { outage, type RunStore } from "./store.ts";
import type { Event } from "../protocol/event.ts";
import { nextTick } from "../stream/tick.ts";

/** The options of a writer. */
export interface WriterOptions {
  /** True to save the run while it runs. False to save only a pause: the run has no named session. */
  readonly always: boolean;
  /** Milliseconds for which a save claims the session. */
  readonly lease: number;
  /** The owner under which the session is stored. */
  readonly owner: string | undefined;
}

/** A session to save, and what belongs to it. */
interface Draft {
  readonly session: Unsaved;
  /** The number of the last entry whose mail the session contains. */
  readonly taken: number;
  /** The mail that has arrived since it was read. */
  readonly arrived: Mail[];
  /** True if another process continues the run. */
  readonly released: boolean;
}

/** Writes the session of one run. Saves are requested one after another, in order. A class, because a server keeps one for each stream. */
export class SessionWriter {
  readonly #store: RunStore;
  readonly #run: EngineRun;
  readonly #always: boolean;
  /** Milliseconds for which a save claims the session. */
  readonly #leaseTime: number;
  readonly #owner: string | undefined;
  /** The writer of the journal, once it has the session. */
  #journal: JournalWriter | undefined;
  /** The draft that is stored, and the one that is saved next. */
  #stored: Draft | undefined;
  #next: Draft | undefined;
  /** Messages that arrive after the run has taken its last ones, until the last draft is read. */
  #late: Mail[] | undefined;
  /** The reason of a stop that the journal has. */
  #storedStop: string | undefined;
  /** The last requested save, and one that was requested and has not begun. */
  #requested: Promise<unknown> = Promise.resolve();
  #pending: Promise<boolean> | undefined;
  /** The session that is saved in place of the run as it is, until that is done. */
  #frozen: Unsaved | undefined;
  #ending = false;
  #closed = false;
  #isGone = false;
  /** Cancels a checkpoint that waits for the next tick of the event loop. */
  #cancelLater: (() => void) | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(store: RunStore, run: EngineRun, { always, lease, owner }: WriterOptions) {
    this.#store = store;
    this.#run = run;
    this.#always = always;
    this.#leaseTime = lease;
    this.#owner = owner;
    run.control.onAbort(() => this.#isOpen && !this.#isStopKnown && this.#renewAfter(0)); // if the process dies before the run ends, another one ends it
  }

  /** True if the run has a named session, or has been saved. */
  get #saves(): boolean {
    return this.#always || this.#journal !== undefined;
  }

  /** True while the journal has the run, and this writer changes it. */
  get #isOpen(): boolean {
    return this.#journal !== undefined && !this.#closed;
  }

  /**
   * True if the journal has the reason why the run is being stopped, or need not have it: a process that takes over has to know that the run ends. No process
   * takes over a paused run.
   */
  get #isStopKnown(): boolean {
    const isPaused = this.#stored?.session.run?.exit !== undefined;
    return !this.#run.control.effects.saves || isPaused || this.#storedStop === this.#stopToSave()?.reason;
  }

  // What is saved when.

  /** Saves the claim of the session. Resolves to false if another process has it. */
  claim(): Promise<boolean> {
    return this.#save();
  }

  /**
   * Saves the run at a position. Aborts the run if another process has the session. A checkpoint that is not urgent may wait, and is left out if another save
   * follows. Without another process that could continue it, the run is saved once for each turn. Returns no promise if nothing is to be saved.
   */
  checkpoint(position: Position, urgent: boolean): Promise<void> | undefined {
    if (!this.#saves) return undefined;
    if (!this.#store.durable && !(position.at === "model" && position.turn > 1)) return undefined;
    if (urgent) return this.#orLeave(this.#saveOrAbort());
    this.#cancelLater ??= nextTick(() => this.#saveLater());
    return undefined;
  }

  /** Saves the run at once, if it is saved while it runs and another process could continue it. */
  saveNow(): Promise<void> | undefined {
    return this.#always && this.#store.durable ? this.#orLeave(this.#saveOrAbort()) : undefined;
  }

  /** Saves the run as it is now: later changes are not saved until that is done. */
  saveFrozen(): Promise<void> | undefined {
    if (!this.#store.durable) return undefined;
    this.#frozen = savedSession(this.#run);
    return this.#orLeave(this.#saveOrAbort()).finally(() => this.#frozen = undefined);
  }

  /** Saves the session for the last time: with the paused run, or with the run's last event. Resolves to false if another process has it. */
  async end(last: Event | undefined): Promise<boolean> {
    if (last && !this.#saves) return await this.#keepEnd(last);
    if (last) this.#late ??= [];
    try {
      return await this.#orLeave(this.#request(() => {
        const session = savedSession(this.#run);
        return last ? endedSession(session, last) : session;
      }, true));
    } catch (error) {
      if (!this.#store.durable) await this.#removeRun(); // otherwise the session stays busy: no other process ends the run
      throw error;
    }
  }

  /** Prepares a run whose process died or shut down, before its hooks begin. Resolves to its result if it ends or is left before. */
  takeOver(): Promise<RunResult | undefined> | undefined {
    return this.#store.durable?.takeOver(this.#run as never); // it reads the runs of this package
  }

  /** Gives the run to another process, at the next safe place or after `grace` milliseconds. */
  handOver(grace: number): void {
    const { durable } = this.#store;
    if (!this.#always || !durable) this.#run.control.abort(stops.shutdown);
    else durable.handOver(this.#run as never, (session) => this.#release(session), grace); // as `takeOver()`
  }

  /** Changes nothing more, and stops renewing the lease. */
  close(): void {
    this.#ending = true;
    this.#closed = true;
    clearTimeout(this.#renewal);
    this.#cancelLater?.();
  }

  /** Saves the session for another process, also in place of saves that were requested before. If its events cannot be logged, it stays as it was saved. */
  #release(session: Unsaved): Promise<boolean> {
    this.#late ??= [];
    this.#frozen = session;
    return this.#request(() => session, true, true).finally(() => this.close());
  }

  /** Keeps a run that was not saved. It ends as usual if there is no room for it. */
  async #keepEnd(last: Event): Promise<true> {
    const { control, loop, events, sink, parent } = this.#run;
    await sink.settled?.();
    const { unsaved } = this.#store;
    const isEmpty = !control.effects.saves || control.effects.undo || loop.transcript.messages.length === 0;
    if (!unsaved || parent || isEmpty) return true;
    try {
      unsaved.keep(endedSession(savedSession(this.#run), last));
    } catch (error) {
      events.report(error);
    }
    return true;
  }

  /** Removes the run from the session as it is stored, which takes less room. */
  async #removeRun(): Promise<void> {
    const { run: _, ...session } = this.#stored?.session ?? savedSession(this.#run);
    await this.#journal?.put(() => ({ session }));
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
      if (this.#always && this.#store.durable) this.#run.sink.yield?.();
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
      const draft = this.#draftOf(session, last, released);
      const isLogged = await this.#run.sink.settled?.() ?? true;
      if (!this.#run.control.effects.saves) return true;
      return await this.#write(draft, last, isLogged);
    });
    this.#requested = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }

  // The journal of the run's session: one change after another, and the renewal of the lease.

  /** Returns a session as the draft that is saved next. It receives the messages that arrive before it is stored. */
  #draftOf(session: Unsaved, last: boolean, released: boolean): Draft {
    const { mail: unread = [], taken = this.#journal?.last ?? this.#run.claimed.opened?.head.last ?? 0 } = session;
    const arrived = [...unread, ...(last && this.#late) || []];
    if (last) this.#late = undefined;
    return this.#next = { session, taken, arrived, released };
  }

  /** Writes one draft after another. If another process has the session, it also logs the events from then on. */
  async #write(draft: Draft, last: boolean, isLogged: boolean): Promise<boolean> {
    if (this.#closed) return true;
    this.#closed = last;
    clearTimeout(this.#renewal);
    const isStored = await this.#put(draft, isLogged);
    if (!isStored) {
      await this.#reportLoss();
      this.#run.sink.yield?.(); // the process that has the session logs the events
    } else if (!this.#closed) this.#renewLater();
    return isStored;
  }

  async #put(draft: Draft, isLogged: boolean): Promise<boolean> {
    const journal = this.#journal;
    if (journal && leavesNothing(this.#run) && this.#closed) return await this.#remove();
    if (!journal) return await this.#claim(draft);
    if (draft.released && !isLogged) return await journal.release();
    if (!await this.#storeDraft(journal, draft)) return false;
    return this.#closed || Date.now() < journal.leaseEnd || await journal.renew(); // a change that was retried may take longer than the lease
  }

  /** Stores a draft. */
  async #storeDraft(journal: JournalWriter, draft: Draft): Promise<boolean> {
    let stop: Stop | undefined;
    const isStored = await journal.put(() => {
      stop = this.#stopToSave();
      return this.#progressOf(draft, stop);
    });
    if (!isStored) return false;
    this.#stored = draft;
    this.#storedStop = stop?.reason;
    return true;
  }

  /** Claims the session with its first draft. */
  async #claim(draft: Draft): Promise<boolean> {
    const { claimed, claimed: { opened } } = this.#run;
    const key = this.#key;
    const { journal } = this.#store;
    const options = {
      ...{ journal, key, lease: this.#leaseTime, patience: this.#patience },
      onMail: (entry: MailEntry) => this.#receive(entry),
    };
    const stop = this.#stopToSave();
    const { session: saved, taken } = this.#progressOf(draft, stop);
    const begins = claimed.type === "new";
    this.#journal = await claimOpened(options, opened, { session: saved, begins, taken, owner: this.#owner });
    if (!this.#journal) return false;
    this.#stored = draft;
    this.#storedStop = stop?.reason;
    return true;
  }

  /** Returns the session of a draft as it is stored: with the messages that arrived meanwhile if the run ends, and otherwise with the stop that ends it. */
  #progressOf({ session, taken, arrived, released }: Draft, stop: Stop | undefined): JournalProgress {
    const { loop, control } = this.#run;
    if (!session.run) {
      const late = loop.transcript.rolledBack ? [] : mailedMessages(arrived);
      return { session: { ...session, messages: [...session.messages, ...late] } };
    }
    const lease = {
      until: 0,
      ...((released || session.lease?.released) && { released: true }),
      ...(stop && { closing: stop.reason, ...(stop.requested && { requested: true }) }),
      ...(stop && control.effects.rollback && { rollback: true }),
    };
    const { lease: _, mail: __, ...rest } = session;
    const waiting = waitingCount(session.run.state) + arrived.filter(({ type }) => type === "message").length;
    return { session: { ...rest, ...(!session.run.exit && { lease }) }, waiting, taken, released };
  }

  /** Returns the stop with which a process that takes over ends the run. In memory, that is any run: its calls since the last save may have had effects that are not known. */
  #stopToSave(): Stop | undefined {
    if (!this.#store.durable) return stops.lost;
    const { control: { stop }, claimed, exit } = this.#run;
    const isEnding = stop && !stop.continues && !restoredSession(this.#run) && exit.current?.status !== "failed";
    return isEnding ? stop : claimed.type === "closing" ? claimed.stop : undefined;
  }

  /** Deletes the session. */
  async #remove(): Promise<boolean> {
    await this.#store.journal.delete(this.#key);
    return true;
  }

  get #key(): string {
    const { claimed, session } = this.#run;
    return claimed.key ?? journalKey(this.#owner, session);
  }

  /** The first save fails soon, since nothing depends on it; so does each save of a run that is stopped or handed over, since its process may end. */
  readonly #patience = (): number => {
    const isLeaving = this.#run.control.aborted || this.#next?.released;
    return this.#journal && !isLeaving ? outage : 0;
  };

  /** Receives mail: it waits for the run, and for the drafts that do not contain it. */
  #receive({ mail }: MailEntry): void {
    const { steering, control } = this.#run;
    if (mail.type === "stop") return control.abort(stopFor(mail.reason), { rollback: mail.rollback ?? false });
    steering.receive([mail]);
    this.#late?.push(mail);
    for (const draft of new Set([this.#stored, this.#next])) draft?.arrived.push(mail);
  }

  /** Reports a session that is gone. */
  async #reportLoss(): Promise<void> {
    const { session, events } = this.#run;
    if (this.#isGone || !this.#journal) return;
    const head = await this.#store.journal.head(this.#key).catch(() => null);
    if (head !== undefined) return;
    this.#isGone = true;
    events.report(new Error(`Cannot continue session "${session}": the store has lost it`));
  }

  /** Renews the lease, and saves nothing else. A failure is retried at the next renewal. */
  async #renew(): Promise<void> {
    const [journal, draft] = [this.#journal, this.#stored];
    if (!journal || !draft || this.#closed) return;
    try {
      const renewed = this.#isStopKnown ? await journal.renew() : await this.#storeDraft(journal, draft);
      if (renewed) return this.#renewLater();
      await this.#reportLoss();
      this.#run.sink.yield?.();
      this.#run.control.abort(stops.lost);
    } catch (error) {
      this.#run.events.report(error);
      this.#renewAfter(this.#leaseTime / 3);
    }
  }

  /** Renews the lease once a third of it has passed, and at once if the journal does not know the stop of the run. */
  #renewLater(): void {
    const { leaseEnd = 0 } = this.#journal ?? {};
    const isPaused = this.#stored?.session.run?.exit !== undefined;
    if (!isPaused) this.#renewAfter(this.#isStopKnown ? leaseEnd - Date.now() - this.#leaseTime * 2 / 3 : 0);
  }

  /** Renews the lease after `ms` milliseconds. */
  #renewAfter(ms: number): void {
    clearTimeout(this.#renewal);
    if (!this.#closed) this.#renewal = startTimer(() => void this.#renew(), ms); // #renew() reports its failures
  }
}

/** Returns the session that the last save of a run stores: without the run, and with its last event. */
function endedSession({ run, ...session }: Unsaved, event: Event): Unsaved {
  return run ? { ...session, last: { run: run.id, event, before: run.before } } : session;
}
