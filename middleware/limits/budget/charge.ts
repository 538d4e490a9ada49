/**
 * Computes the tokens and the cost of requests.
 *
 * @module
 */
import type { ModelRequest, Usage } from "../../../mod.ts";
import { estimateTokens } from "../../../src/core/kit.ts";
import type { Amounts } from "./ledger.ts";

/** Price of a million tokens of a model, in the currency of the budget. */
export interface Price {
  /** Price of the request's tokens. */
  readonly input: number;
  /** Price of the answer's tokens. */
  readonly output: number;
  /** Price of tokens that the provider read from its cache. Default: as `input`. */
  readonly cached?: number;
  /** Price of tokens that the provider wrote to its cache. Default: as `input`. */
  readonly cacheWrite?: number;
  /** Price of the answer's tokens that the model used for reasoning. Default: as `output`. */
  readonly reasoning?: number;
}

/** Prices by the id of the model. */
export type Prices = Readonly<Record<string, Price>>;

/** Returns the amounts for the usage of a model. Throws a `TypeError` if there are prices, but none for the model. */
export function charge(model: string, usage: Usage, prices: Prices | undefined): Partial<Amounts> {
  const tokens = usage.input + usage.output;
  if (!prices || tokens === 0) return { tokens };
  const price = prices[model];
  if (!price) throw new TypeError(`Cannot budget the cost of "${model}": it has no price; expected one in \`prices\``);
  const { cached = 0, cacheWrite = 0, reasoning = 0 } = usage;
  const { input, output } = price;
  const cost = (usage.input - cached - cacheWrite) * input + (usage.output - reasoning) * output +
    cached * (price.cached ?? input) + cacheWrite * (price.cacheWrite ?? input) +
    reasoning * (price.reasoning ?? output);
  return { tokens, cost: cost / 1_000_000 };
}

/** Creates a function that estimates the tokens of a request, at four characters each. Messages and tools are immutable, so each is measured once. */
export function estimator(): (request: ModelRequest) => number {
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
