/**
 * Shortens the results of tools.
 *
 * @module
 */
import { mapText, type Middleware } from "../../mod.ts";
import { expectNames } from "../../src/core/kit.ts";

/** Options of `truncate()`, in characters. */
export interface TruncateOptions {
  /** Longest text that is not shortened. Default: 10,000. */
  readonly limit?: number;
  /** Characters to keep at the beginning. Default: half of the limit. */
  readonly head?: number;
  /** Characters to keep at the end. Default: a quarter of the limit. */
  readonly tail?: number;
}

/**
 * Shortens each text of a result that is longer than `limit` to its beginning and its end, and states the number of characters left out. Media stay as they
 * are. Hooks after it see the whole result, hooks before it the shortened one. Without it, the transcript keeps up to `limits.output` characters of a result.
 *
 * Throws a `RangeError` if `head` or `tail` is not a whole number, or both together are more than `limit`.
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
export function truncate(options: TruncateOptions = {}): Middleware {
  expectNames("Cannot create truncate()", options, ["limit", "head", "tail"]);
  const { limit = 10_000, head = Math.floor(limit / 2), tail = Math.floor(limit / 4) } = options;
  if (!(Number.isInteger(head) && Number.isInteger(tail) && head >= 0 && tail >= 0 && head + tail <= limit)) {
    throw new RangeError(
      `Cannot create truncate(): \`head\` is ${head} and \`tail\` is ${tail}; expected whole numbers of together at most ${limit}`,
    );
  }

  function shorten(text: string): string {
    if (text.length <= limit) return text;
    // providers refuse half of a surrogate pair
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
