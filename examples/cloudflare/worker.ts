/**
 * Serves the shop on Cloudflare: the Worker authenticates the user, and forwards the request to the Durable Object of the conversation.
 *
 * ```sh
 * cd examples/cloudflare
 * npx wrangler dev --var FORWARD_SECRET:"$(openssl rand -hex 32)"
 * ```
 *
 * @module
 */
import { forward, type Stub } from "@jizai/jizai/forward";
import { Hono } from "hono";
import type { Customer } from "../shop/shop.ts";
import { keysOf, type Settings } from "./conversation.ts";

export { Conversation } from "./conversation.ts";

interface Env extends Settings {
  readonly CONVERSATION: { getByName(name: string): Stub };
}

export default new Hono<{ Bindings: Env; Variables: Customer }>()
  .use(async (c, next) => {
    c.set("user", c.req.header("x-user") ?? "guest"); // your login
    await next();
  })
  .all("/:conversation/*", (c) => {
    const { env, var: { user } } = c;
    const name = JSON.stringify([user, c.req.param("conversation")]); // a user reaches only own conversations
    return forward(c, env.CONVERSATION.getByName(name), { user }, { keys: keysOf(env) });
  });
