/**
 * Limits what a run and its subagents may spend.
 *
 * @module
 */
import { type Middleware, noUsage, refused, type Scope, state } from "../../../mod.ts";
import { expectNames } from "../../../src/core/kit.ts";
import { countCalls } from "./calls.ts";
import { charge, type Price, type Prices } from "./charge.ts";
import { type Amounts, ledgerOf } from "./ledger.ts";
import { type BudgetState, chargeRequests } from "./requests.ts";

export type { Amounts, Price, Prices };

/** Options of `budget()`. An amount that is not set has no limit. */
export interface BudgetOptions {
  /** Tokens of requests and answers together. */
  readonly tokens?: number;
  /** Cost, in the currency of `prices`. */
  readonly cost?: number;
  /** Executed calls of tools. */
  readonly calls?: number;
  /** Milliseconds, without the time in which a run is paused. */
  readonly ms?: number;
  /** Prices of the models. With a `cost`, a request to a model without a price fails. */
  readonly prices?: Prices;
  /** Tokens to reserve for an answer if the request has no `maxTokens`. Default: 1,000. */
  readonly reserve?: number;
  /** Name of the middleware, of its ledger, and of the end reason. Two budgets in one agent need two names. Default: "budget". */
  readonly name?: string;
}

/** The middleware that `budget()` returns. */
export interface Budget extends Middleware {
  /** Returns what is left for a run, less reservations: `Infinity` without a limit, negative if overdrawn. */
  left(at: Scope): Amounts;
}

const spent = "the budget is spent";

/**
 * Limits what a run and its subagents may spend together. The estimated tokens of a request and its answer are reserved before it is sent, and replaced by the
 * real ones afterwards. They stay charged if the provider reports no usage, or if the response is cut. A request that fails before its response begins costs
 * nothing.
 *
 * If the next request does not fit, if the time is up, or after a call over the budget, the run gives one last answer: its request has no tools, and the
 * model is told to finish. Then the run ends with the status `limit`. Last answers and low estimates can overdraw a budget. A call over the budget is answered
 * as skipped. A call counts once, when it is executed: a denied call does not count, nor does one that a hook answers. Running work is not stopped when the
 * time is up; use `limits.time` for that.
 *
 * Place it after `retry` and `fallback`, so that it counts every attempt, and before `compaction`. A summary that does not fit fails, and the conversation
 * stays as it is.
 *
 * Throws a `RangeError` if a limit or a price is not a number of 0 or more, and a `TypeError` for an unknown option, which would limit nothing.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { budget } from "@jizai/jizai/middleware/budget";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const spend = budget({ tokens: 200_000, cost: 0.5, prices: { scripted: { input: 3, output: 15 } } });
 * const frugal: Middleware = {
 *   name: "frugal",
 *   turn: (ctx, next) => next(spend.left(ctx).tokens < 20_000 ? { context: [...ctx.context, "Be brief."] } : {}),
 * };
 *
 * const { status } = await agent({ model: scripted("Hello!"), use: [spend, frugal] }).run("Hi").result;
 * assertEquals(status, "done");
 * ```
 */
export function budget(options: BudgetOptions = {}): Budget {
  expectNames("Cannot create budget()", options, ["tokens", "cost", "calls", "ms", "prices", "reserve", "name"]);
  const { prices = {}, reserve = 1_000, name = "budget", ...given } = options;
  const limits: Amounts = { tokens: Infinity, cost: Infinity, calls: Infinity, ms: Infinity, ...given };
  expectAmounts({ ...limits, reserve }, (key) => `"${key}"`);
  for (
    const [model, { input, output, cached = input, cacheWrite = input, reasoning = output }] of Object.entries(prices)
  ) {
    expectAmounts({ input, output, cached, cacheWrite, reasoning }, (key) => `"${key}" of "${model}"`);
  }
  const applied = limits.cost < Infinity ? prices : undefined;
  const bounded = limits.tokens < Infinity || applied !== undefined;
  const ledger = ledgerOf(name, limits);
  const own = state<BudgetState>(`${name}.over`, () => null);

  return {
    name,
    after: ["retry", "fallback"],
    before: ["compaction"],
    inherit: true,
    left: ledger.left,
    async prompt(ctx, next) {
      const stop = ledger.start(ctx);
      try {
        const result = await next();
        const answer = own.get(ctx)?.answer;
        const stands = answer === undefined || result.status === "cancelled";
        return stands ? result : { status: "limit", text: answer, reason: name };
      } finally {
        stop();
      }
    },
    model: chargeRequests({ name, ledger, own, bounded, prices: applied, reserve }),
    execute: countCalls({ name, ledger, own, reason: spent }),
    async compact(ctx, next) {
      const compaction = await next();
      const { usage = noUsage } = compaction; // of requests that a hook has made by itself; the others have passed `model`
      ledger.reserve(ctx, {})(charge(ctx.model.id, usage, applied)); // at the price of the run's own model
      return compaction;
    },
    async subagent(ctx, next) {
      const { tokens, cost, ms } = ledger.left(ctx);
      if (tokens <= 0 || cost <= 0 || ms <= 0) return refused(spent);
      const result = await next();
      const answered = result.status === "limit" && result.reason === name;
      return answered ? { ...result, status: "done" } : result; // the last answer of a subagent is its answer
    },
  };
}

/** Throws a `RangeError` if one of `amounts` is negative or not a number. `nameOf` names it in the error. */
function expectAmounts(amounts: object, nameOf: (key: string) => string): void {
  for (const [key, value] of Object.entries(amounts)) {
    if (!(typeof value === "number" && value >= 0)) {
      throw new RangeError(`Cannot budget ${value} for ${nameOf(key)}: expected a number of 0 or more`);
    }
  }
}
