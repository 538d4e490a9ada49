/**
 * The sessions of runs, for requests that name only the run.
 *
 * @module
 */
import type { Log, LogPage } from "../log.ts";
import { lastEvent, loggedPages, recordKey } from "./logged_pages.ts";
import { RecordError } from "./record_error.ts";
import type { Requester, RunAddress, RunHost } from "./run_host.ts";
import { hasEnded, runOf } from "./run_state.ts";

/** Returns the id of the session of a run, if it is known. */
export type SessionLookup = () => Promise<string | undefined>;

/** Finds the sessions of runs. */
export interface RunSessions {
  /**
   * Creates the lookup of a run: it returns the named session, or else the one that the events name: each start and each resumption names it. It reads each
   * event once. It finds none if sessions are not stored.
   */
  lookup(run: RunAddress, requester: Requester): SessionLookup;
  /**
   * Returns the id of the session through which a request reaches a run: the named one if it knows the run, or else the one that its events name. Returns
   * undefined if the run is over. `end` is the end of the record. Throws a `RecordError` if the run may continue and its session is not found.
   */
  reach(run: RunAddress, end: LogPage, requester: Requester): Promise<string | undefined>;
}

/** The most runs whose sessions are remembered. */
const mostFound = 1_000;

/** Finds the sessions of the runs in `log`. */
export function runSessions(log: Log, host: RunHost): RunSessions {
  /** The sessions that were found, by record: followers of one run ask for the same. */
  const found = new Map<string, string>();

  function remember(key: string, session: string): string {
    const [oldest] = found.keys();
    if (oldest !== undefined && found.size >= mostFound) found.delete(oldest);
    found.set(key, session);
    return session;
  }

  const lookup: RunSessions["lookup"] = ({ run, session: id }, requester) => {
    const key = recordKey(run, requester);
    let after = 0;
    return async () => {
      if (id !== undefined || !host.hasStore) return id;
      const known = found.get(key);
      if (known !== undefined) return known;
      for await (const { first, lines } of loggedPages(log, key, after)) {
        const started = lines.find((line) => line.startsWith(`{"type":"run.started"`));
        if (started !== undefined) return remember(key, JSON.parse(started).session);
        after = first + lines.length - 1;
      }
      return undefined;
    };
  };

  /** Returns the id of a session if it knows the run. */
  async function ifKnown({ run, session: id }: RunAddress, requester: Requester): Promise<string | undefined> {
    const session = id === undefined ? undefined : await host.head(id, requester);
    return runOf(session) === run || hasEnded(session, run) ? id : undefined;
  }

  return {
    lookup,
    async reach(address, end, requester) {
      const { run } = address;
      const id = await ifKnown(address, requester) ?? await lookup({ run }, requester)();
      if (id !== undefined || (!host.hasStore && host.isDead(run, requester))) return id;
      const last = await lastEvent(log, recordKey(run, requester), end);
      if (last && last.type !== "run.paused") return undefined;
      const reason = host.hasStore
        ? "the events that name its session have been deleted; expected the session in ?session="
        : "sessions are not stored";
      throw new RecordError(`Cannot reach run "${run}" in another process: ${reason}`, "unreachable");
    },
  };
}
