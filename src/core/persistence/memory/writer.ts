/**
 * The writer of a store that ends with the process, as its runs do.
 *
 * @module
 */
import type { Event } from "../../../protocol/event.ts";
import type { Position } from "../../run/position.ts";
import type { EngineRun } from "../../run/run.ts";
import { startTimer } from "../../lib/cancellation.ts";
import { leavesNothing, savedSession } from "../saved_session.ts";
import type { Lease, Unsaved } from "../session.ts";
import { changeHead, openHead, type SessionVersion } from "../session_version.ts";
import type { OpenWriter, SessionStore } from "../store.ts";
import { endedSession, type SessionWriter, type WriterOptions } from "../writer.ts";

/**
 * Opens a writer for a store that ends with the process. No process can find the run after a crash, so it saves only the claim, each turn, and the end. It
 * has a lease, because the request that executes the run may end before the process does, as on Cloudflare Workers.
 */
export const writeInMemory: OpenWriter = (store, run: EngineRun, options) => new MemoryWriter(store, run, options);

/** The options of a writer in memory. */
export interface MemoryWriterOptions extends WriterOptions {
  /** Keeps the end of a run that is not saved. Throws if there is no room for it. Default: it is dropped. */
  readonly keep?: (session: Unsaved) => void;
}

/** A writer. A class, because a server keeps one for each stream, and a closure for each operation would take five times the memory. */
export class MemoryWriter implements SessionWriter {
  readonly #store: SessionStore;
  readonly #run: EngineRun;
  readonly #leaseTime: number;
  readonly #holder = crypto.randomUUID();
  readonly #keep: ((session: Unsaved) => void) | undefined;
  #version: SessionVersion;
  #saves: boolean;
  /** The lease that is stored. */
  #held: Lease | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(
    store: SessionStore,
    run: EngineRun,
    { always, lease, keep }: MemoryWriterOptions,
  ) {
    this.#keep = keep;
    this.#store = store;
    this.#run = run;
    this.#leaseTime = lease;
    this.#version = run.claimed.version;
    this.#saves = always;
  }

  async claim(): Promise<boolean> {
    if (!this.#saves) return true;
    const isClaimed = await this.#save();
    if (isClaimed) this.#renewLater();
    return isClaimed;
  }

  checkpoint(position: Position): Promise<void> | undefined {
    const isDue = this.#saves && position.at === "model" && position.turn > 1;
    return isDue ? this.#saveOrAbort() : undefined;
  }

  async end(last: Event | undefined): Promise<boolean> {
    await this.#run.sink.settled?.();
    if (this.#run.control.stop.leave) return true;
    if (last && !this.#saves) return this.#keepEnd(last);
    try {
      if (leavesNothing(this.#run)) return await this.#store.delete(this.#run.session).then(() => true);
      return await this.#save(last && endedSession(savedSession(this.#run), last));
    } catch (error) {
      await this.#removeRun(); // otherwise the session stays busy: no other process ends the run
      throw error;
    }
  }

  close(): void {
    clearTimeout(this.#renewal);
  }

  /** Keeps a run that was not saved. It ends as usual if there is no room for it. */
  #keepEnd(last: Event): true {
    const { control, loop, events } = this.#run;
    if (!this.#keep || control.stop.undo || loop.transcript.messages.length === 0) return true;
    try {
      this.#keep(endedSession(savedSession(this.#run), last));
    } catch (error) {
      events.report(error);
    }
    return true;
  }

  async #save(unleased = savedSession(this.#run)): Promise<boolean> {
    // a run that is taken over ends: its calls since the last save may have had effects that it does not know
    const lease = unleased.run && !unleased.run.exit ? { until: this.#leaseEnd(), closing: "lost" } : undefined;
    const session = { ...unleased, ...(lease && { lease }) };
    const { addition, version } = this.#version.next(session, { holder: this.#holder, isWriter: true });
    if (!await this.#store.append(session.id, addition)) return false;
    this.#version = version;
    this.#held = lease;
    this.#saves = true;
    return true;
  }

  #leaseEnd(): number {
    return Math.ceil(Date.now() + this.#leaseTime);
  }

  #renewLater(): void {
    this.#renewal = startTimer(() => {
      this.#renewLater();
      this.#renew().catch((error) => this.#run.events.report(error));
    }, this.#leaseTime / 3);
  }

  /** Moves the end of the lease. If the session has changed meanwhile, the save that changed it has done so. */
  async #renew(): Promise<void> {
    const lease = this.#held;
    if (!lease) return;
    const renewed = this.#held = { ...lease, until: this.#leaseEnd() }; // at once, for the next renewal
    try {
      await this.#store.touch({ id: this.#run.session, version: this.#version.n, lease }, renewed.until);
    } catch (error) {
      if (this.#held === renewed) this.#held = lease;
      throw error;
    }
  }

  async #saveOrAbort(): Promise<void> {
    if (!await this.#save()) this.#run.control.abort("lost");
  }

  /** Removes the run from the session as it is stored, which takes less room. */
  async #removeRun(): Promise<void> {
    const { session: id } = this.#run;
    const { session, version } = await openHead(this.#store, id);
    if (!session) return;
    const { run: _, ...head } = session;
    await changeHead(this.#store, id, version, head);
  }
}
