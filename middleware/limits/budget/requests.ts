/**
 * Charges requests to the model, and makes the last one ask for a final answer.
 *
 * @module
 */
import {
  type Event,
  type ModelChange,
  type ModelContext,
  ModelError,
  type ModelRequest,
  type ModelResponse,
  type Next,
  reply,
  type Scope,
  type State,
  textOf,
  user,
} from "../../../mod.ts";
import { type Conditional, onlyIf } from "../../../src/core/kit.ts";
import { charge, estimator, type Prices } from "./charge.ts";
import type { Amounts, Ledger } from "./ledger.ts";

/** The state of one run: null until a call exceeds the budget, or the model gives its last answer. */
export type BudgetState = null | {
  /** The last answer, once the model has given it. */
  readonly answer?: string;
};

/** The parts of a budget that charges depend on. */
export interface ChargeOptions {
  /** The name of the budget, as the author of its messages. */
  readonly name: string;
  readonly ledger: Ledger;
  readonly own: State<BudgetState>;
  /** Whether the budget limits tokens or cost. */
  readonly bounded: boolean;
  /** The prices. Undefined if the budget does not limit the cost. */
  readonly prices: Prices | undefined;
  /** Tokens to reserve for an answer if the request has no `maxTokens`. */
  readonly reserve: number;
}

const finish = "The budget is spent. Answer now with what you have. You can no longer use tools.";

/** Returns the `model` hook of a budget. */
export function chargeRequests(
  { name, ledger, own, bounded, prices, reserve }: ChargeOptions,
): Conditional<ModelContext, ModelChange, ModelResponse> {
  const estimate = estimator();

  function expected(request: ModelRequest): Partial<Amounts> {
    if (!bounded) return {};
    const { maxTokens = reserve } = request.options;
    return charge(request.model.id, { input: estimate(request), output: maxTokens }, prices);
  }

  /** Returns whether the hook has work for the next request: the amounts are limited, or the budget is spent. */
  function isLimited(ctx: Scope): boolean {
    return bounded || own.get(ctx) !== null || !ledger.hasTime(ctx);
  }

  async function chargeRequest(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    const { request } = ctx;
    const spent = own.get(ctx);
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
      if (isLast) own.set(ctx, { answer: textOf(response) });
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
