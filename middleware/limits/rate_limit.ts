/**
 * Limits how many messages a user may send within a time window.
 *
 * @module
 */
import { type InputContext, type Middleware, refused } from "../../mod.ts";
import { expectNames, type KeyValue, windowCounter, type WindowOptions } from "../../src/core/kit.ts";
export type { KeyValue, WindowOptions } from "../../src/core/kit.ts";

/** Options of `rateLimit()`. An event of the window is a message. */
export interface RateLimitOptions<V = unknown> extends WindowOptions {
  /** Returns the key whose messages are counted, such as the user's id. */
  readonly per: (ctx: InputContext<V>) => string | Promise<string>;
  /**
   * The database in which processes count together. Each tenth of the window has a counter, so a prompt may count for a tenth of the window longer. If the
   * database fails, so does the run. Default: the memory of this process.
   */
  readonly keyValue?: KeyValue;
}

/**
 * Accepts at most `limit` messages of each key within each `window`: prompts, and messages to a run while it works. Further messages are refused, with a
 * reason that says when to try again. They are counted in the memory of this process, or in `keyValue`. A key is forgotten after its last message. The
 * messages that it refuses, answers to questions and the history that a client sends do not count. A message that a later middleware refuses counts.
 *
 * Throws a `RangeError` if `limit` is not a whole number of 1 or more, or `window` is not positive, and a `TypeError` for an unknown option.
 *
 * ```ts
 * import { agent, type Scope } from "@jizai/jizai";
 * import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const assistant = agent({
 *   model: scripted("Hello!"),
 *   use: [rateLimit({ per: ({ vars }: Scope<{ user: string }>) => vars.user, limit: 1, window: 60_000 })],
 * });
 *
 * const first = await assistant.run({ prompt: "Hi", vars: { user: "Ada" } }).result;
 * const second = await assistant.run({ prompt: "Hi", vars: { user: "Ada" } }).result;
 * assertEquals([first.status, second.status], ["done", "cancelled"]);
 * ```
 */
export function rateLimit<V = unknown>(options: RateLimitOptions<V>): Middleware<V> {
  expectNames("Cannot create rateLimit()", options, ["per", "limit", "window", "keyValue"]);
  const { per, keyValue } = options;
  const count = windowCounter("rateLimit", options, keyValue);
  return {
    name: "rateLimit",
    async input(ctx, next) {
      if (ctx.source !== "prompt" && ctx.source !== "steering") return await next();
      const seconds = await count(await per(ctx));
      return seconds === undefined ? await next() : refused(`Too many requests: try again in ${seconds} s.`);
    },
  };
}
