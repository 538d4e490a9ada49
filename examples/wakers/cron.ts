/**
 * Serves the shop in a Worker. A cron trigger counts the kettles every morning, and another one continues each run whose Worker was ended.
 *
 * ```sh
 * cd examples/wakers
 * npx wrangler dev --config cron.jsonc
 * curl 'localhost:8787/cdn-cgi/local/scheduled?cron=0+7+*+*+*'
 * ```
 *
 * @module
 */
import { type Schedule, schedule } from "@jizai/jizai/schedule";
import type { ExecutionContext } from "hono";
import { type Settings, shopOnD1 } from "./shop_on_d1.ts";

/** Their expressions are those of the triggers in `cron.jsonc`. */
const schedules: readonly Schedule[] = [
  { name: "count", cron: "0 7 * * *", prompt: "Count the kettles", owner: "shop" },
  { name: "recover", cron: "* * * * *", recover: true },
];

export default {
  async fetch(request: Request, env: Settings, ctx: ExecutionContext): Promise<Response> {
    const { app } = await shopOnD1(env);
    return await app.fetch(request, env, ctx);
  },

  async scheduled(trigger: { readonly cron: string; readonly scheduledTime: number }, env: Settings): Promise<void> {
    const { app } = await shopOnD1(env);
    await schedule(app, schedules).scheduled(trigger);
  },
};
