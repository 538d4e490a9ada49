/**
 * Tokens and their cost.
 *
 * @module
 */
import type { Usage } from "../../../../protocol/message.ts";
import type { Price } from "../../page_data.ts";
import type { Turn } from "./view.ts";

/** Prices of a million tokens by the id of the model. */
export type Prices = Readonly<Record<string, Price>>;

/** Tokens, and their cost if all models have a price. */
export interface Spending extends Required<Usage> {
  readonly cost?: number;
}

/** Adds up the tokens and the cost of model requests. Returns undefined if none of them is complete. */
export function spendingOf(turns: readonly Turn[], prices: Prices): Spending | undefined {
  const complete = turns.flatMap(({ usage, model }) => usage ? [{ usage, cost: costOf(usage, prices[model]) }] : []);
  if (complete.length === 0) return undefined;
  const total = (key: keyof Usage) => complete.reduce((sum, { usage }) => sum + (usage[key] ?? 0), 0);
  const cost = complete.reduce<number | undefined>(
    (sum, each) => sum === undefined || each.cost === undefined ? undefined : sum + each.cost,
    0,
  );
  const tokens = {
    input: total("input"),
    output: total("output"),
    cached: total("cached"),
    cacheWrite: total("cacheWrite"),
    reasoning: total("reasoning"),
  };
  return cost === undefined ? tokens : { ...tokens, cost };
}

function costOf(usage: Usage, price: Price | undefined): number | undefined {
  if (!price) return undefined;
  const { cached = 0, cacheWrite = 0, reasoning = 0 } = usage;
  const { input, output } = price;
  const ofCache = cached * (price.cached ?? input) + cacheWrite * (price.cacheWrite ?? input);
  const ofAnswer = (usage.output - reasoning) * output + reasoning * (price.reasoning ?? output);
  return ((usage.input - cached - cacheWrite) * input + ofCache + ofAnswer) / 1_000_000;
}

/** Writes numbers as the page does. */
const count = new Intl.NumberFormat("en");
const amount = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Returns the tokens and the cost as words. */
export function wordsOf({ input, output, cached, reasoning, cost }: Spending): string {
  const words = [`${count.format(input)} tokens in`, `${count.format(output)} out`];
  if (cached > 0) words.push(`${count.format(cached)} cached`);
  if (reasoning > 0) words.push(`${count.format(reasoning)} reasoning`);
  if (cost !== undefined) words.push(`cost ${amount.format(cost)}`);
  return words.join(" · ");
}

/** Returns a duration as words. */
export function timeOf(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
