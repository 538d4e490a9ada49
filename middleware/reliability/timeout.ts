/**
 * Limits the time of tools and of requests to the model.
 *
 * @module
 */
import {
  type Change,
  type ExecuteContext,
  type Hook,
  isInterrupt,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  type Scope,
  type ToolResult,
} from "../../mod.ts";
import { anySignal, expectNames, expectTime, lateAfter } from "../../src/core/kit.ts";

/** Time limits in milliseconds. Default: none. */
export interface TimeoutOptions {
  /** Time of one request to the model, including its response. */
  readonly model?: number;
  /** Time of one call of a tool, including its wait for one of `limits.parallel` slots. */
  readonly execute?: number;
}

/**
 * Aborts a tool after a number of milliseconds, and a request to the model if `model` is set: the signal aborts with a `TimeoutError`. The model reads that the
 * tool did not finish in time. The engine abandons work that ignores its signal after `limits.grace`.
 *
 * `only("search_.*", timeout(2_000))` limits some tools. Before `retry`, it limits all attempts together; after `retry`, each attempt.
 *
 * Throws a `RangeError` if a time is not positive, or longer than a timer can run (24 days), and a `TypeError` for an unknown option.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { timeout } from "@jizai/jizai/middleware/timeout";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const slow = tool({
 *   name: "slow",
 *   description: "Waits until it is stopped",
 *   input: z.object({}),
 *   execute: (_, { signal }) =>
 *     new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
 * });
 * const model = scripted({ calls: [["slow", {}]] }, "It took too long.");
 *
 * const { messages } = await agent({ model, tools: [slow], use: [timeout(5)] }).run("Go").result;
 * assertEquals(messages[2]?.role === "tool" && messages[2].results[0]?.status, "timeout");
 * ```
 */
export function timeout(limit: number | TimeoutOptions): Middleware {
  if (typeof limit !== "object") expectTime(subject, limit);
  const options = typeof limit === "object" ? limit : { execute: limit };
  expectNames("Cannot create timeout()", options, ["model", "execute"]);
  const { model, execute } = options;
  return {
    name: "timeout",
    ...(model !== undefined && { model: bounded<ModelContext, ModelResponse>(model) }),
    ...(execute !== undefined && { execute: bounded<ExecuteContext, ToolResult>(execute) }),
  };
}

const subject = "Cannot create timeout(): the time";

function bounded<C extends Scope, R>(ms: number): Hook<C, Change, R> {
  expectTime(subject, ms);
  return async function timeoutHook(ctx, next) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(lateAfter(ms)), ms);
    try {
      return await next({ signal: anySignal([ctx.signal, late.signal]) });
    } catch (error) {
      if (!late.signal.aborted || isInterrupt(error)) throw error;
      throw late.signal.reason; // replaces the error of the stopped work
    } finally {
      clearTimeout(timer);
    }
  };
}
