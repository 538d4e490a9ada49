/**
 * The agents that are measured: their models cost nothing. This file imports no schema library, whose memory would count as that of an agent without tools.
 *
 * @module
 */
import {
  agent,
  type AgentOptions,
  type Event,
  memory,
  type Middleware,
  type Model,
  type ModelEvent,
  type Schema,
  serve,
  type ServeOptions,
} from "@jizai/jizai";
import { passThroughHooks } from "../../support/pass_through_hooks.ts";
import { body, drain, floor, replay, texts } from "./floor.ts";

/** The options of an agent beside its model. */
export type Options = Omit<AgentOptions<unknown, Schema<unknown, string>>, "model">;

/** Runs a case once, to its end. */
export type Run = () => Promise<unknown>;

/** A load that can be profiled: a case, and the units that it consists of. */
export interface Load {
  readonly what: string;
  readonly run: Run;
  /** The number of units of a run, such as requests. */
  readonly count: number;
  readonly unit: "request" | "turn" | "call" | "delta" | "stream";
}

/** Serves an agent in this process: each run is a request whose response is read to the end. With resume tokens, it stores nothing. */
export function served(
  model: Model,
  options: Options = {},
  { store = memory({ max: 1 }), resumeTokens, ...serving }: ServeOptions = {},
): Run {
  const kept = resumeTokens ? { resumeTokens } : { store };
  const app = serve(agent({ ...options, model }), { ...kept, ...serving });
  return async () => {
    const headers = { "content-type": "application/json" };
    const response = await app.request("/runs", { method: "POST", headers, body });
    return await drain(response.body);
  };
}

/** Runs an agent in this process without HTTP: each run's events are read to the end. */
export function ran(model: Model, options: Options = {}): Run {
  const { run } = agent({ ...options, model });
  return async () => {
    let count = 0;
    for await (const _event of run("Hi").events) count++;
    return count;
  };
}

/** Runs the same calls as `served()` at the cost of the floor. Streams the same events, except those of the types in `without`. */
export async function floorOf(
  model: Model,
  options: Options,
  { execute, without = [] }: { readonly execute?: () => unknown; readonly without?: readonly Event["type"][] } = {},
): Promise<Run> {
  const events = await recorded(model, options);
  const streamed = events.filter(({ type }) => !without.includes(type));
  return () => drain(floor(replay(streamed, execute)));
}

/** Returns the events of one run. */
export async function recorded(model: Model, options: Options = {}): Promise<readonly Event[]> {
  return await Array.fromAsync(agent({ ...options, model }).run("Hi").events);
}

const finish: ModelEvent = { type: "finish", reason: "stop" };

/** A model that streams `count` deltas, `perRead` of them with each read. Awaits `between` before each read. */
export function streaming(
  count: number,
  { perRead = 1, between }: { readonly perRead?: number; readonly between?: () => Promise<void> } = {},
): Model {
  const events = texts.map((text): ModelEvent => ({ type: "text", text }));
  const reads = Array.from({ length: events.length / perRead }, (_, index) => {
    return events.slice(index * perRead, (index + 1) * perRead);
  });
  return {
    id: "streaming",
    async *stream() {
      for (let index = 0; index < count / perRead; index++) {
        if (between) await between();
        const read = reads[index % reads.length];
        if (read) yield read;
      }
      yield [finish];
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
      else yield [{ type: "text", text: "Done." }, finish];
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

/** Ten middleware with a hook at every point that does nothing. */
export const tenHooks: readonly Middleware[] = ten((name) => ({ name, ...passThroughHooks }));

/** Ten middleware that filter every event of the model and change none. */
export const tenFilters: readonly Middleware[] = ten((name) => ({
  name,
  model: async ({ emit }, next) => await next({ emit: (event: Event) => emit(event) }),
}));

function ten(make: (name: string) => Middleware): readonly Middleware[] {
  return Array.from({ length: 10 }, (_, index) => make(`m${index}`));
}
