/**
 * Bounds what a run and the agents beneath it may spend.
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

/** What may be spent. What is not said has no limit. */
export interface BudgetOptions {
  /** Tokens, of requests and answers together. */
  readonly tokens?: number;
  /** Money, in the currency of `prices`. */
  readonly cost?: number;
  /** Calls of tools. */
  readonly calls?: number;
  /** Milliseconds, without those in which a run waits for a person. */
  readonly ms?: number;
  /** What each model costs. One that is not here cannot be asked where there is a `cost`. */
  readonly prices?: Prices;
  /** Tokens that are reserved for an answer, where the request says no `maxTokens`. Default: 1,000. */
  readonly reserve?: number;
  /** Its name, the reason that a run ends with, and what its ledger is kept under: two that meet in one agent need two. Default: "budget". */
  readonly name?: string;
}

/** A budget, and what hooks and tools can read of it. */
export interface Budget extends Middleware {
  /** What is left for a run, less what is reserved: `Infinity` of what has no limit, below 0 what was overdrawn. */
  left(at: Scope): Amounts;
}

const spent = "the budget is spent";
const finish = "The budget is spent. Answer now, with what you have: you cannot use tools any more.";

/**
 * Bounds what a run and the agents beneath it may spend together: they share one ledger. The estimated tokens of a request and its answer are reserved before
 * it is sent, and what it really took is settled afterwards; one that fails costs nothing.
 *
 * A run gives one last answer when its next request does not fit, when the time is up, and after a call that was over the budget: that request has no tools,
 * and the model is told to finish. Then the run ends with the status `limit`. Last answers, one for each agent at work, and low estimates may overdraw a budget.
 * A call over the budget is answered as skipped; one that is denied does not count. What runs when the time is up is not stopped: `limits.time` does that.
 *
 * It stands after `retry` and `fallback`, so that it counts every try. Where there is a `cost`, a request to a model that has no price fails.
 * Throws a `RangeError` where a limit, or a price, is less than 0.
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
  /** Whether this run asked for more than was left, and what it answered at last. */
  const own = state<{ readonly over: boolean; readonly answer?: string }>(`${name}.own`, () => ({ over: false }));
  /** The calls of each run that are reserved. */
  const open = new WeakMap<Run, Set<string>>();

  function expected(request: ModelRequest): Partial<Amounts> {
    if (!bounded) return {};
    const { maxTokens = reserve } = request.options;
    return charge(request.model.id, { input: estimate(request), output: maxTokens }, priced);
  }

  /** Whether there is something to say about the next request: what it may take is bounded, or it is the last one, or comes after that. */
  function concerned(ctx: Scope): boolean {
    const { over, answer } = own.get(ctx);
    return bounded || over || answer !== undefined || ledger.left(ctx).ms <= 0;
  }

  async function asking(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    const { request } = ctx;
    const { over, answer } = own.get(ctx);
    if (answer !== undefined) return reply(""); // whoever goes on after the last answer hears nothing more
    const most = expected(request);
    const last = over || !fits(most, ledger.left(ctx));
    const settle = ledger.reserve(ctx, most);
    let took: Partial<Amounts> = {};
    try {
      const response = await next(last ? { request: lastOf(request, name) } : undefined);
      took = most; // which stands where whoever answered has no price
      took = charge(response.model, response.usage, priced);
      if (last) own.set(ctx, { over, answer: textOf(response) });
      return response;
    } finally {
      settle(took);
    }
  }

  /** Reserves a call, until it comes to a result; not where none is left. */
  function reserved(ctx: ToolContext): boolean {
    if (own.get(ctx).answer !== undefined || !ledger.take(ctx)) return false;
    open.get(ctx.run)?.add(ctx.call.id);
    return true;
  }

  function refusing(ctx: ToolContext): Promise<ToolResult> {
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
        if (error instanceof Pause) ledger.giveBack(ctx, calls.size); // they begin anew
        throw error;
      } finally {
        stop();
      }
    },
    model: onlyIf(asking, concerned),
    tool: onlyIf(refusing, (ctx) => !reserved(ctx)),
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
      return answered ? { ...result, status: "done" } : result; // its last answer is an answer
    },
  };
}

/** Throws a `RangeError` where one of `amounts` is none; `of` says whose it is. */
function expectAmounts(amounts: object, of: (what: string) => string): void {
  for (const [what, value] of Object.entries(amounts)) {
    if (!(value >= 0)) throw new RangeError(`Cannot budget ${value} for ${of(what)}: expected a number of 0 or more`);
  }
}

function fits({ tokens = 0, cost = 0 }: Partial<Amounts>, left: Amounts): boolean {
  return tokens <= left.tokens && cost <= left.cost && left.ms > 0;
}

/** The last request: without tools, and with what is said to the model about that. */
function lastOf({ messages }: ModelRequest, from: string): Partial<ModelRequest> {
  return { messages: [...messages, user(finish, from)], tools: [] };
}
