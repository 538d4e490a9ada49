/**
 * Limits how many runs a user may start within a time window.
 *
 * @module
 */
import { cancelled, type Middleware, type PromptContext } from "../../mod.ts";

/** Options of `rateLimit()`. */
export interface RateLimitOptions<V = unknown> {
  /** Returns the key whose prompts are counted, such as the user's id. */
  readonly per: (ctx: PromptContext<V>) => string;
  /** Prompts that one key may send within one window. */
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly window: number;
}

/**
 * Accepts at most `limit` prompts of each key within any `window`. Further prompts are cancelled, with a reason that says when to try again. The prompts are
 * counted in the memory of this process, and a key is forgotten one window after its last prompt. A refused prompt and a resumed run do not count.
 *
 * Throws a `RangeError` if `limit` is not a whole number of 1 or more, or `window` is not positive.
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
export function rateLimit<V = unknown>({ per, limit, window }: RateLimitOptions<V>): Middleware<V> {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(`Cannot create rateLimit(): \`limit\` is ${limit}; expected a whole number of 1 or more`);
  }
  if (!(window > 0)) {
    throw new RangeError(
      `Cannot create rateLimit(): \`window\` is ${window}; expected a positive number of milliseconds`,
    );
  }
  /** Times of the accepted prompts by key, least recently used key first. */
  const accepted = new Map<string, readonly number[]>();

  function forgetBefore(start: number): void {
    for (const [key, times] of accepted) {
      if ((times.at(-1) ?? 0) > start) return;
      accepted.delete(key);
    }
  }

  return {
    name: "rateLimit",
    async prompt(ctx, next) {
      if (ctx.resumed) return await next();
      const now = Date.now();
      const start = now - window;
      forgetBefore(start);
      const key = per(ctx);
      const times = accepted.get(key)?.filter((time) => time > start) ?? [];
      const [oldest = now] = times;
      if (times.length >= limit) {
        return cancelled(`Too many requests: try again in ${Math.ceil((oldest - start) / 1_000)} s.`);
      }
      accepted.delete(key);
      accepted.set(key, [...times, now]);
      return await next();
    },
  };
}
