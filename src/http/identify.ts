/**
 * Step 2 of the request path: who sends the request.
 *
 * @module
 */
import type { Context } from "hono";
import type { Requester } from "../session/record/run_host.ts";
import type { ServerOptions } from "./options.ts";
import { RequestError } from "./respond/error_response.ts";

/** The client of a request. */
export interface Client extends Requester {
  /** Aborts if the client leaves before the response, as far as the platform tells. */
  readonly leaving: AbortSignal;
}

/**
 * Returns the client of a request, with its owner and vars. Throws a `RequestError` with status 403 if the `owner` option returns none, and whatever `owner`
 * and `vars` throw.
 */
export async function identify(c: Context, { owner, vars }: ServerOptions): Promise<Client> {
  const ownerId = await owner?.(c);
  if (owner && !ownerId) throw new RequestError(403, "unidentified", "Cannot serve the request: it has no owner");
  return {
    owner: ownerId,
    vars: await vars?.(c),
    get leaving() { // Deno warns when the signal is read, and few requests need it
      return c.req.raw.signal;
    },
    outlive(work) {
      try {
        c.executionCtx.waitUntil(work);
      } catch {
        return; // the platform has no execution context
      }
    },
  };
}
