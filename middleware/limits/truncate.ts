/**
 * Shortens what tools return.
 *
 * @module
 */
import { mapText, type Middleware } from "../../mod.ts";

/** How much of a text stays, in characters. */
export interface TruncateOptions {
  /** The longest text that stays whole. Default: 10,000. */
  readonly limit?: number;
  /** How much of its beginning stays. Default: half of the limit. */
  readonly head?: number;
  /** How much of its end stays. Default: a quarter of the limit. */
  readonly tail?: number;
}

/**
 * Keeps the beginning and the end of a tool's output that is longer than `limit`, and says how much was left out between them. Each text of a result
 * counts by itself; media stay as they are. Hooks after it see the whole output, hooks before it what is left.
 *
 * Throws a `RangeError` where `head` and `tail` are not whole numbers, or are more than `limit` together.
 *
 * ```ts
 * import { agent, textOf, tool } from "@jizai/jizai";
 * import { truncate } from "@jizai/jizai/middleware/truncate";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const log = tool({
 *   name: "log",
 *   description: "Shows the log",
 *   input: z.object({}),
 *   execute: () => `Started. ${"Tick. ".repeat(1_000)}Stopped.`,
 * });
 * const model = scripted({ calls: [["log", {}]] }, "It ticked.");
 * const use = [truncate({ limit: 100, head: 20, tail: 14 })];
 *
 * const { messages } = await agent({ model, tools: [log], use }).run("Go").result;
 * const [result] = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(result && textOf(result), "Started. Tick. Tick.\n\n[... OMITTED 5983 chars ...]\n\nTick. Stopped.");
 * ```
 */
export function truncate(
  { limit = 10_000, head = Math.floor(limit / 2), tail = Math.floor(limit / 4) }: TruncateOptions = {},
): Middleware {
  if (!(Number.isInteger(head) && Number.isInteger(tail) && head >= 0 && tail >= 0 && head + tail <= limit)) {
    throw new RangeError(
      `Cannot truncate to ${head} and ${tail} of ${limit} characters: expected whole numbers that fit`,
    );
  }

  function shorten(text: string): string {
    if (text.length <= limit) return text;
    // half a surrogate pair is no character, and providers refuse it
    const start = text.slice(0, head).replace(/[\uD800-\uDBFF]$/, "");
    const end = text.slice(text.length - tail).replace(/^[\uDC00-\uDFFF]/, "");
    const omitted = text.length - start.length - end.length;
    const shorter = `${start}\n\n[... OMITTED ${omitted} chars ...]\n\n${end}`;
    return shorter.length < text.length ? shorter : text;
  }

  return {
    name: "truncate",
    async tool(_, next) {
      return mapText(await next(), shorten);
    },
  };
}
