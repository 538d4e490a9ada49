/**
 * Whether a server can take new requests: `GET /ready`.
 *
 * @module
 */
import { withinTime } from "../core/lib/cancellation.ts";
import type { Admissions } from "./capacity.ts";
import { type RequestError, shuttingDown, unavailable } from "./error_response.ts";
import type { ServerOptions } from "./options.ts";

/** Milliseconds within which the store has to answer. */
const patience = 1_000;

/** Returns a function that tells why no new request should come to this server; undefined if one may. Requests that ask at the same time share a look at the store. */
export function readiness(
  { store, signal }: Pick<ServerOptions, "store" | "signal">,
  admissions: Admissions,
): () => Promise<RequestError | undefined> {
  let look: Promise<boolean> | undefined;

  /** Whether the store answers. It is asked for a journal that does not exist. */
  function answers({ journal }: NonNullable<typeof store>): Promise<boolean> {
    return look ??= withinTime(() => journal.head("ready"), { ms: patience, signal: new AbortController().signal })
      .then(() => true, () => false)
      .finally(() => look = undefined);
  }

  return async () => {
    if (signal?.aborted) return shuttingDown();
    if (admissions.isFull) return unavailable("capacity", "the server has no room for a further run");
    if (store && !await answers(store)) {
      return unavailable("unavailable", `the store has not answered within ${patience} ms`);
    }
    return undefined;
  };
}
