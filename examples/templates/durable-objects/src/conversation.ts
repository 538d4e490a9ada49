/**
 * One conversation: a Durable Object, whose storage has its session and the events of its runs.
 *
 * @module
 */
import { serve, type ServedApp, workers } from "@jizai/jizai";
import { forwarded, type SecretKey } from "@jizai/jizai/forward";
import { playground } from "@jizai/jizai/playground";
import { durableObjectStore, type ObjectAlarm, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { type ExecutionContext, Hono } from "hono";
import { assistant } from "../../app/src/agent.ts";
import type { Keys } from "../../app/src/model.ts";

/** The settings of the Worker. */
export interface Settings extends Keys {
  /** At least 32 characters that no one else knows. The Worker signs with it the requests that it forwards. */
  readonly FORWARD_SECRET: string;
  /** Set by `npm start`: only this machine may connect. */
  readonly LOCAL_ONLY?: string;
}

/** Returns the keys with which the Worker signs, and the object verifies. */
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
  readonly #served: ServedApp;
  readonly #app: Hono;

  constructor(ctx: ObjectContext, settings: Settings) {
    const claims = forwarded<{ user: string }>({ keys: keysOf(settings) });
    this.#served = serve(assistant({ isLocal: !!settings.LOCAL_ONLY }), {
      vars: () => settings,
      recoveryVars: () => settings,
      owner: async (c) => (await claims(c)).user,
      session: (c) => c.req.param("conversation"),
      store: durableObjectStore(ctx.storage, { alarm: ctx.storage }), // an object that was killed starts again
      singleProcess: true, // there is one object of a name
      lease: 10_000, // the alarm of a killed object rings ten seconds later
      limits: workers, // at most six open connections
      capacity: { bytes: 96 * 2 ** 20 }, // of the 128 MB of an isolate
      onClientGone: "detach", // a run continues when its client disconnects
      page: playground(),
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
    return this.#app.fetch(request, {}, this.#ctx);
  }
}
