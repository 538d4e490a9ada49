/**
 * The writer of a store that ends with the process, as its runs do.
 *
 * @module
 */
import type { EngineRun } from "../run/run.ts";
import { savedSession } from "./saved_session.ts";
import type { OpenWriter } from "./store.ts";
import { archivedSession, endedSession, type SessionWriter } from "./writer.ts";

/**
 * Opens a writer for a store that ends with the process. No process can find the run after a crash, so it saves only the claim, each turn, and the end.
 */
export const writeInMemory: OpenWriter = (store, run: EngineRun, { always }): SessionWriter => {
  let { version } = run.claimed;
  let saves = always;
  /** True if a copy of the messages was saved, and the session that names it was not. */
  let archived = false;

  async function save(session = savedSession(run)): Promise<boolean> {
    const saved = await store.save({ ...session, version });
    if (saved === undefined) return false;
    version = saved;
    saves = true;
    return true;
  }

  async function saveOrAbort(): Promise<void> {
    if (!await save()) run.control.abort("lost");
  }

  /** Removes the run from the session as it is stored, which takes less room. */
  async function removeRun(): Promise<void> {
    const stored = await store.load(run.session);
    if (!stored) return;
    const { run: _, ...session } = stored;
    await save(session);
  }

  return {
    claim: () => saves ? save() : Promise.resolve(true),
    checkpoint(position) {
      const isDue = saves && (archived || (position.at === "model" && position.turn > 1));
      archived = false;
      return isDue ? saveOrAbort() : undefined;
    },
    async end(last) {
      await run.sink.settled?.();
      if (run.control.stop.leave || (last && !saves)) return true;
      try {
        return await save(last && endedSession(savedSession(run), last));
      } catch (error) {
        await removeRun(); // otherwise the session stays busy: no other process ends the run
        throw error;
      }
    },
    async archive() {
      if (!saves) return undefined;
      const session = archivedSession(savedSession(run));
      archived = await store.save(session) !== undefined;
      return archived ? session.id : undefined;
    },
  };
};
