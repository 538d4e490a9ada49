/**
 * What is measured: agents whose model and tools cost nothing, served.
 *
 * @module
 */
import {
  agent,
  type Event,
  memory,
  type Middleware,
  type Model,
  type ModelEvent,
  serve,
  type ServeOptions,
  tool,
} from "@jizai/jizai";
import * as z from "zod";
import { passes } from "../support/passing.ts";
import { drained, texts } from "./floor.ts";

type Options = Omit<Parameters<typeof agent>[0], "model">;

/** Runs something once, to its end. */
export type Run = () => Promise<unknown>;

/** An agent behind its handler: each run is a request, whose body is read to the end. */
export function served(model: Model, options: Options = {}, serving: ServeOptions = {}): Run {
  const app = serve(agent({ ...options, model }), { store: memory({ max: 1 }), ...serving });
  const body = JSON.stringify({ prompt: "Hi" });
  return async () => {
    const headers = { "content-type": "application/json" };
    const response = await app.request("/runs", { method: "POST", headers, body });
    return await drained(response.body);
  };
}

const done: ModelEvent = { type: "finish", reason: "stop" };

/** A model that streams `count` deltas, `together` of them with every read. `between` is awaited before each read. */
export function streaming(
  count: number,
  { together = 1, between }: { readonly together?: number; readonly between?: () => Promise<void> } = {},
): Model {
  const events = texts.map((text): ModelEvent => ({ type: "text", text }));
  const reads = Array.from({ length: events.length / together }, (_, index) => {
    return events.slice(index * together, (index + 1) * together);
  });
  return {
    id: "streaming",
    async *stream() {
      for (let index = 0; index < count / together; index++) {
        if (between) await between();
        const read = reads[index % reads.length];
        if (read) yield read;
      }
      yield [done];
    },
  };
}

/** A model that makes `calls` calls at once in each of its first `turns` turns, and then answers. */
export function calling(calls: number, turns = 1): Model {
  return {
    id: "calling",
    async *stream({ messages }) {
      const turn = messages.filter(({ role }) => role === "tool").length;
      if (turn < turns) yield batch(calls, turn);
      else yield [{ type: "text", text: "Done." }, done];
    },
  };
}

function batch(calls: number, turn: number): readonly ModelEvent[] {
  const made = Array.from({ length: calls }, (_, index): readonly ModelEvent[] => {
    const id = `call_${turn}_${index}`;
    return [{ type: "call.start", id, name: "work" }, { type: "call.end", id, input: { index } }];
  });
  return [...made.flat(), { type: "finish", reason: "calls" }];
}

/** A tool, and room for as many calls of it as there may be. */
export function working(execute: () => unknown = () => "ok"): Options {
  const work = tool({ name: "work", description: "Works", input: z.object({ index: z.number() }), execute });
  return { tools: [work], limits: { turns: 1_000, calls: 100_000 } };
}

/** Ten middleware with a hook at every point, each of which lets everything pass. */
export const passing: readonly Middleware[] = ten((name) => ({ name, ...passes }));

/** Ten middleware that see every event of the model and let it pass. */
export const filtering: readonly Middleware[] = ten((name) => ({
  name,
  model: async ({ emit }, next) => await next({ emit: (event: Event) => emit(event) }),
}));

function ten(make: (name: string) => Middleware): readonly Middleware[] {
  return Array.from({ length: 10 }, (_, index) => make(`m${index}`));
}
