/** Uses as much of Hono and Zod as the served agent does, and imports nothing else. */
import { Hono } from "hono/tiny";
import { HTTPException } from "hono/http-exception";
import * as z from "zod";
import * as core from "zod/v4/core";

const input = z.object({ city: z.string() });
const schema = [
  input["~standard"].jsonSchema.input({ target: "draft-2020-12" }),
  core.toJSONSchema(input, { io: "input" }),
];

export default new Hono()
  .onError((error, c) => error instanceof HTTPException ? error.getResponse() : c.json({ schema }, 500))
  .notFound((c) => c.json({}, 404))
  .post("/runs", async (c) => {
    const { city } = input.parse(JSON.parse(await c.req.text()));
    c.header("allow", c.req.header("content-type") ?? c.req.method);
    return c.body(city, 200, { "content-type": "text/event-stream" });
  })
  .post("/runs/:id/stop", (c) => c.body(c.req.param("id")))
  .get("/health", (c) => c.json({ status: "ok" }))
  .all("/health", (c) => c.body(null, 405));
