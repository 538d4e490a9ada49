/**
 * The writer of durable sessions, which saves the progress of a run.
 *
 * @module
 */
import type { Event } from "../../../protocol/event.ts";
import { turn } from "../../../stream/tick.ts";
import type { RunResult } from "../../hooks/points/run.ts";
import type { Position } from "../../run/position.ts";
import type { EngineRun } from "../../run/run.ts";
import { savedSession } from "../saved_session.ts";
import type { Unsaved } from "../session.ts";
import type { OpenWriter, SessionStore } from "../store.ts";
import { endedSession, type SessionWriter, type WriterOptions } from "../writer.ts";
import { handOver } from "./hand_over.ts";
import { StoredSession } from "./stored_session.ts";
import { takeOver } from "./take_over.ts";

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
  /** Cancels a checkpoint that waits for the next turn of the event loop. */
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
    this.#cancelLater ??= turn(() => this.#saveLater());
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
    else this.#run.control.abort("shutdown");
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
    if (!await this.#save()) this.#run.control.abort("lost");
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
      if (this.#run.control.stop.leave) return true;
      if (released && !isLogged) return await this.#session.expire();
      return await this.#session.write(draft, last);
    });
    this.#requested = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }
}
