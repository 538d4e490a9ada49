/**
 * Serves the shop in a Worker. A message of a Cloudflare Queue continues each run whose Worker was ended.
 *
 * ```sh
 * cd examples/wakers
 * npx wrangler dev --config queue.jsonc
 * ```
 *
 * @module
 */
import type { ExecutionContext } from "hono";
import { leaseOf, type Settings, shopOnD1 } from "./shop_on_d1.ts";
import { wake, type Watched, watching } from "./wake.ts";

interface Env extends Settings {
  readonly WAKERS: { send(body: Watched, options: { readonly delaySeconds: number }): Promise<unknown> };
}

interface Batch {
  readonly messages: readonly { readonly body: Watched; ack(): void }[];
}

function later(env: Env, watched: Watched): Promise<unknown> {
  return env.WAKERS.send(watched, { delaySeconds: Math.ceil(leaseOf(env) / 1_000) });
}

export default {
  /** Answers a request. A message is sent before its run begins. */
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    const { app } = await shopOnD1(env, [watching((watched) => later(env, watched))]);
    return await app.fetch(request, env, ctx);
  },

  /** Continues lost runs. The next message looks again if the run of this one still works. A message that fails is delivered again. */
  async queue({ messages }: Batch, env: Env): Promise<void> {
    const { app, store } = await shopOnD1(env);
    for (const message of messages) {
      if (await wake(app, store, message.body)) await later(env, message.body);
      message.ack();
    }
  },
};
