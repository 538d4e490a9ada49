/**
 * A conversation with the shop: a Durable Object, which has its session and the record of its runs in its own storage.
 *
 * @module
 */
import { serve } from "@jizai/jizai";
import { forwarded, type SecretKey } from "@jizai/jizai/forward";
import { durableObjectLog, durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { type ExecutionContext, Hono } from "hono";
import { type Customer, shop } from "../shop/shop.ts";

/** The settings of the deployed Worker. */
export interface Settings {
  /** At least 32 characters that cannot be guessed. */
  readonly FORWARD_SECRET: string;
  /** Milliseconds that a step takes in the shop. Default: 20. */
  readonly PACE?: string;
}

/** Returns the keys with which the Worker signs and the object verifies. */
export function keysOf({ FORWARD_SECRET }: Settings): readonly SecretKey[] {
  return [{ id: "k1", secret: FORWARD_SECRET }];
}

/** The context of an object. */
interface ObjectContext extends ExecutionContext {
  readonly storage: ObjectStorage;
}

/** The class of the objects. */
export class Conversation {
  readonly #ctx: ObjectContext;
  readonly #app: Hono;

  constructor(ctx: ObjectContext, settings: Settings) {
    const whoAsks = forwarded<Customer>({ keys: keysOf(settings) });
    const served = serve(shop({ pace: Number(settings.PACE ?? 20) }), {
      store: durableObjectStore(ctx.storage),
      log: durableObjectLog(ctx.storage),
      singleProcess: true, // there is no second object of this name
      session: (c) => c.req.param("conversation"),
      owner: async (c) => (await whoAsks(c)).user,
      vars: whoAsks,
      onClientGone: "detach",
    });
    this.#ctx = ctx;
    this.#app = new Hono().route("/:conversation", served);
  }

  /** Answers a request that the Worker forwards. */
  fetch(request: Request): Response | Promise<Response> {
    return this.#app.fetch(request, {}, this.#ctx); // which is asked to wait for runs that nobody listens to
  }
}
