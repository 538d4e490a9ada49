/**
 * A Durable Object that serves one conversation with the shop. Its storage contains the session and the events of its runs.
 *
 * @module
 */
import { serve, type ServedApp } from "@jizai/jizai";
import { forwarded, type SecretKey } from "@jizai/jizai/forward";
import { durableObjectStore, type ObjectAlarm, type ObjectStorage } from "@jizai/jizai/session/durable_object";
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
  readonly storage: ObjectStorage & ObjectAlarm;
}

/** The class of the objects. */
export class Conversation {
  readonly #ctx: ObjectContext;
  readonly #app: Hono;
  readonly #served: ServedApp;

  constructor(ctx: ObjectContext, settings: Settings) {
    const customer = forwarded<Customer>({ keys: keysOf(settings) });
    this.#served = serve(shop({ pace: Number(settings.PACE ?? 20) }), {
      store: durableObjectStore(ctx.storage, { alarm: ctx.storage }),
      singleProcess: true, // Cloudflare runs one object per name
      lease: 10_000, // the alarm of a killed object rings ten seconds later
      session: (c) => c.req.param("conversation"),
      owner: async (c) => (await customer(c)).user,
      vars: customer,
      recoveryVars: ({ owner = "guest" }) => ({ user: owner }),
      onClientGone: "detach",
    });
    this.#ctx = ctx;
    this.#app = new Hono().route("/:conversation", this.#served);
  }

  /** Continues a run whose object was killed, although no client asks, and deletes what is not kept any more. */
  async alarm(): Promise<void> {
    const { over } = await this.#served.recover();
    await over;
    await this.#served.sweep();
  }

  /** Answers a request that the Worker forwards. */
  fetch(request: Request): Response | Promise<Response> {
    return this.#app.fetch(request, {}, this.#ctx); // the context keeps the object alive while a run has no client
  }
}
