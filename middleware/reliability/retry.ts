/**
 * Repeats failed requests to the model, and failed executions of tools.
 *
 * @module
 */
import { type ExecuteContext, isInterrupt, type Middleware, ModelError, type Scope, ToolError } from "../../mod.ts";
import { delay as wait, expectNames, expectTime, isLate, trackShownText } from "../../src/core/kit.ts";

/** Describes a failed attempt to the condition of `retry()`. */
export interface Failure {
  /** The point at which it failed. */
  readonly point: "model" | "execute";
  /** The tool, at `execute`. */
  readonly tool?: string;
  /** The number of the failed attempt, from 1. */
  readonly attempt: number;
}

/** Options of `retry()`. */
export interface RetryOptions {
  /** Attempts in all, including the first. Default: 3. */
  readonly attempts?: number;
  /**
   * Whether to repeat a failed attempt. At `model`, it replaces the default: errors that the provider marks as recoverable, and timeouts. At `execute`,
   * it can only exclude failures: a tool that is neither `idempotent` nor has begun a step, or one that threw a `ToolError`, is never repeated. Default there:
   * repeat the rest.
   */
  readonly when?: (error: unknown, failure: Failure) => boolean | Promise<boolean>;
  /** The longest wait before the second attempt, in milliseconds. It doubles with every attempt; the actual wait is random. Default: 500. */
  readonly delay?: number;
  /** The longest wait before an attempt, in milliseconds. If the provider asks for a longer one, the failure stands. Default: 30,000. */
  readonly max?: number;
  /** Repeats a request even if text of its answer was emitted; `model.reset` then tells clients to discard the text. Default: false. */
  readonly afterText?: boolean;
}

/**
 * Repeats a failed request to the model, and a failed execution of a tool that is `idempotent` or has begun a `step`. It waits with exponential backoff, but at least as long
 * as the provider asks for. A run that is stopped does not wait. Every failure that leads to another attempt is reported to the operator.
 *
 * Every attempt of a call has the same `idempotencyKey`. If `retry` stands before `fallback`, it starts again with the first model after all have failed; after
 * `fallback`, each model has its own attempts. If it stands before `timeout`, the time limits each attempt; after `timeout`, all attempts together.
 *
 * Throws a `TypeError` for an unknown option, and a `RangeError` if `attempts` is not a whole number of 1 or more, or a time is negative or longer than a timer can run (24 days).
 *
 * ```ts
 * import { agent, ModelError } from "@jizai/jizai";
 * import { retry } from "@jizai/jizai/middleware/retry";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const busy = new ModelError("Overloaded", { recoverable: true, retryAfter: 5 });
 * const model = scripted({ error: busy }, "Hello!");
 *
 * const { text } = await agent({ model, use: [retry({ attempts: 2, delay: 10 })] }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function retry(options: RetryOptions = {}): Middleware {
  expectNames("Cannot create retry()", options, ["attempts", "when", "delay", "max", "afterText"]);
  const { attempts = 3, when, delay = 500, max = 30_000, afterText = false } = options;
  if (!(Number.isInteger(attempts) && attempts >= 1)) {
    throw new RangeError(`Cannot create retry(): \`attempts\` is ${attempts}; expected a whole number of 1 or more`);
  }
  expectTime("Cannot create retry(): `delay`", delay, { zero: true });
  expectTime("Cannot create retry(): `max`", max, { zero: true });

  /** Returns the time to wait before the next attempt, or `undefined` if the provider asks for more than `max`. */
  function backoff(error: unknown, attempt: number): number | undefined {
    const asked = error instanceof ModelError ? error.retryAfter ?? 0 : 0;
    if (asked > max) return undefined;
    return Math.max(asked, Math.random() * Math.min(max, delay * 2 ** (attempt - 1)));
  }

  async function repeat<R>(
    { run, signal }: Scope,
    once: () => Promise<R>,
    mayRepeat: (error: unknown, attempt: number) => boolean | Promise<boolean>,
  ): Promise<R> {
    for (let attempt = 1;; attempt++) {
      try {
        return await once();
      } catch (error) {
        const isFinal = attempt >= attempts || isInterrupt(error) || signal.aborted;
        if (isFinal || !await mayRepeat(error, attempt)) throw error;
        const ms = backoff(error, attempt);
        if (ms === undefined) throw error;
        run.report(error);
        await wait(ms, signal);
      }
    }
  }

  async function repeatExecution<R>(ctx: ExecuteContext, next: () => Promise<R>): Promise<R> {
    return await repeat(ctx, () => next(), (error, attempt) => {
      if (!ctx.mayRepeat() || error instanceof ToolError) return false; // the tool has an effect, or has answered
      return when?.(error, { point: "execute", tool: ctx.tool.name, attempt }) ?? true;
    });
  }

  return {
    name: "retry",
    async model(ctx, next) {
      const shown = trackShownText(ctx.emit);
      return await repeat(
        ctx,
        () => next({ emit: shown.emit }),
        (error, attempt) => {
          if (shown.text && !afterText) return false;
          return when?.(error, { point: "model", attempt }) ?? isTemporary(error);
        },
      );
    },
    execute: repeatExecution,
  };
}

function isTemporary(error: unknown): boolean {
  return error instanceof ModelError ? error.recoverable : isLate(error);
}
