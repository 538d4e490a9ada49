/**
 * A server whose clock is wrong by as many milliseconds as its first argument says. `GET /recover` calls `recover()`. The second argument is the answer of its
 * model; without one, the model waits until it is stopped.
 *
 * @module
 */
import { agent, type Model, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { Hono } from "hono";
import { openDatabase } from "../../examples/fleet/database.ts";

const [shift, answer] = Deno.args;
const { now } = Date;
Date.now = () => now() + Number(shift);

/** A model that begins to answer, and then waits. */
const stuck: Model = {
  id: "stuck",
  async *stream(_request, { signal }) {
    yield [{ type: "text", text: "Half" }];
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  },
};

const { store } = await openDatabase(Deno.env.toObject());
const closing = new AbortController();
const served = serve(agent({ model: answer === undefined ? stuck : scripted(answer) }), {
  store,
  lease: 60_000,
  grace: 0,
  signal: closing.signal,
  onClientGone: "detach",
});
const app = new Hono().route("/", served).get("/recover", async (c) => c.json((await served.recover()).runs));
const server = Deno.serve({
  port: 0,
  hostname: "127.0.0.1",
  onListen: ({ port }) => console.log(`http://127.0.0.1:${port}`),
}, app.fetch);

for await (const _ of Deno.stdin.readable);
closing.abort();
await Promise.all([server.shutdown(), served.settled()]);
Deno.exit(); // closes the connections of the drivers
