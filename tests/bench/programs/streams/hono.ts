/** The same stream by Hono's `streamSSE`. */
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { count, deltas, macrotask } from "../../kit/floor.ts";

export default new Hono().post("/runs", async (c) => {
  await c.req.json();
  return streamSSE(c, async (stream) => {
    let id = 0;
    for await (const event of deltas(count, macrotask)) {
      await stream.writeSSE({ id: String(++id), data: JSON.stringify(event) });
    }
  });
});
