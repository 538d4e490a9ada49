import { agent, serve } from "@jizai/jizai";
import { memoryLog } from "@jizai/jizai/session/log";
import { assertEquals } from "@std/assert";
import { first, framesOf, piecesOf, post } from "../support/requests.ts";
import { halting } from "../support/halting.ts";

/** Counts the listeners of a signal. Those that were added with a signal are removed when that signal aborts. */
function countListeners(signal: AbortSignal): () => number {
  const added: (AbortSignal | undefined)[] = [];
  const add = signal.addEventListener.bind(signal);
  signal.addEventListener = (...[type, listener, options]: Parameters<AbortSignal["addEventListener"]>) => {
    added.push(typeof options === "object" ? options.signal : undefined);
    add(type, listener, options);
  };
  return () => added.filter((until) => !until?.aborted).length;
}

Deno.test("a follower leaves no listener on the signal of the server where AbortSignal.any() is missing", async () => {
  const { any } = AbortSignal;
  Reflect.deleteProperty(AbortSignal, "any");
  try {
    const shutdown = new AbortController();
    const listeners = countListeners(shutdown.signal);
    const { model, begun, release } = halting();
    const app = serve(agent({ model }), { log: memoryLog(), signal: shutdown.signal });
    const pieces = piecesOf(await post(app, "/runs", { prompt: "Go" }));
    const { run } = first("run.started", framesOf(await pieces.until("One.")));
    await begun;
    const before = listeners();
    const follower = await app.request(`/runs/${run}`);
    const text = follower.text();
    release();
    await pieces.rest();
    await text;
    assertEquals(listeners(), before);
  } finally {
    AbortSignal.any = any;
  }
});
