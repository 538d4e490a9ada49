/**
 * Limits what a run and its subagents may spend.
 *
 * @module
 */
import {
  type Emit,
  type Middleware,
  type ModelChange,
  type ModelContext,
  type ModelRequest,
  type ModelResponse,
  type Next,
  Pause,
  refused,
  reply,
  type Run,
  type Scope,
  skipped,
  state,
  textOf,
  type ToolContext,
  type ToolResult,
  user,
} from "../../../mod.ts";
import { onlyIf } from "../../../src/core/kit.ts";
import { charge, estimator, type Price, type Prices } from "./charge.ts";
import { type Amounts, ledgerOf } from "./ledger.ts";

export type { Amounts, Price, Prices };

/** Options of `budget()`. An amount that is not set has no limit. */
export interface BudgetOptions {
  /** Tokens of requests and answers together. */
  readonly tokens?: number;
  /** Cost, in the currency of `prices`. */
  readonly cost?: number;
  /** Calls of tools. */
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
const finish = "The budget is spent. Answer now with what you have. You can no longer use tools.";

/**
 * Limits what a run and its subagents may spend together. The estimated tokens of a request and its answer are reserved before it is sent, and replaced by the
 * real ones afterwards. A failed request costs nothing.
 *
 * If the next request does not fit, if the time is up, or after a call over the budget, the run gives one last answer: its request has no tools, and the
 * model is told to finish. Then the run ends with the status `limit`. Last answers and low estimates can overdraw a budget. A call over the budget is answered
 * as skipped; a denied call does not count. Running work is not stopped when the time is up; use `limits.time` for that.
 *
 * Place it after `retry` and `fallback`, so that it counts every attempt.
 *
 * Throws a `RangeError` if a limit or a price is negative.
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
  const { prices = {}, reserve = 1_000, name = "budget", ...given } = options;
  const limits: Amounts = { tokens: Infinity, cost: Infinity, calls: Infinity, ms: Infinity, ...given };
  expectAmounts({ ...limits, reserve }, (what) => `"${what}"`);
  for (const [model, { input, output, cached = input }] of Object.entries(prices)) {
    expectAmounts({ input, output, cached }, (what) => `"${what}" of "${model}"`);
  }
  const priced = limits.cost < Infinity ? prices : undefined;
  const bounded = limits.tokens < Infinity || priced !== undefined;
  const estimate = estimator();
  const ledger = ledgerOf(name, limits);
  /** Whether this run exceeded the budget, and its last answer. */
  const own = state<{ readonly over: boolean; readonly answer?: string }>(`${name}.own`, () => ({ over: false }));
  /** Reserved calls by run. */
  const open = new WeakMap<Run, Set<string>>();

  function expected(request: ModelRequest): Partial<Amounts> {
    if (!bounded) return {};
    const { maxTokens = reserve } = request.options;
    return charge(request.model.id, { input: estimate(request), output: maxTokens }, priced);
  }

  /** Returns whether the hook has work for the next request: the amounts are limited, or the budget is spent. */
  function isLimited(ctx: Scope): boolean {
    const { over, answer } = own.get(ctx);
    return bounded || over || answer !== undefined || ledger.left(ctx).ms <= 0;
  }

  async function chargeRequest(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    const { request } = ctx;
    const { over, answer } = own.get(ctx);
    if (answer !== undefined) return reply(""); // a continuation after the last answer gets an empty answer
    const most = expected(request);
    const last = over || !fits(most, ledger.left(ctx));
    const settle = ledger.reserve(ctx, most);
    let took: Partial<Amounts> = {};
    try {
      const response = await next(last ? { request: lastOf(request, name) } : undefined);
      took = most; // stands if the model that answered has no price
      took = charge(response.model, response.usage, priced);
      if (last) own.set(ctx, { over, answer: textOf(response) });
      return response;
    } finally {
      settle(took);
    }
  }

  /** Reserves a call until its result. Returns false if none is left. */
  function reserved(ctx: ToolContext): boolean {
    if (own.get(ctx).answer !== undefined || !ledger.take(ctx)) return false;
    open.get(ctx.run)?.add(ctx.call.id);
    return true;
  }

  function skipCall(ctx: ToolContext): Promise<ToolResult> {
    own.update(ctx, (was) => ({ ...was, over: true }));
    return Promise.resolve(skipped(`Not run: ${spent}.`));
  }

  return {
    name,
    after: ["retry", "fallback"],
    inherit: true,
    left: ledger.left,
    async prompt(ctx, next) {
      const stop = ledger.start(ctx);
      const calls = new Set<string>();
      open.set(ctx.run, calls);
      const emit: Emit = (event) => {
        if (event.type === "tool.finished" && calls.delete(event.call)) {
          const { status } = event.result;
          if (status === "denied" || status === "skipped") ledger.giveBack(ctx, 1);
        }
        ctx.emit(event);
      };
      try {
        const result = await next({ emit });
        const { answer } = own.get(ctx);
        const stands = answer === undefined || result.status === "cancelled";
        return stands ? result : { status: "limit", text: answer, reason: name };
      } catch (error) {
        if (error instanceof Pause) ledger.giveBack(ctx, calls.size); // the calls enter again after the pause
        throw error;
      } finally {
        stop();
      }
    },
    model: onlyIf(chargeRequest, isLimited),
    tool: onlyIf(skipCall, (ctx) => !reserved(ctx)),
    async compact(ctx, next) {
      const compaction = await next();
      const { usage } = compaction;
      if (usage) ledger.reserve(ctx, {})(charge(ctx.model.id, usage, priced)); // at the price of the run's own model
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

/** Throws a `RangeError` if one of `amounts` is negative or not a number; `of` names it. */
function expectAmounts(amounts: object, of: (what: string) => string): void {
  for (const [what, value] of Object.entries(amounts)) {
    if (!(value >= 0)) throw new RangeError(`Cannot budget ${value} for ${of(what)}: expected a number of 0 or more`);
  }
}

function fits({ tokens = 0, cost = 0 }: Partial<Amounts>, left: Amounts): boolean {
  return tokens <= left.tokens && cost <= left.cost && left.ms > 0;
}

/** Returns the last request: without tools, and with a message that tells the model to finish. */
function lastOf({ messages }: ModelRequest, from: string): Partial<ModelRequest> {
  return { messages: [...messages, user(finish, from)], tools: [] };
}
