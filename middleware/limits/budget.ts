/**
 * Limits what a run and its subagents may spend.
 *
 * @module
 */
import {
  type Change,
  type Event,
  type ExecuteContext,
  type Middleware,
  type ModelChange,
  type ModelContext,
  ModelError,
  type ModelRequest,
  type ModelResponse,
  type Next,
  noUsage,
  refused,
  reply,
  type Run,
  type Scope,
  skipped,
  type State,
  state,
  textOf,
  type ToolResult,
  type Usage,
  user,
} from "../../mod.ts";
import { type Conditional, costOf, estimateTokens, expectNames, onlyIf, type Price } from "../../src/core/kit.ts";
export type { Price } from "../../src/core/kit.ts";

// Keeps the ledger of a budget in the outermost run that uses it. Subagents share it.

/** Amounts of everything that a budget limits. */
interface Amounts {
  /** Tokens. */
  readonly tokens: number;
  /** Cost, in the currency of the prices. */
  readonly cost: number;
  /** Executed calls of tools. */
  readonly calls: number;
  /** Milliseconds. */
  readonly ms: number;
}

/** Records the spending of a run and its subagents. */
type Ledger = ReturnType<typeof ledgerOf>;

/** The amounts besides the calls. */
type Spent = Omit<Amounts, "calls">;

const nothing: Spent = { tokens: 0, cost: 0, ms: 0 };

/** Creates a ledger in the state of a run, under `name`. A reservation counts as spent, because a process that dies may have spent it. */
function ledgerOf(name: string, limits: Amounts) {
  const spent = state<Spent>(`${name}.spent`, () => nothing);
  const calls = state(`${name}.calls`, () => 0); // of its own: a number is written faster than an object, and this one changes with every call
  const since = state<number | null>(`${name}.since`, () => null);
  const startedRuns = new WeakSet<Run>();

  /** Returns the scope of the run that keeps the ledger. */
  function keeperOf(at: Scope): Scope {
    let { run } = at;
    for (let above = run.parent; above; above = above.parent) if (startedRuns.has(above)) run = above;
    return run === at.run ? at : { ...at, run };
  }

  function add(at: Scope, { tokens = 0, cost = 0, ms = 0 }: Partial<Spent>, sign: 1 | -1 = 1): void {
    spent.update(keeperOf(at), (was) => ({
      tokens: was.tokens + sign * tokens,
      cost: was.cost + sign * cost,
      ms: was.ms + sign * ms,
    }));
  }

  function timeLeft(at: Scope): number {
    if (limits.ms === Infinity) return Infinity;
    const keeper = keeperOf(at);
    const start = since.get(keeper);
    return limits.ms - spent.get(keeper).ms - (start === null ? 0 : keeper.run.now() - start);
  }

  return {
    /** Returns the limits less the spent and the reserved amounts. */
    left(at: Scope): Amounts {
      const keeper = keeperOf(at);
      const { tokens, cost } = spent.get(keeper);
      return {
        tokens: limits.tokens - tokens,
        cost: limits.cost - cost,
        calls: limits.calls - calls.get(keeper),
        ms: timeLeft(keeper),
      };
    },
    /** Returns false if the time is up. */
    hasTime: (at: Scope): boolean => timeLeft(at) > 0,
    /** Counts a call. Returns false if no call or no time is left. */
    take(at: Scope): boolean {
      const keeper = keeperOf(at);
      const counted = calls.get(keeper);
      if (limits.calls - counted < 1 || timeLeft(keeper) <= 0) return false;
      calls.set(keeper, counted + 1);
      return true;
    },
    /** Reserves `amounts`. The returned function replaces the reservation by the real amounts. */
    reserve(at: Scope, amounts: Partial<Spent>): (real: Partial<Spent>) => void {
      add(at, amounts);
      return (real) => {
        add(at, real);
        add(at, amounts, -1);
      };
    },
    /** Counts the time of a run until the returned function is called. The time of subagents is included. */
    start(at: Scope): () => void {
      startedRuns.add(at.run);
      if (keeperOf(at) !== at || limits.ms === Infinity) return () => {};
      const now = at.run.now();
      since.set(at, now);
      return () => {
        since.set(at, null);
        add(at, { ms: at.run.now() - now });
      };
    },
  };
}

// Computes the tokens and the cost of requests.

/** Prices by the id of the model. */
type Prices = Readonly<Record<string, Price>>;

/** Returns the amounts for the usage of a model. Throws a `TypeError` if there are prices, but none for the model. */
function charge(model: string, usage: Usage, prices: Prices | undefined): Partial<Amounts> {
  const tokens = usage.input + usage.output;
  if (!prices || tokens === 0) return { tokens };
  const price = prices[model];
  if (!price) throw new TypeError(`Cannot budget the cost of "${model}": it has no price; expected one in \`prices\``);
  return { tokens, cost: costOf(usage, price) };
}

/** Creates a function that estimates the tokens of a request, at four characters each. Messages and tools are immutable, so each is measured once. */
function estimator(): (request: ModelRequest) => number {
  const sizes = new WeakMap<object, number>();
  function sizeOf<T extends object>(value: T, measure: (value: T) => number): number {
    const size = sizes.get(value) ?? measure(value);
    sizes.set(value, size);
    return size;
  }
  return ({ messages, instructions, tools }) => {
    let tokens = Math.ceil(instructions.length / 4) +
      sizeOf(tools, (tools) => Math.ceil(JSON.stringify(tools).length / 4));
    for (const message of messages) tokens += sizeOf(message, (message) => estimateTokens([message]));
    return tokens;
  };
}

// Charges requests to the model, and makes the last one ask for a final answer.

/** The state of one run: null until a call exceeds the budget, or the model gives its last answer. */
type BudgetState = null | {
  /** The last answer, once the model has given it. */
  readonly answer?: string;
};

/** The parts of a budget that charges depend on. */
interface ChargeOptions {
  /** The name of the budget, as the author of its messages. */
  readonly name: string;
  readonly ledger: Ledger;
  readonly overState: State<BudgetState>;
  /** Whether the budget limits tokens or cost. */
  readonly bounded: boolean;
  /** The prices. Undefined if the budget does not limit the cost. */
  readonly prices: Prices | undefined;
  /** Tokens to reserve for an answer if the request has no `maxTokens`. */
  readonly reserve: number;
}

const finish = "The budget is spent. Answer now with what you have. You can no longer use tools.";

/** Returns the `model` hook of a budget. */
function chargeRequests(
  { name, ledger, overState, bounded, prices, reserve }: ChargeOptions,
): Conditional<ModelContext, ModelChange, ModelResponse> {
  const estimate = estimator();

  function expected(request: ModelRequest): Partial<Amounts> {
    if (!bounded) return {};
    const { maxTokens = reserve } = request.options;
    return charge(request.model.id, { input: estimate(request), output: maxTokens }, prices);
  }

  /** Returns whether the hook has work for the next request: the amounts are limited, or the budget is spent. */
  function isLimited(ctx: Scope): boolean {
    return bounded || overState.get(ctx) !== null || !ledger.hasTime(ctx);
  }

  async function chargeRequest(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    const { request } = ctx;
    const spent = overState.get(ctx);
    const reserved = expected(request);
    const isLast = spent !== null || !fits(reserved, ledger.left(ctx));
    if (isLast && ctx.purpose === "summary") throw new ModelError(`Cannot summarize: the budget "${name}" is spent`);
    if (spent?.answer !== undefined) return reply(""); // a continuation after the last answer gets an empty answer
    const settle = ledger.reserve(ctx, reserved);
    let charged: Partial<Amounts> = {};
    try {
      const emit = (event: Event) => {
        if (responseEvents.includes(event.type)) charged = reserved; // stands if the response is cut
        ctx.emit(event);
      };
      const response = await next({ emit, ...(isLast && { request: lastOf(request, name) }) });
      charged = reserved; // stands if the model that answered has no price
      if (isMeasured(response)) charged = charge(response.model, response.usage, prices);
      if (isLast) overState.set(ctx, { answer: textOf(response) });
      return response;
    } finally {
      settle(charged);
    }
  }

  return onlyIf(chargeRequest, isLimited);
}

/** The first event of a response is one of these. */
const responseEvents: readonly Event["type"][] = [
  "text.delta",
  "reasoning.delta",
  "call.delta",
  "call.ready",
  "part.added",
  "provider_tool.started",
];

/** Returns true if the usage of a response is known: the provider has reported it, or a hook answered without a request. */
function isMeasured({ usage, attempts }: ModelResponse): boolean {
  return attempts === 0 || usage.input + usage.output > 0;
}

function fits({ tokens = 0, cost = 0 }: Partial<Amounts>, left: Amounts): boolean {
  return tokens <= left.tokens && cost <= left.cost && left.ms > 0;
}

/** Returns the last request: without tools, and with a message that tells the model to finish. */
function lastOf({ messages }: ModelRequest, from: string): Partial<ModelRequest> {
  return { messages: [...messages, user(finish, from)], tools: [] };
}

// Counts the calls that are executed, and skips those that the budget has no room for.

/** The parts of a budget that count calls. */
interface CountOptions {
  /** The name of the budget. */
  readonly name: string;
  readonly ledger: Ledger;
  readonly overState: State<BudgetState>;
  /** The text for the model about a skipped call. */
  readonly reason: string;
}

/** Returns the `execute` hook of a budget. It counts a call once, also if it is executed again: after a failure, a pause or a crash. */
function countCalls(
  { name, ledger, overState, reason }: CountOptions,
): Conditional<ExecuteContext, Change, ToolResult> {
  const latest = state(`${name}.turn`, () => 0);
  /**
   * The calls of the latest turn that were counted: "!" at the place of each of them in the model's order, and "." at the others. A list would be slow, because
   * a state checks all items at every change. Letters or digits could match a pattern of `redact()`, which masks what is saved.
   */
  const marks = state(`${name}.counted`, () => "");

  /** Counts a call that is not counted yet. Returns false if the budget has no room for it. */
  function count(ctx: ExecuteContext): boolean {
    if (overState.get(ctx)?.answer !== undefined) return false;
    const { turn, callIndex } = ctx;
    const isLatest = latest.get(ctx) === turn;
    const counted = isLatest ? marks.get(ctx) : "";
    if (counted[callIndex] === "!") return true;
    if (!ledger.take(ctx)) return false;
    if (!isLatest) latest.set(ctx, turn);
    const after = counted.slice(callIndex + 1);
    marks.set(ctx, `${counted.slice(0, callIndex).padEnd(callIndex, ".")}!${after}`);
    return true;
  }

  function skipCall(ctx: ExecuteContext): Promise<ToolResult> {
    overState.update(ctx, (before) => before ?? {});
    return Promise.resolve(skipped(`Not run: ${reason}.`));
  }

  return onlyIf(skipCall, (ctx) => !count(ctx));
}

export type { Amounts, Prices };

// The middleware `budget()`, and its options.

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
  const { prices = {}, reserve = 1_000, name = "budget", ...limitOptions } = options;
  const limits: Amounts = { tokens: Infinity, cost: Infinity, calls: Infinity, ms: Infinity, ...limitOptions };
  expectAmounts({ ...limits, reserve }, (key) => `"${key}"`);
  for (
    const [model, { input, output, cached = input, cacheWrite = input, reasoning = output }] of Object.entries(prices)
  ) {
    expectAmounts({ input, output, cached, cacheWrite, reasoning }, (key) => `"${key}" of "${model}"`);
  }
  const applied = limits.cost < Infinity ? prices : undefined;
  const bounded = limits.tokens < Infinity || applied !== undefined;
  const ledger = ledgerOf(name, limits);
  const overState = state<BudgetState>(`${name}.over`, () => null);

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
        const answer = overState.get(ctx)?.answer;
        const stands = answer === undefined || result.status === "cancelled";
        return stands ? result : { status: "limit", text: answer, reason: name };
      } finally {
        stop();
      }
    },
    model: chargeRequests({ name, ledger, overState, bounded, prices: applied, reserve }),
    execute: countCalls({ name, ledger, overState, reason: spent }),
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
