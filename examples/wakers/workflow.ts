/**
 * Serves the shop in a Worker. A Cloudflare Workflow continues each run whose Worker was ended.
 *
 * ```sh
 * cd examples/wakers
 * npx wrangler dev --config workflow.jsonc
 * ```
 *
 * @module
 */
import type { ExecutionContext } from "hono";
import type * as Cloudflare from "./cloudflare_workers.d.ts";
import { leaseOf, type Settings, shopOnD1 } from "./shop_on_d1.ts";
import { wake, type Watched, watching } from "./wake.ts";

/** The base class of workflows. Its module exists only at Cloudflare, so Deno must not look for it when it bundles. */
const { WorkflowEntrypoint }: typeof Cloudflare = await import(["cloudflare", "workers"].join(":"));

interface Env extends Settings {
  readonly WAKERS: { create(options: { readonly params: Watched }): Promise<unknown> };
}

/** The workflow of one run: it looks after the run until the run has ended or paused. */
export class Waker extends WorkflowEntrypoint<Env> {
  /** Looks again and again, each time in a step of its own. */
  override async run({ payload }: { readonly payload: Watched }, step: Cloudflare.WorkflowStep): Promise<void> {
    for (let look = 1, works = true; works; look++) {
      await step.sleep(`wait ${look}`, leaseOf(this.env));
      works = await step.do(`look ${look}`, async () => {
        const { app, store } = await shopOnD1(this.env);
        return await wake(app, store, payload);
      });
    }
  }
}

export default {
  /** Answers a request. A workflow is created before its run begins. */
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    const { app } = await shopOnD1(env, [watching((params) => env.WAKERS.create({ params }))]);
    return await app.fetch(request, env, ctx);
  },
};
