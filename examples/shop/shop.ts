/**
 * The shop: an agent that counts, delivers and orders items for the user who is logged in.
 *
 * @module
 */
import { type Agent, agent, type Middleware, tool, type ToolExecutionContext } from "@jizai/jizai";
import { delay } from "@jizai/jizai/kit";
import * as z from "zod";
import { ruleBased } from "./rules.ts";

/** The vars of a run: the customer. */
export interface Customer {
  readonly user: string;
}

/** Options of `shop()`. */
export interface ShopOptions {
  /** Milliseconds that a step takes: one shelf, or one word of the model. Default: 20. */
  readonly pace?: number;
  /** Middleware. Default: none. */
  readonly use?: readonly Middleware<Customer>[];
}

const stock = { lanterns: 12, kettles: 7, hooks: 31 };
const item = z.enum(["lanterns", "kettles", "hooks"]);
const amount = z.number().int().min(1).max(100);

/** Creates the agent. */
export function shop({ pace = 20, use = [] }: ShopOptions = {}): Agent<Customer, unknown> {
  /** Visits three shelves, and reports each as progress. */
  async function walk({ progress, signal }: ToolExecutionContext<Customer>): Promise<void> {
    for (const shelf of [1, 2, 3]) {
      progress({ shelf });
      await delay(pace, signal);
    }
  }

  const count = tool({
    name: "count",
    description: "Counts the stock of an item",
    input: z.object({ item }),
    idempotent: true, // a restarted process may count again
    async execute({ item }, ctx: ToolExecutionContext<Customer>) {
      await walk(ctx);
      return `There are ${stock[item]} ${item}.`;
    },
  });

  const deliver = tool({
    name: "deliver",
    description: "Delivers items to the user",
    input: z.object({ item, amount }),
    async execute({ item, amount }, ctx: ToolExecutionContext<Customer>) {
      await walk(ctx);
      return `Delivered ${amount} ${item} to ${ctx.vars.user}.`;
    },
  });

  const order = tool({
    name: "order",
    description: "Orders more of an item",
    input: z.object({ item, amount }),
    ask: true,
    execute: ({ item, amount }, { vars }: ToolExecutionContext<Customer>) =>
      `Ordered ${amount} ${item} for ${vars.user}.`,
  });

  return agent({ name: "shop", model: ruleBased(pace), tools: [count, deliver, order], use });
}
