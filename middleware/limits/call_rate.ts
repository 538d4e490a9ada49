/**
 * Limits how many calls of a tool run within a time window.
 *
 * @module
 */
import { type ExecuteContext, type Middleware, Pause, skipped, state } from "../../mod.ts";
import { expectNames, type KeyValue, windowCounter, type WindowOptions } from "../../src/core/kit.ts";
export type { KeyValue, WindowOptions } from "../../src/core/kit.ts";

/** Options of `callRate()`. An event of the window is a call. */
export interface CallRateOptions<V = unknown> extends WindowOptions {
  /** Returns the key whose calls are counted. Default: the name of the tool. */
  readonly per?: (ctx: ExecuteContext<V>) => string | Promise<string>;
  /**
   * The database in which processes count together. Each tenth of the window has a counter, so a call may count for a tenth of the window longer. If the
   * database fails, so does the call. Default: the memory of this process.
   */
  readonly keyValue?: KeyValue;
}

/**
 * Executes at most `limit` calls of each tool within each `window`, over all runs of the agent. A further call is answered as skipped, and the model reads
 * when to try again. A call counts when it is executed, so a denied call does not count, and an attempt that pauses the run counts once. If it stands after
 * `retry`, every attempt counts. Several limits of one agent count separately.
 *
 * `only("search_.*", callRate(...))` limits some tools; `per` can count them together, or each user separately. The calls are counted in the memory of this
 * process, or in `keyValue`. A key is forgotten after its last call.
 *
 * Throws a `RangeError` if `limit` is not a whole number of 1 or more, or `window` is not positive, and a `TypeError` for an unknown option.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { callRate } from "@jizai/jizai/middleware/call_rate";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const search = tool({
 *   name: "search",
 *   description: "Searches the web",
 *   input: z.object({ query: z.string() }),
 *   execute: ({ query }) => `Results for ${query}`,
 * });
 * const model = scripted({ calls: [["search", { query: "tea" }], ["search", { query: "coffee" }]] }, "Tea it is.");
 * const use = [callRate({ limit: 1, window: 60_000 })];
 *
 * const { messages } = await agent({ model, tools: [search], use }).run("Which one?").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status }) => status), ["ok", "skipped"]);
 * ```
 */
export function callRate<V = unknown>(options: CallRateOptions<V>): Middleware<V> {
  expectNames("Cannot create callRate()", options, ["per", "limit", "window", "keyValue"]);
  const { per = ({ tool }) => tool.name, keyValue } = options;
  const count = windowCounter("callRate", options, keyValue);
  return {
    name: "callRate",
    async execute(ctx, next) {
      const isCounted = takePaused(ctx); // removed before the attempt, so the next attempt counts
      const seconds = isCounted ? undefined : await count(await per(ctx));
      if (seconds !== undefined) {
        return skipped(`Not run: too many calls of ${ctx.tool.name}. Try again in ${seconds} s.`);
      }
      try {
        const output = await next();
        forgetPaused(ctx);
        return output;
      } catch (error) {
        if (error instanceof Pause) addPaused(ctx);
        else forgetPaused(ctx);
        throw error;
      }
    },
  };
}

/** A call that has paused the run. */
interface PausedCall {
  readonly key: string;
  readonly turn: number;
}

/**
 * The calls of a turn that have paused the run, each once for every `callRate` that counted the call. The outer ones count first, so when the call resumes,
 * each takes one entry as it enters, and those that find none have not counted the call.
 */
const paused = state<readonly PausedCall[]>("callRate.paused", () => []);

/** Adds the call. The calls of earlier turns are answered: if an outer hook did it, their entries were not taken. */
function addPaused<V>(ctx: ExecuteContext<V>): void {
  const { turn, idempotencyKey: key } = ctx;
  paused.update(ctx, (calls) => [...calls.filter((call) => call.turn === turn), { key, turn }]);
}

/** Removes one entry of the call. Returns whether there was one. */
function takePaused<V>(ctx: ExecuteContext<V>): boolean {
  const calls = paused.get(ctx);
  const place = calls.findIndex(({ key }) => key === ctx.idempotencyKey);
  if (place >= 0) paused.set(ctx, calls.filter((_, index) => index !== place));
  return place >= 0;
}

/** Removes the entries for inner limits that the resumed attempt has not reached, so an outer one does not take them at the next attempt. */
function forgetPaused<V>(ctx: ExecuteContext<V>): void {
  while (takePaused(ctx));
}
