/**
 * The parts of a server that its requests share.
 *
 * @module
 */
import type { Context } from "hono";
import type { Idempotency } from "./admit/idempotency.ts";
import type { SessionQueue } from "./admit/session_queue.ts";
import type { Client } from "./identify.ts";
import type { LiveRuns } from "./launch/live_runs.ts";
import type { ServerOptions } from "./server_options.ts";

/** A served agent: its options, its runs, and what admits requests to them. */
export interface Server {
  readonly options: ServerOptions;
  readonly runs: LiveRuns;
  readonly once: Idempotency;
  readonly inTurn: SessionQueue;
}

/** A request after it was identified, and the server that handles it. */
export interface RequestScope {
  readonly c: Context;
  readonly server: Server;
  readonly client: Client;
}
