/**
 * Tries again what failed: a request to the model, or a tool.
 *
 * @module
 */
import { isInterrupt, type Middleware, ModelError, type Scope } from "../../mod.ts";
import { delay as wait, trackShownText } from "../../src/core/kit.ts";

/** What failed, for a condition. */
export interface Failure {
  /** Where it failed. */
  readonly point: "model" | "execute";
  /** The tool, at `execute`. */
  readonly tool?: string;
  /** From 1: the try that failed. */
  readonly attempt: number;
}

/** How often and how soon to try again. */
export interface RetryOptions {
  /** Tries in all, the first among them. Default: 3. */
  readonly attempts?: number;
  /** Whether another try may help. Default: at `model`, what the model calls recoverable, and timeouts; at `execute`, everything. */
  readonly when?: (error: unknown, failure: Failure) => boolean;
  /** The longest wait before the second try, in milliseconds; twice that before the third, and so on. How long it is, is left to chance. Default: 500. */
  readonly delay?: number;
  /** The longest wait before any try, in milliseconds. A provider that asks for more is not asked again. Default: 30,000. */
  readonly max?: number;
  /** Tries again although text of the answer was shown: `model.reset` tells whoever watches to start over. Default: false. */
  readonly afterText?: boolean;
}

/**
 * Tries again, after a while, when a request to the model or a tool fails. What a provider says about when to come back is honoured, and a run that stops
 * does not wait. Each failure that it got over is told to the operator.
 *
 * A tool that is tried again is executed again, with the same `idempotencyKey`: let `when` leave out tools that cannot bear it. Before `fallback` it asks
 * the first model again when all have failed, after it each model has its tries; so too `timeout`: before it for all tries, after it for each.
 *
 * Throws a `RangeError` where `attempts` is not a whole number of 1 or more, or a time is negative or more than a timer takes, 24 days.
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
export function retry(
  { attempts = 3, when = mayHelp, delay = 500, max = 30_000, afterText = false }: RetryOptions = {},
): Middleware {
  if (!(Number.isInteger(attempts) && attempts >= 1)) {
    throw new RangeError(`Cannot retry with ${attempts} attempts: expected a whole number of 1 or more`);
  }
  for (const ms of [delay, max]) {
    if (!(ms >= 0 && ms < 2 ** 31)) {
      throw new RangeError(`Cannot retry after ${ms} ms: expected 0 or more, and 24 days at most`);
    }
  }

  /** How long to wait before the next try; nothing where the provider asks for more than that. */
  function pause(error: unknown, attempt: number): number | undefined {
    const asked = error instanceof ModelError ? error.retryAfter ?? 0 : 0;
    if (asked > max) return undefined;
    return Math.max(asked, Math.random() * Math.min(max, delay * 2 ** (attempt - 1)));
  }

  async function insist<R>(
    { run, signal }: Scope,
    once: () => Promise<R>,
    may: (error: unknown, attempt: number) => boolean,
  ): Promise<R> {
    for (let attempt = 1;; attempt++) {
      try {
        return await once();
      } catch (error) {
        if (attempt >= attempts || isInterrupt(error) || signal.aborted || !may(error, attempt)) throw error;
        const ms = pause(error, attempt);
        if (ms === undefined) throw error;
        run.report(error);
        await wait(ms, signal);
      }
    }
  }

  return {
    name: "retry",
    async model(ctx, next) {
      const shown = trackShownText(ctx.emit);
      return await insist(
        ctx,
        () => next({ emit: shown.emit }),
        (error, attempt) => (afterText || !shown.text) && when(error, { point: "model", attempt }),
      );
    },
    async execute(ctx, next) {
      return await insist(ctx, () => next(), (error, attempt) => {
        return when(error, { point: "execute", tool: ctx.tool.name, attempt });
      });
    },
  };
}

function mayHelp(error: unknown, { point }: Failure): boolean {
  if (point === "execute") return true;
  return error instanceof ModelError
    ? error.recoverable
    : error instanceof DOMException && error.name === "TimeoutError";
}
