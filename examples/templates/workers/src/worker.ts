/**
 * Serves the agent on Cloudflare Workers. A D1 database has the sessions and the events of the runs.
 *
 * @module
 */
import { serve, type ServedApp, workers } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { type D1, d1Store, migrate } from "@jizai/jizai/session/d1";
import type { ExecutionContext } from "hono";
import { assistant } from "../../app/src/agent.ts";
import { refuseOtherHosts } from "../../app/src/local.ts";
import type { Keys } from "../../app/src/model.ts";

/** The bindings and secrets of the Worker. */
interface Env extends Keys {
  readonly DB: D1;
  /** Set by `npm start`: only this machine may connect. */
  readonly LOCAL_ONLY?: string;
}

let app: ServedApp | undefined;

export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    const refusal = env.LOCAL_ONLY ? refuseOtherHosts(request) : undefined;
    if (refusal) return refusal;
    if (!app) await migrate(env.DB); // creates the tables that are missing
    app ??= serve(assistant({ isLocal: !!env.LOCAL_ONLY }), {
      vars: () => env,
      store: d1Store(env.DB), // a client that reconnects receives the events that it missed
      onClientGone: "detach", // a run continues for half a minute when its client disconnects
      limits: workers, // at most six open connections
      capacity: { bytes: 96 * 2 ** 20 }, // of the 128 MB of an isolate
      page: playground(),
    });
    return await app.fetch(request, env, ctx);
  },
};
