/**
 * What a request to a model takes: tokens, and money where there are prices.
 *
 * @module
 */
import type { ModelRequest, Usage } from "../../../mod.ts";
import { estimateTokens } from "../../../src/core/kit.ts";
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

/** What tokens of a model come to. Throws a `TypeError` where there are prices, and none for the model. */
export function charge(model: string, usage: Usage, prices: Prices | undefined): Partial<Amounts> {
  const tokens = usage.input + usage.output;
  if (!prices || tokens === 0) return { tokens };
  const price = prices[model];
  if (!price) throw new TypeError(`Cannot budget the cost of "${model}": it has no price`);
  const { cached = 0 } = usage;
  const { input, output, cached: again = input } = price;
  return { tokens, cost: ((usage.input - cached) * input + cached * again + usage.output * output) / 1_000_000 };
}

/** Makes an estimate of the tokens of requests, at four characters each. Messages and tools do not change: each is measured once. */
export function estimator(): (request: ModelRequest) => number {
  const known = new WeakMap<object, number>();
  function once<T extends object>(thing: T, measure: (thing: T) => number): number {
    const size = known.get(thing) ?? measure(thing);
    known.set(thing, size);
    return size;
  }
  return ({ messages, instructions, tools }) => {
    let tokens = Math.ceil(instructions.length / 4) +
      once(tools, (tools) => Math.ceil(JSON.stringify(tools).length / 4));
    for (const message of messages) tokens += once(message, (message) => estimateTokens([message]));
    return tokens;
  };
}
