/**
 * The recovery of a server's runs, and the end of its work.
 *
 * @module
 */
import type { Recover } from "../../core/store.ts";
import type { recoveryOf } from "../../session/durable/recovery.ts";
import type { ServerOptions } from "../server_options.ts";
import { reportError } from "../respond/error_response.ts";
import type { LiveRuns } from "./live_runs.ts";

/** Returns the `recover()` and the `settled()` of a server. The store brings the code for the first. */
export function recovery(
  runs: LiveRuns,
  { store, singleProcess, signal, vars, recoveryVars, onError }: ServerOptions,
): { readonly recover: Recover; readonly settled: () => Promise<void> } {
  const report = (error: unknown, run?: string) => void reportError(onError, error, run);
  // its type is `recoveryOf` of the same package
  const open = store?.recovery as typeof recoveryOf | undefined;
  const recoverRuns = store && open?.(store, { ...runs, singleProcess, recoveryVars, report });
  return {
    async recover(given) {
      const limit = given?.limit;
      if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
        throw new RangeError(`Cannot recover runs: \`limit\` is ${limit}; expected a whole number of at least 1`);
      }
      if (vars && !recoveryVars) {
        throw new TypeError("Cannot recover runs: their vars are made from requests; expected the option recoveryVars");
      }
      if (!recoverRuns || signal?.aborted) return { runs: [], over: Promise.resolve() };
      const recovered = recoverRuns(given);
      runs.track(recovered.then(() => {}, () => {})); // the caller receives the failure
      return await recovered;
    },
    settled: runs.settled,
  };
}
