/**
 * The `recover()` of a server.
 *
 * @module
 */
import type { Recover } from "../../core/persistence/recovery.ts";
import type { recoveryOf } from "../../session/durable/server_recovery.ts";
import type { ServerOptions } from "../options.ts";
import { reportError } from "../respond/error_response.ts";
import type { LiveRuns } from "./live_runs.ts";

/** Returns the `recover()` of a server. The store brings the code for it. */
export function recover(
  runs: LiveRuns,
  { store, singleProcess, signal, vars, recoveryVars, onError }: ServerOptions,
): Recover {
  const report = (error: unknown, run?: string) => void reportError(onError, error, run);
  // its type is `recoveryOf` of the same package
  const open = store?.recovery as typeof recoveryOf | undefined;
  const recoverRuns = store && open?.(store, { ...runs, singleProcess, recoveryVars, report });
  return async (given) => {
    if (vars && !recoveryVars) {
      throw new TypeError("Cannot recover runs: their vars are made from requests; expected the option recoveryVars");
    }
    if (!recoverRuns || signal?.aborted) return { runs: [], over: Promise.resolve() };
    return await recoverRuns(given);
  };
}
