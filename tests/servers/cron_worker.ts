/**
 * The Worker of the example `wakers/cron.ts`, without the time after a response that `waitUntil()` gives: its runs die with their requests. `/listed` lists the
 * sessions of the schedules.
 *
 * @module
 */
import type { ExecutionContext } from "hono";
import worker from "../../examples/wakers/cron.ts";
import { shopOnD1 } from "../../examples/wakers/shop_on_d1.ts";

/** A context that keeps nothing alive. */
const context: ExecutionContext = { waitUntil() {}, passThroughOnException() {}, props: {} };

export default {
  ...worker,
  async fetch(...[request, env]: Parameters<typeof worker.fetch>): Promise<Response> {
    if (new URL(request.url).pathname !== "/listed") return await worker.fetch(request, env, context);
    const { store } = await shopOnD1(env);
    return Response.json(await store.list({ owner: "shop" }));
  },
};
