/**
 * The writer of a store that ends with the process, as its runs do.
 *
 * @module
 */
import type { Event } from "../../../protocol/event.ts";
import type { Position } from "../../run/position.ts";
import type { EngineRun } from "../../run/run.ts";
import { savedSession } from "../saved_session.ts";
import type { OpenWriter, SessionStore } from "../store.ts";
import { archivedSession, endedSession, type SessionWriter } from "../writer.ts";

/**
 * Opens a writer for a store that ends with the process. No process can find the run after a crash, so it saves only the claim, each turn, and the end.
 */
export const writeInMemory: OpenWriter = (store, run: EngineRun, { always }) => new MemoryWriter(store, run, always);

/** A writer. A class, because a server keeps one for each stream, and a closure for each operation would take five times the memory. */
class MemoryWriter implements SessionWriter {
  readonly #store: SessionStore;
  readonly #run: EngineRun;
  #version: number;
  #saves: boolean;
  /** True if a copy of the messages was saved, and the session that names it was not. */
  #archived = false;

  constructor(store: SessionStore, run: EngineRun, saves: boolean) {
    this.#store = store;
    this.#run = run;
    this.#version = run.claimed.version;
    this.#saves = saves;
  }

  claim(): Promise<boolean> {
    return this.#saves ? this.#save() : Promise.resolve(true);
  }

  checkpoint(position: Position): Promise<void> | undefined {
    const isDue = this.#saves && (this.#archived || (position.at === "model" && position.turn > 1));
    this.#archived = false;
    return isDue ? this.#saveOrAbort() : undefined;
  }

  async end(last: Event | undefined): Promise<boolean> {
    await this.#run.sink.settled?.();
    if (this.#run.control.stop.leave || (last && !this.#saves)) return true;
    try {
      return await this.#save(last && endedSession(savedSession(this.#run), last));
    } catch (error) {
      await this.#removeRun(); // otherwise the session stays busy: no other process ends the run
      throw error;
    }
  }

  async archive(): Promise<string | undefined> {
    if (!this.#saves) return undefined;
    const session = archivedSession(savedSession(this.#run));
    this.#archived = await this.#store.save(session) !== undefined;
    return this.#archived ? session.id : undefined;
  }

  async #save(session = savedSession(this.#run)): Promise<boolean> {
    const saved = await this.#store.save({ ...session, version: this.#version });
    if (saved === undefined) return false;
    this.#version = saved;
    this.#saves = true;
    return true;
  }

  async #saveOrAbort(): Promise<void> {
    if (!await this.#save()) this.#run.control.abort("lost");
  }

  /** Removes the run from the session as it is stored, which takes less room. */
  async #removeRun(): Promise<void> {
    const stored = await this.#store.load(this.#run.session);
    if (!stored) return;
    const { run: _, ...session } = stored;
    await this.#save(session);
  }
}
