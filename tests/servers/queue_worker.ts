/**
 * The Worker of the example `wakers/queue.ts`, without the time after a response that `waitUntil()` gives: its runs die with their requests.
 *
 * @module
 */
import type { ExecutionContext } from "hono";
import worker from "../../examples/wakers/queue.ts";

/** A context that keeps nothing alive. */
const context: ExecutionContext = { waitUntil() {}, passThroughOnException() {}, props: {} };

export default {
  ...worker,
  fetch: (...[request, env]: Parameters<typeof worker.fetch>): Promise<Response> => worker.fetch(request, env, context),
};
