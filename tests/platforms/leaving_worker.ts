/**
 * A Worker whose runs live in the requests that launch them, and a Durable Object, whose runs live in it. The first part of a path names the app.
 *
 * @module
 */
import {
  agent,
  memory,
  type Middleware,
  type Model,
  type ModelEvent,
  serve,
  type ServedApp,
  type ServeOptions,
  tool,
} from "@jizai/jizai";
import { forward, type Stub } from "@jizai/jizai/forward";
import { durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { durable } from "@jizai/jizai/session/durable";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { type ExecutionContext, Hono } from "hono";
import * as z from "zod";

/** Notes of the hooks and reports, in order. */
const notes: string[] = [];

/** The number of times that a model has waited. */
let waits = 0;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers "count" with a word each 20 milliseconds for a minute, "wait" after two seconds of silence, "work" with a call, and everything else at once. */
const model: Model = {
  id: "talkative",
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.role === "user" ? last.parts : [];
    const prompt = part?.type === "text" ? part.text : "";
    if (prompt === "work") {
      const call: ModelEvent[] = [{ type: "call.start", id: "c1", name: "work" }, { type: "call.end", id: "c1" }];
      return yield [...call, { type: "finish", reason: "calls" }];
    }
    for (let word = 1; word <= (prompt === "count" ? 3_000 : prompt === "wait" ? 100 : 0); word++) {
      await sleep(20);
      waits++;
      if (prompt === "count") yield [{ type: "text", text: `${word} ` }];
    }
    yield [{ type: "text", text: `Answered ${messages.length}.` }, { type: "finish", reason: "stop" }];
  },
};

/** Works for two seconds, whether its signal aborts or not. */
const work = tool({
  name: "work",
  description: "Works",
  input: z.object({}),
  async execute() {
    await sleep(2_000);
    return "Worked.";
  },
});

/** Cleans up with more than one step, each of which waits. */
const cleaning: Middleware = {
  name: "cleaning",
  async abort({ reason }, next) {
    for (const step of [1, 2, 3]) {
      await sleep(20);
      notes.push(`cleaned up ${reason} ${step}`);
    }
    await next();
  },
};

/** Returns a store whose functions wait, as those of a database do. */
function waiting() {
  const { head, open, entries, append, post, read, pending, list, trim, sweep, delete: remove, watch } =
    memory().journal;
  const slowly = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
    await sleep(20);
    const result = await work(...args);
    await sleep(20);
    return result;
  };
  return durable({
    head: slowly(head),
    open: slowly(open),
    entries: slowly(entries),
    append: slowly(append),
    post: slowly(post),
    read: slowly(read),
    pending: slowly(pending),
    list: slowly(list),
    trim: slowly(trim),
    sweep: slowly(sweep),
    delete: slowly(remove),
    watch,
  });
}

/** The options of an app, and whether the platform ends a request that launches a run as soon as its client has left. */
interface Kind {
  readonly options: ServeOptions;
  readonly cut?: boolean;
}

const kinds: Readonly<Record<string, () => Kind>> = {
  "stop": () => ({ options: {} }),
  "stop-stored": () => ({ options: { store: waiting() } }),
  "drain-stored": () => ({ options: { store: waiting(), onClientGone: "drain" } }),
  "detach-stored": () => ({ options: { store: waiting(), onClientGone: "detach" } }),
  "cut": () => ({ options: {}, cut: true }),
  "cut-stored": () => ({ options: { store: waiting() }, cut: true }),
  "cut-detached": () => ({ options: { onClientGone: "detach" }, cut: true }),
  "cut-detached-stored": () => ({
    options: {
      store: waiting(),
      onClientGone: "detach",
      onEnd: ({ event }) => notes.push(event.type),
    },
    cut: true,
  }),
};

/** Milliseconds of a lease: a prompt to a session whose run was cut waits so long. */
const lease = 500;

const wires = [aiSdkUi(), aiSdkMessages(), chatCompletions()];
const assistant = agent({ model, tools: [work], use: [cleaning], limits: { grace: 200 } });
/** Milliseconds after which a stream notices that its client has left. */
const heartbeat = 50;

/** A Durable Object that serves the agent. */
export class Room {
  readonly #ctx: ExecutionContext;
  readonly #served: ServedApp;

  constructor(ctx: ExecutionContext & { readonly storage: ObjectStorage }) {
    const store = durableObjectStore(ctx.storage);
    this.#ctx = ctx;
    this.#served = serve(assistant, { lease, heartbeat, wires, store, singleProcess: true });
  }

  fetch(request: Request): Response | Promise<Response> {
    return this.#served.fetch(request, {}, this.#ctx);
  }
}

/** Returns a request without the first part of its path. */
function inner(raw: Request): Request {
  const { pathname, search } = new URL(raw.url);
  return new Request(new URL(pathname.replace(/^\/[^/]*/, "") + search, raw.url), raw);
}

const keys = [{ id: "k1", secret: "32 bytes that cannot be guessed.." }];
const app = new Hono<{ Bindings: { readonly ROOM: { getByName(name: string): Stub } } }>()
  .all("/object/*", (c) => {
    const room = c.env.ROOM.getByName("room");
    const stub: Stub = { fetch: (request) => room.fetch(inner(request)) };
    return forward(c, stub, {}, { keys });
  })
  .get("/notes", (c) => c.json(notes.splice(0))).get("/waits", (c) => c.json(waits));
for (const [name, kind] of Object.entries(kinds)) {
  const { options, cut = false } = kind();
  const served = serve(assistant, { lease, heartbeat, wires, ...options });
  app.post(`/${name}/recover`, async (c) => {
    const { over } = await served.recover();
    await over;
    return c.body(null, 204);
  });
  app.all(`/${name}/*`, (c) => {
    const isCut = cut && /\/(runs|chat)$/.test(c.req.path);
    const context: ExecutionContext = { waitUntil() {}, passThroughOnException() {}, props: {} };
    return served.fetch(inner(c.req.raw), c.env, isCut ? context : c.executionCtx);
  });
}

export default app;
