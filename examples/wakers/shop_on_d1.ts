/**
 * The shop in a Worker, with its sessions and their events in D1.
 *
 * @module
 */
import { type Middleware, serve, type ServedApp, type Store } from "@jizai/jizai";
import { type D1, d1Store, migrate } from "@jizai/jizai/session/d1";
import type { Context } from "hono";
import { type Customer, shop } from "../shop/shop.ts";

/** The settings and bindings of the Worker. */
export interface Settings {
  readonly DB: D1;
  /** Milliseconds that a step takes in the shop. Default: 20. */
  readonly PACE?: string;
  /** Milliseconds after which a run that does not renew its lease is lost. Default: 10,000, since a waker looks then. */
  readonly LEASE?: string;
}

/** An app and its store. */
export interface ShopOnD1 {
  readonly app: ServedApp;
  readonly store: Store;
}

/** Creates the app of one event: a Worker may not use the connections of another event. */
export async function shopOnD1(settings: Settings, use: readonly Middleware<Customer>[] = []): Promise<ShopOnD1> {
  const { DB, PACE } = settings;
  await migrate(DB); // or once, with `jizai schema d1`
  const store = d1Store(DB);
  const customer = (c: Context) => c.req.header("x-user") ?? "guest"; // your login
  const app = serve(shop({ pace: Number(PACE ?? 20), use }), {
    store,
    lease: leaseOf(settings),
    owner: customer,
    vars: (c) => ({ user: customer(c) }),
    recoveryVars: ({ owner = "guest" }) => ({ user: owner }),
    onClientGone: "detach",
  });
  return { app, store };
}

/** Returns the milliseconds of a lease. A waker need not look more often. */
export function leaseOf({ LEASE }: Settings): number {
  return Number(LEASE ?? 10_000);
}
