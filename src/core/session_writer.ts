/**
 * The writer of a run: it stores the progress of its session together with the events that show it, and sends the events once they are stored. It also receives the
 * mail of other processes.
 *
 * @module
 */
import type { NumberedEvent } from "./events.ts";
import { journalKey, type MailEntry } from "./journal.ts";
import { claimOpened, type FailedClaim, JournalWriter } from "./journal_writer.ts";
import { startTimer } from "./lib/cancellation.ts";
import type { RunResult } from "./points.ts";
import { type Position, type Stop, stopFor, stops } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { type Draft, endedSession, progressOf, savedSession } from "./saved_session.ts";
import type { Mail, Unsaved } from "./session.ts";
import { FinalError, outage, type RunStore } from "./store.ts";
import { WaitingEvents } from "./waiting_events.ts";
import type { Event } from "../protocol/event.ts";
import type { Sink } from "../stream/channel.ts";
import { lineOf } from "../stream/sse.ts";
import { nextTick } from "../stream/tick.ts";

/** The options of a writer. */
export interface WriterOptions {
  /** True to save the run while it runs. False to save only a pause: the run has no named session. */
  readonly always: boolean;
  /** Milliseconds for which a save claims the session. */
  readonly lease: number;
  /** The owner under which the session is stored. */
  readonly owner: string | undefined;
  /** The idempotency id of the request that claims the session. */
  readonly request: string | undefined;
  /** Stores the events, for clients that reconnect, and keeps those of an earlier run for `keep` milliseconds after its end. Default: they are not stored. */
  readonly records: { readonly keep: number } | undefined;
  /** Milliseconds between two appends of events that show no progress, such as deltas. */
  readonly deltasEvery: number;
  /** Receives the events once they are stored. */
  readonly out: Sink<NumberedEvent>;
}

/** The events that show no progress: a process that continues the run need not know of them. */
const passing =
  /\.delta$|^(model\.(started|reset)|part\.added|call\.ready|tool\.(started|progress)|provider_tool\..*|subagent\.(started|event)|data|notice|warning|hook\.acted)$/;

/** Writes the session and the events of one run, in order. A class, because a server keeps one for each stream. */
export class SessionWriter implements Sink<NumberedEvent> {
  readonly #store: RunStore;
  readonly #run: EngineRun;
  readonly #options: WriterOptions;
  /** The writer of the journal, once it has the session. */
  #journal: JournalWriter | undefined;
  /** The events that are not stored yet. Empty if they need not be stored before they are sent. */
  readonly #waiting: WaitingEvents;
  /** The time of the last append of events alone. */
  #emittedAt = 0;
  /** Cancels the append of events that waits. */
  #cancelEmit: (() => void) | undefined;
  /** True once no more events are stored: the run is over here, another process continues it, or the database fails. */
  #isDone = false;
  /** The draft that is stored, and the one that is saved next. */
  #stored: Draft | undefined;
  #next: Draft | undefined;
  /** Messages that arrive after the run has taken its last ones. */
  #late: Mail[] | undefined;
  /** The reason of a stop that the journal has. */
  #storedStop: string | undefined;
  /** The last requested save, and one that was requested and has not begun. */
  #requested: Promise<unknown> = Promise.resolve();
  #pending: Promise<boolean> | undefined;
  /** The session that is saved in place of the run as it is, until that is done. */
  #frozen: Draft | undefined;
  #ending = false;
  #closed = false;
  #isGone = false;
  /** The error with which the store has refused events: the run ends with it. */
  #refusal: unknown;
  /** Cancels a checkpoint that waits for the next tick of the event loop. */
  #cancelLater: (() => void) | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  /** Ends the watch of the journal. */
  #unwatch = () => {};

  constructor(store: RunStore, run: EngineRun, options: WriterOptions) {
    this.#store = store;
    this.#run = run;
    this.#options = options;
    this.#waiting = new WaitingEvents(options.out);
    run.control.onAbort(() => this.#isOpen && !this.#isStopKnown && this.#renewAfter(0)); // if the process dies before the run ends, another one ends it
  }

  /** True if the events of the run wait until its session is saved. */
  get holds(): boolean {
    const { always, records } = this.#options;
    return always && (records !== undefined || this.#store.durable !== undefined);
  }

  /** The number of events that wait until they are stored. */
  get waiting(): number {
    return this.#waiting.count;
  }

  /** True if the run has a named session, or has been saved. */
  get #saves(): boolean {
    return this.#options.always || this.#journal !== undefined;
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

  // The events: those that show progress are stored with it, in one append. Others are appended alone, unless such an append follows at once.

  write(event: NumberedEvent): void {
    const { records, out } = this.#options;
    const shows = !passing.test(event.event.type);
    if (records ? event.id <= (this.#journal?.events ?? 0) : this.#isDone || (!shows && this.#waiting.count === 0)) {
      return out.write(event); // it is stored, or shows nothing that has to be
    }
    if (this.#isDone) return;
    this.#waiting.add(records ? { ...event, line: lineOf(event.event) } : event);
    if (shows) this.#cancelLater ??= nextTick(() => this.#saveLater());
    else if (records) this.#emitLater();
  }

  cork(): void {
    this.#options.out.cork();
  }
  uncork(): void {
    this.#options.out.uncork();
  }
  get full(): Promise<void> | undefined {
    return this.#waiting.isFull && !this.#isDone ? this.#waiting.room : this.#options.out.full;
  }
  get congested(): boolean {
    return (this.#waiting.isFull && !this.#isDone) || this.#options.out.congested === true;
  }

  /** Appends the events that show no progress, once others of the same moment have joined them. */
  #emitLater(): void {
    const { isFull } = this.#waiting;
    if ((this.#cancelEmit && !isFull) || this.#cancelLater || this.#pending) return;
    this.#cancelEmit?.(); // the run waits for room
    const wait = isFull ? 0 : this.#emittedAt + this.#options.deltasEvery - performance.now();
    const emit = () => {
      this.#cancelEmit = undefined;
      this.#emit().catch((error) => this.#fail(error));
    };
    if (wait <= 0) return void (this.#cancelEmit = nextTick(emit));
    const timer = startTimer(emit, wait);
    this.#cancelEmit = () => clearTimeout(timer);
  }

  async #emit(): Promise<void> {
    const journal = this.#journal;
    if (!journal || this.#cancelLater || this.#pending || this.#ending || this.#waiting.count === 0) return; // a save stores them
    let count = 0;
    const isStored = await journal.emit(() => {
      count = this.#waiting.count;
      return this.#waiting.lines();
    });
    this.#emittedAt = performance.now();
    if (!isStored) return await this.#lose();
    this.#waiting.send(count);
    if (this.#waiting.count > 0) this.#emitLater();
    if (!this.#closed) this.#renewLater();
  }

  /**
   * Stores no more events: another process has the session, or the database fails. Another process continues the run as it is stored, so nothing more is saved.
   * Without a record, the caller receives the events all the same.
   */
  #leave(error?: unknown): void {
    const { records, out } = this.#options;
    if (error !== undefined) this.#run.events.report(error);
    if (this.#isDone) return;
    this.#isDone = true;
    this.#cancelEmit?.();
    this.#waiting.endWait();
    if (!records) return this.#waiting.send();
    if (this.#store.durable) this.#stopSaving();
    out.uncork();
    out.close();
    if (error !== undefined) this.#run.control.abort(stops.unrecorded);
  }

  /** Stops the run, which another process has. */
  async #lose(): Promise<void> {
    await this.#reportLoss();
    if (this.#options.records) this.#leave();
    this.#run.control.abort(stops.lost);
  }

  // The saves of a run: its claim, its checkpoints, and its end.

  /** Saves the claim of the session. Resolves to false if another process has it. `first` are the first events, which are emitted once they are stored. */
  claim(first: readonly Event[]): Promise<boolean> {
    if (!this.#saves) return Promise.resolve(true);
    return this.#request(() => this.#claim(this.#draftOf(savedSession(this.#run)), first), false);
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
    return this.#options.always && this.#store.durable ? this.#orLeave(this.#saveOrAbort()) : undefined;
  }

  /** Saves the run as it is now: later changes are not saved until that is done. */
  saveFrozen(): Promise<void> | undefined {
    if (!this.#store.durable) return undefined;
    this.#frozen = this.#draftOf(this.#working());
    return this.#orLeave(this.#saveOrAbort()).finally(() => this.#frozen = undefined);
  }

  /** Saves the session for the last time, with the run's last event. Resolves to false if another process has it. `pauses` is true if the run keeps the session. */
  async end(last: Event, pauses: boolean): Promise<boolean> {
    if (!pauses && !this.#saves) return this.#keepEnd(last);
    if (!pauses) this.#late ??= [];
    const draft = () => {
      const session = savedSession(this.#run);
      return this.#draftOf(pauses ? session : endedSession(session, last));
    };
    if (this.#refusal) throw this.#refusal;
    const isStored = await this.#orLeave(this.#request(() => this.#put(draft, last), true));
    this.#isDone = true;
    return isStored;
  }

  /** Drops the events that the store has refused, and which no client has read: those of the end take their numbers. Returns true if the result is among them. */
  dropRefused(): boolean {
    const { events } = this.#run;
    if (!this.#options.records || this.#isDone) return false;
    this.#waiting.drop();
    events.count = this.#journal?.events ?? 0;
    return true;
  }

  /** Stores the last event of a run whose session the store has refused, with the session as it was saved before. Does nothing if the store fails: then another process ends the run. */
  async endRefused(last: Event): Promise<void> {
    const draft = this.#stored;
    if (this.#isDone || !draft) return;
    this.#stopSaving();
    await this.#put(() => ({ ...draft, session: endedSession(draft.session, last) }), last)
      .catch(() => this.#leave()); // the refusal has been reported
    this.#isDone = true;
  }

  /** Prepares a run whose process died or shut down, before its hooks begin. Resolves to its result if it ends or is left before. */
  takeOver(): Promise<RunResult | undefined> | undefined {
    return this.#store.durable?.takeOver(this.#run as never); // it reads the runs of this package
  }

  /** Gives the run to another process, at the next safe place or after `grace` milliseconds. */
  handOver(grace: number): void {
    const { durable } = this.#store;
    if (!this.#options.always || !durable) this.#run.control.abort(stops.shutdown);
    else durable.handOver(this.#run as never, (session) => this.#release(session), grace); // as `takeOver()`
  }

  /** Ends the stream, changes nothing more, and stops renewing the lease. */
  close(): void {
    this.#stopSaving();
    if (!this.holds) return;
    const { records, out } = this.#options;
    if (!records) this.#waiting.send();
    this.#isDone = true;
    out.uncork();
    out.close();
  }

  #stopSaving(): void {
    this.#ending = true;
    this.#closed = true;
    this.#unwatch();
    clearTimeout(this.#renewal);
    this.#cancelLater?.();
    this.#cancelEmit?.();
  }

  /** Saves the session for another process, also in place of saves that were requested before. */
  #release(session: Unsaved): Promise<boolean> {
    this.#late ??= [];
    const draft = this.#frozen = { ...this.#draftOf(session), released: true };
    return this.#request(() => this.#put(() => draft), true).finally(() => this.close());
  }

  /** Keeps a run that was not saved. It ends as usual if there is no room for it. */
  #keepEnd(last: Event): true {
    const { control, loop, events, parent } = this.#run;
    const { unsaved } = this.#store;
    if (!unsaved || parent || !control.effects.saves || loop.transcript.messages.length === 0) return true;
    try {
      unsaved.keep(endedSession(savedSession(this.#run), last));
    } catch (error) {
      events.report(error);
    }
    return true;
  }

  /** Saves a checkpoint that has waited. The save may be one that was requested before, so the next checkpoint waits anew. */
  #saveLater(): void {
    this.#cancelLater = undefined;
    this.#saveOrAbort().catch((error) => this.#fail(error));
  }

  async #saveOrAbort(): Promise<void> {
    if (!await this.#save()) this.#run.control.abort(stops.lost);
  }

  /** Leaves the events if the database fails: the run has not come this far, and continues elsewhere from its last save. A save that is refused fails the run. */
  async #orLeave<T>(saved: Promise<T>): Promise<T> {
    try {
      return await saved;
    } catch (error) {
      if (!this.#isRefusal(error)) this.#leave();
      throw error;
    }
  }

  /** Whether no other process could store more. */
  #isRefusal(error: unknown): boolean {
    return !this.#store.durable || error instanceof FinalError;
  }

  /** Ends the run after a write that no hook waits for. */
  #fail(error: unknown): void {
    if (!this.#isRefusal(error)) return this.#leave(error);
    this.#refusal ??= error;
    this.#run.control.abort(stops.unrecorded);
  }

  /** Saves the run as it is when the save begins. Requests that arrive before share it. */
  #save(): Promise<boolean> {
    if (!this.#saves) return Promise.resolve(true);
    return this.#pending ??= this.#request(() => {
      this.#pending = undefined;
      if (this.#run.loop.transcript.rolledBack && !this.#frozen) return Promise.resolve(true); // the last save follows: a run without its prompt could not continue
      return this.#put(() => this.#frozen ?? this.#draftOf(this.#working()));
    }, false);
  }

  /** Does one write after another. Nothing follows the last one. */
  #request(write: () => Promise<boolean>, last: boolean): Promise<boolean> {
    if (this.#ending) return Promise.resolve(true);
    this.#ending = last;
    this.#cancelLater?.();
    this.#cancelLater = undefined;
    const done = this.#requested.then(() => {
      if (!this.#run.control.effects.saves || this.#closed) return true;
      this.#closed = last;
      return write();
    });
    this.#requested = done.catch(() => {}); // the caller handles the failure
    return done;
  }

  // The journal of the run's session: one change after another, and the renewal of the lease.

  /** Returns the session of a run that works. A pause is stored at its end only, with its last event. */
  #working(): Unsaved {
    const session = savedSession(this.#run);
    if (!session.run?.exit) return session;
    const { exit: _, ...run } = session.run;
    return { ...session, run: { ...run, events: this.#run.events.count } };
  }

  /** Returns a session as the draft that is saved next. It receives the mail that arrives before it is stored. */
  #draftOf(session: Unsaved): Draft {
    const readUntil = this.#journal?.last ?? this.#run.claimed.opened?.head.last ?? 0;
    return this.#next = { session, readUntil, arrived: [], released: false };
  }

  /** Stores the draft that `read` returns, with the events that it knows of. Resolves to false if another process has the session. */
  async #put(read: () => Draft, last?: Event): Promise<boolean> {
    const journal = this.#journal;
    if (!journal) return await this.#claim(read(), [], last);
    clearTimeout(this.#renewal);
    let draft: Draft | undefined;
    let stop: Stop | undefined;
    let count = 0;
    const isStored = await journal.put(() => {
      draft = read();
      stop = this.#stopToSave();
      const { run } = draft.session;
      count = run && !last ? this.#waiting.countUpTo(run.events) : this.#waiting.count;
      const lines = this.#options.records ? this.#waiting.lines(count) : [];
      return {
        ...progressOf(draft, this.#run, stop, this.#late),
        lines,
        ...(last && this.#options.records && { ended: last }),
      };
    });
    if (!isStored) {
      await this.#reportLoss();
      this.#leave();
      return false;
    }
    this.#stored = draft;
    this.#storedStop = stop?.reason;
    this.#waiting.send(count);
    if (this.#closed) return true;
    if (this.#waiting.count > 0 && this.#options.records) this.#emitLater();
    if (Date.now() >= journal.leaseEnd && !await journal.renew()) return false; // a change that was retried may take longer than the lease
    this.#renewLater();
    return true;
  }

  /** Claims the session with its first draft and its first events. */
  async #claim(draft: Draft, first: readonly Event[], last?: Event): Promise<boolean> {
    const { claimed, claimed: { opened } } = this.#run;
    const { lease, owner, records, request } = this.#options;
    const [{ journal }, key] = [this.#store, this.#key];
    const onMail = (entry: MailEntry) => this.#receive(entry);
    const { withdrawals } = this.#store;
    const onFailedClaim = withdrawals && ((claim: FailedClaim) => withdrawals.add(claim as never)); // it reads the claims of this package
    const stop = this.#stopToSave();
    const { session, readUntil } = progressOf(draft, this.#run, stop, this.#late);
    const lines = records ? [...first, ...last ? [last] : []].map(lineOf) : [];
    this.#journal = await claimOpened(
      { journal, key, lease, patience: this.#patience, onMail, onFailedClaim },
      opened,
      { session, begins: claimed.type === "new", readUntil, owner, request, lines },
    );
    if (!this.#journal) return false;
    this.#stored = draft;
    this.#storedStop = stop?.reason;
    const expired = records && opened?.ends.findLast(({ at }) => at + records.keep < Date.now());
    if (expired) { // it takes room only
      const kept = Math.min(expired.run + 1, this.#journal.run); // a run that was paused continues
      journal.trim(key, kept).catch((error) => this.#run.events.report(error));
    }
    if (this.#closed) return true;
    this.#renewLater();
    this.#unwatch = this.#store.durable
      ? this.#journal.watch(() => this.#looks, () => void (this.#closed || this.#lose()))
      : journal.watch(key, { notify() {}, fail() {} }); // messages reach the run directly, and a journal that is watched does not expire
    return true;
  }

  /** True if no write will tell of mail. */
  get #looks(): boolean {
    return !this.#closed && !this.#pending && !this.#cancelLater && !this.#cancelEmit;
  }

  /** Returns the stop with which a process that takes over ends the run. In memory, that is any run: its calls since the last save may have had effects that are not known. */
  #stopToSave(): Stop | undefined {
    if (!this.#store.durable) return stops.lost;
    const { control: { stop }, claimed, exit } = this.#run;
    const isEnding = stop && !stop.continues && exit.current?.status !== "failed";
    return isEnding ? stop : claimed.type === "closing" ? claimed.stop : undefined;
  }

  get #key(): string {
    const { claimed, session } = this.#run;
    return claimed.key ?? journalKey(this.#options.owner, session);
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
      const renewed = this.#isStopKnown ? await journal.renew() : await this.#put(() => draft);
      if (!renewed) await this.#lose();
      else if (!this.#closed) this.#renewLater();
    } catch (error) {
      this.#run.events.report(error);
      this.#renewAfter(this.#options.lease / 3);
    }
  }

  /** Renews the lease once a third of it has passed, and at once if the journal does not know the stop of the run. */
  #renewLater(): void {
    const { leaseEnd = 0 } = this.#journal ?? {};
    const isPaused = this.#stored?.session.run?.exit !== undefined;
    if (!isPaused) this.#renewAfter(this.#isStopKnown ? leaseEnd - Date.now() - this.#options.lease * 2 / 3 : 0);
  }

  /** Renews the lease after `ms` milliseconds. */
  #renewAfter(ms: number): void {
    clearTimeout(this.#renewal);
    if (!this.#closed) this.#renewal = startTimer(() => void this.#renew(), ms); // #renew() reports its failures
  }
}
