/**
 * Limits how many runs somebody may begin.
 *
 * @module
 */
import { cancelled, type Middleware, type PromptContext } from "../../mod.ts";

/** Whom a rate is limited for, and to what. */
export interface RateLimitOptions<V = unknown> {
  /** Whose run it is: each key has a rate of its own. */
  readonly per: (ctx: PromptContext<V>) => string;
  /** How many prompts are taken within one window. */
  readonly limit: number;
  /** How long one counts, in milliseconds. */
  readonly window: number;
}

/**
 * Takes at most `limit` prompts of each key in any `window`; others are cancelled, with a reason that says when to come back. It counts in the memory of
 * this process, and forgets a key one window after its last prompt. A prompt that was refused does not count; a resumed run is not counted again.
 * Throws a `RangeError` where `limit` is not a whole number of 1 or more, or `window` is not more than 0.
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
    throw new RangeError(`Cannot limit a rate to ${limit} runs: expected a whole number of 1 or more`);
  }
  if (!(window > 0)) throw new RangeError(`Cannot limit a rate over ${window} ms: expected more than 0`);
  /** When each key's prompts were taken; the key that was used last is the last. */
  const taken = new Map<string, readonly number[]>();

  function forget(before: number): void {
    for (const [key, times] of taken) {
      if ((times.at(-1) ?? 0) > before) return;
      taken.delete(key);
    }
  }

  return {
    name: "rateLimit",
    async prompt(ctx, next) {
      if (ctx.resumed) return await next();
      const now = Date.now();
      const start = now - window;
      forget(start);
      const key = per(ctx);
      const times = taken.get(key)?.filter((time) => time > start) ?? [];
      const [oldest = now] = times;
      if (times.length >= limit) {
        return cancelled(`Too many requests: try again in ${Math.ceil((oldest - start) / 1_000)} s.`);
      }
      taken.delete(key);
      taken.set(key, [...times, now]);
      return await next();
    },
  };
}
