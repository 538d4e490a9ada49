/**
 * The sessions of runs, for requests that name only the run.
 *
 * @module
 */
import type { Session } from "../../core/persistence/session.ts";
import type { Event } from "../../protocol/event.ts";
import type { Log } from "../log.ts";
import { ownedKey } from "../owned_store.ts";
import { loggedPages } from "./logged_pages.ts";
import { RecordError } from "./record_error.ts";
import type { Requester, RunAddress, RunHost } from "./run_host.ts";
import { hasEnded, runOf } from "./run_state.ts";

/** Finds the sessions of runs. */
export interface RunSessions {
  /** Returns the id of the session that the events of a run name: each start and each resumption names it. */
  idOf(run: string, requester: Requester): Promise<string | undefined>;
  /** Loads the session of a run: the named one, or else the one that its events name. */
  load(run: RunAddress, requester: Requester): Promise<Session | undefined>;
  /**
   * Returns the id of the session through which a request reaches a run: the one that its events name, or the named one if it knows the run. Returns undefined
   * if the run is over. Throws a `RecordError` if the run may continue and its session is not found.
   */
  reach(run: RunAddress, requester: Requester): Promise<string | undefined>;
  /** Returns the last event of a run that has ended or paused; undefined if there is no such record. */
  lastEvent(run: string, requester: Requester): Promise<Event | undefined>;
}

/** Finds the sessions of the runs in `log`. */
export function runSessions(log: Log, host: RunHost): RunSessions {
  const keyOf = (run: string, { owner }: Requester) => ownedKey(owner, run);

  const idOf: RunSessions["idOf"] = async (run, requester) => {
    for await (const { lines } of loggedPages(log, keyOf(run, requester), 0)) {
      const started = lines.find((line) => line.startsWith(`{"type":"run.started"`));
      if (started !== undefined) return JSON.parse(started).session;
    }
  };

  /** Returns the id of a session if it knows the run. */
  async function ifKnown({ run, session: id }: RunAddress, requester: Requester): Promise<string | undefined> {
    const session = id === undefined ? undefined : await host.load(id, requester);
    return runOf(session) === run || hasEnded(session, run) ? id : undefined;
  }

  const lastEvent: RunSessions["lastEvent"] = async (run, requester) => {
    const end = await log.read(keyOf(run, requester), Number.MAX_SAFE_INTEGER);
    const page = end?.ended ? await log.read(keyOf(run, requester), end.last - 1) : undefined;
    const line = page?.lines.at(-1);
    return line === undefined ? undefined : JSON.parse(line);
  };

  return {
    idOf,
    lastEvent,
    async load({ run, session }, requester) {
      const id = session ?? await idOf(run, requester);
      return id === undefined ? undefined : await host.load(id, requester);
    },
    async reach(address, requester) {
      const { run } = address;
      const id = host.hasStore ? await idOf(run, requester) ?? await ifKnown(address, requester) : undefined;
      if (id !== undefined || (!host.hasStore && host.isDead(run, requester))) return id;
      const last = await lastEvent(run, requester);
      if (last && last.type !== "run.paused") return undefined;
      const reason = host.hasStore
        ? "the events that name its session have been deleted; expected the session in ?session="
        : "sessions are not stored";
      throw new RecordError(`Cannot reach run "${run}" in another process: ${reason}`, "unreachable");
    },
  };
}
