/**
 * What a request to a model takes: tokens, and money where there are prices.
 *
 * @module
 */
import { estimate } from "../../src/core/compact.ts";
import type { ModelRequest } from "../../src/model/model.ts";
import type { Usage } from "../../src/protocol/message.ts";
import type { Amounts } from "./ledger.ts";

/** What a million tokens of a model cost, in the currency of the budget. */
export interface Price {
  /** Of the request. */
  readonly input: number;
  /** Of the answer. */
  readonly output: number;
  /** Of that part of the request which the provider had cached. Default: as `input`. */
  readonly cached?: number;
}

/** What each model costs, by its id. */
export type Prices = Readonly<Record<string, Price>>;

/** What a request took. Throws a `TypeError` where there are prices, and none for its model. */
export function charge({ model: { id } }: ModelRequest, usage: Usage, prices: Prices | undefined): Partial<Amounts> {
  const tokens = usage.input + usage.output;
  if (!prices) return { tokens };
  const price = prices[id];
  if (!price) throw new TypeError(`Cannot budget the cost of "${id}": it has no price`);
  const { cached = 0 } = usage;
  const { input, output, cached: again = input } = price;
  return { tokens, cost: ((usage.input - cached) * input + cached * again + usage.output * output) / 1_000_000 };
}

/** What a request is going to take, estimated at four characters a token, with an answer of so many tokens where it says no `maxTokens`. */
export function expected(request: ModelRequest, answer: number, prices: Prices | undefined): Partial<Amounts> {
  const { messages, instructions, tools, options: { maxTokens = answer } } = request;
  const told = Math.ceil((instructions.length + JSON.stringify(tools).length) / 4);
  return charge(request, { input: estimate(messages) + told, output: maxTokens }, prices);
}
