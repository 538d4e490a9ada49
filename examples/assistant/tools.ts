/**
 * The tools of a small shop.
 *
 * @module
 */
import { type AnyTool, tool, ToolError, type ToolExecutionContext } from "@jizai/jizai";
import { delay } from "@jizai/jizai/kit";
import * as z from "zod";

/** The stock, by item. */
export const stock: Readonly<Record<string, { readonly count: number; readonly price: number }>> = {
  lanterns: { count: 12, price: 40 },
  kettles: { count: 7, price: 55 },
  hooks: { count: 31, price: 8 },
  bowls: { count: 18, price: 22 },
  teas: { count: 64, price: 12 },
  trays: { count: 9, price: 30 },
  scarves: { count: 5, price: 60 },
};

const orders: Readonly<Record<string, { readonly customer: string; readonly total: number; readonly card: string }>> = {
  "1042": { customer: "Ada", total: 80, card: "4111 1111 1111 1111" },
  "1043": { customer: "Grace", total: 24, card: "5500 0000 0000 0004" },
};

/** The number of shelves that a stocktaking counts. */
export const shelves = 12;

/** Creates the tools of the shop. A step takes `pace` milliseconds. */
export function shopTools(pace: number): readonly AnyTool[] {
  const item = z.enum(Object.keys(stock));
  const order = z.string().describe("the number of an order, such as 1042");
  /** The calls that the carrier has refused once. A real carrier is flaky without our help. */
  const refused = new Set<string>();

  function orderOf(id: string) {
    const found = orders[id];
    if (!found) throw new ToolError(`Cannot find order "${id}"; expected one of ${Object.keys(orders).join(", ")}`);
    return found;
  }

  return [
    tool({
      name: "look_up",
      description: "Looks up how many of an item are in stock, and its price",
      input: z.object({ item }),
      readOnly: true,
      async execute({ item }, { signal }) {
        await delay(pace * (0.5 + item.length % 3 * 0.3), signal);
        const { count = 0, price = 0 } = stock[item] ?? {};
        return `${count} ${item}, ${price} euros each`;
      },
    }),
    tool({
      name: "payment",
      description: "Tells how an order was paid, with the card",
      input: z.object({ order }),
      execute: ({ order }) => {
        const { customer, total, card } = orderOf(order);
        return `${customer} paid ${total} euros with the card ${card}`;
      },
    }),
    tool({
      name: "refund",
      description: "Refunds an order to the card that paid it",
      input: z.object({ order, amount: z.number().positive().max(500) }),
      execute: ({ order, amount }) => `Refunded ${amount} euros to ${orderOf(order).customer}.`,
    }),
    tool({
      name: "delete_customer",
      description: "Deletes a customer with all orders",
      input: z.object({ customer: z.string() }),
      execute: ({ customer }) => `Deleted ${customer} and all orders.`,
    }),
    tool({
      name: "shipping_cost",
      description: "Asks the carrier what a parcel to a city costs",
      input: z.object({ city: z.string() }),
      idempotent: true, // so that retry() may try again
      async execute({ city }, { idempotencyKey, signal }) {
        await delay(pace / 3, signal);
        if (!refused.has(idempotencyKey)) {
          refused.add(idempotencyKey);
          throw new Error("The carrier answered 503");
        }
        return `A parcel to ${city} costs 9 euros.`;
      },
    }),
    tool({
      name: "compare",
      description: "Compares the prices of two items",
      input: z.object({ a: item, b: item }),
      readOnly: true,
      execute: ({ a, b }) => `${a}: ${stock[a]?.price} euros, ${b}: ${stock[b]?.price} euros`,
    }),
    tool({
      name: "count_shelf",
      description: `Counts one shelf of the shop, 1 to ${shelves}. A stocktaking counts them all, one after another`,
      input: z.object({ shelf: z.number().int().min(1).max(shelves) }),
      idempotent: true, // after a restart, the shelf is counted again
      async execute({ shelf }, { progress, signal }: ToolExecutionContext) {
        for (const third of [1, 2, 3]) {
          progress(`${third} of 3`);
          await delay(pace / 2, signal);
        }
        return `Shelf ${shelf}: ${shelf * 7 % 23 + 4} items`;
      },
    }),
  ];
}
