/**
 * Forwards each request to the Durable Object of its conversation.
 *
 * @module
 */
import { forward, type Stub } from "@jizai/jizai/forward";
import { Hono } from "hono";
import { keysOf, type Settings } from "./conversation.ts";
import { refuseOtherHosts } from "../../app/src/local.ts";

export { Conversation } from "./conversation.ts";

interface Env extends Settings {
  readonly CONVERSATION: { getByName(name: string): Stub };
}

export default new Hono<{ Bindings: Env }>()
  .use(async (c, next) => (c.env.LOCAL_ONLY ? refuseOtherHosts(c.req.raw) : undefined) ?? await next())
  .get("/", (c) => c.redirect("/my-conversation"))
  .post("/:conversation", (c) => {
    const message =
      `Cannot POST ${c.req.path}: a path begins with a conversation; expected /my-conversation${c.req.path}`;
    return c.json({ error: { code: "unknown", message } }, 404);
  })
  .all("/:conversation/*", (c) => {
    const user = "guest"; // the user that your authentication found
    const name = JSON.stringify([user, c.req.param("conversation")]); // conversations of different users are different
    return forward(c, c.env.CONVERSATION.getByName(name), { user }, { keys: keysOf(c.env) });
  });
