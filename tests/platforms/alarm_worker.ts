/**
 * A Worker with a Durable Object whose alarm continues runs.
 *
 * @module
 */
import { agent, type Model, serve, type ServedApp } from "@jizai/jizai";
import { durableObjectStore, type ObjectAlarm, type ObjectStorage } from "@jizai/jizai/session/durable_object";

interface Env {
  readonly SLEEPER: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
  /** The answer of the model. Without one, the model never answers. */
  readonly ANSWER?: string;
}

interface Context {
  readonly storage: ObjectStorage & ObjectAlarm & { getAlarm(): Promise<number | null> };
}

/** The class of the objects. */
export class Sleeper {
  readonly #app: ServedApp;
  readonly #ctx: Context;

  constructor(ctx: Context, { ANSWER }: Env) {
    const model: Model = {
      id: "sleeping",
      async *stream() {
        if (!ANSWER) await new Promise(() => {});
        yield [{ type: "text", text: ANSWER ?? "" }, { type: "finish", reason: "stop" }];
      },
    };
    this.#ctx = ctx;
    this.#app = serve(agent({ model }), {
      store: durableObjectStore(ctx.storage, { alarm: ctx.storage }),
      singleProcess: true,
      lease: 1_000,
    });
  }

  /** Serves the agent, and the time of the alarm at `/alarm`. */
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    return pathname === "/alarm" ? Response.json(await this.#ctx.storage.getAlarm()) : await this.#app.fetch(request);
  }

  /** Continues the runs of an object that was killed. */
  async alarm(): Promise<void> {
    const { over } = await this.#app.recover();
    await over;
  }
}

export default {
  fetch: (request: Request, { SLEEPER }: Env): Promise<Response> => SLEEPER.getByName("sleeper").fetch(request),
};
