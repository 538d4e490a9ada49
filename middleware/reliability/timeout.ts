/**
 * Bounds the time that a tool, or a request to the model, takes.
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

/** How long each may take, in milliseconds. Default: as long as it wants. */
export interface TimeoutOptions {
  /** One request to the model, to the end of its response. */
  readonly model?: number;
  /** One call of a tool, and its wait for a free place where `limits.parallel` are taken. */
  readonly execute?: number;
}

/**
 * Stops a tool after so many milliseconds, and a request to the model where it is given a time of its own: its signal aborts with a `TimeoutError`.
 * The model is told that a tool did not finish in time. What ignores its signal is left behind by the engine after `limits.grace`.
 *
 * For some tools only: `only("search_.*", timeout(2_000))`. Before `retry` it bounds all tries together, after it each of them.
 *
 * Throws a `RangeError` where a time is not more than 0, or is more than a timer takes, 24 days.
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
  const { model, execute } = typeof limit === "number" ? { execute: limit } : limit;
  return {
    name: "timeout",
    ...(model !== undefined && { model: bounded<ModelContext, ModelResponse>(model) }),
    ...(execute !== undefined && { execute: bounded<ExecuteContext, ToolResult>(execute) }),
  };
}

function bounded<C extends Scope, R>(ms: number): Hook<C, Change, R> {
  if (!(ms > 0 && ms < 2 ** 31)) {
    throw new RangeError(`Cannot time out after ${ms} ms: expected more than 0, and 24 days at most`);
  }
  return async function timeoutHook(ctx, next) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException(`Not done after ${ms} ms`, "TimeoutError")), ms);
    try {
      return await next({ signal: AbortSignal.any([ctx.signal, late.signal]) });
    } catch (error) {
      if (!late.signal.aborted || isInterrupt(error)) throw error;
      throw late.signal.reason; // however what was stopped says it
    } finally {
      clearTimeout(timer);
    }
  };
}
