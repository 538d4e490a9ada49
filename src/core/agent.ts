/**
 * Agents: a model, tools and middleware, composed once.
 *
 * @module
 */
import type { Model } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import { type Message, user } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import { channel, type Sink } from "../stream/channel.ts";
import { assemble } from "./assemble.ts";
import type { Blueprint } from "./blueprint.ts";
import { asChild } from "./child.ts";
import type { ClaimOptions } from "./claim.ts";
import { explain } from "./explain.ts";
import { defaultLimits, limited, type Limits } from "./limits.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import { nameOf } from "./onions.ts";
import { checkOrder } from "./order.ts";
import { outputOf } from "./output.ts";
import type { Middleware, RunResult } from "./points.ts";
import { start, type Started, type StartOptions } from "./run.ts";
import { type Infer, type Schema, schemaOf } from "./schema.ts";
import type { Scope } from "./scope.ts";
import { memory, type Store } from "./store.ts";
import { runChild } from "./subagent.ts";
import { type AnyTool, type Tool, tool } from "./tool.ts";

/** A witness of the type of vars; see `vars()`. */
export interface Vars<V> {
  /** Never there: it only carries the type. */
  readonly "~vars"?: V;
}

/**
 * Says what vars an agent needs, where its tools and middleware do not say it alone.
 *
 * ```ts
 * import { agent, vars } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({
 *   vars: vars<{ user: string }>(),
 *   model: scripted("Hello!"),
 *   instructions: ({ vars }) => `You help ${vars.user}.`,
 * });
 * await assistant.run({ prompt: "Hi", vars: { user: "Ada" } }).result;
 * ```
 */
export function vars<V>(): Vars<V> {
  return {};
}

/** What `agent()` takes. */
export interface AgentOptions<V, S extends Schema> {
  /** For events, and for who calls it as a tool. Default: "agent". */
  readonly name?: string;
  /** What it does and when to use it, for who calls it as a tool. Default: its name. */
  readonly description?: string;
  /** A witness of the vars, made by `vars<...>()`, where middleware and tools do not say them alone. */
  readonly vars?: Vars<V>;
  /** The model, or who chooses it: keys and choices often come with the request. */
  readonly model: Model | ((scope: Scope<V>) => Model | Promise<Model>);
  /** What the model is told of its task, or who says it. Default: nothing. */
  readonly instructions?: string | ((scope: Scope<V>) => string | Promise<string>);
  /** A schema for the final answer. */
  readonly output?: S;
  /** Tools, beside those that middleware bring. */
  readonly tools?: readonly AnyTool<V>[];
  /** Middleware; the first is the outermost. */
  readonly use?: readonly Middleware<V>[];
  /** What one run may use. Default: `defaultLimits`. */
  readonly limits?: Partial<Limits>;
  /** Told of every event; can neither slow nor change a run. */
  readonly observe?: ((event: Event) => void) | readonly ((event: Event) => void)[];
  /** Says of every hook what it did, as `hook.acted` events. Default: false. */
  readonly trace?: boolean;
}

/** What every run takes. */
export interface RunOptions extends Pick<ClaimOptions, "owner" | "lease" | "lost" | "busy"> {
  /** The conversation it belongs to; made anew where there is none of this id. */
  readonly session?: string;
  /** Where sessions are kept. Default: in the memory of this agent. */
  readonly store?: Store;
  /** Stops the run when it aborts. */
  readonly signal?: AbortSignal;
  /** Changes of the agent's limits. */
  readonly limits?: Partial<Limits>;
  /** Told of what went wrong, with the id that events say instead. */
  readonly onError?: OnError;
}

/** What a run begins with: a prompt, or the messages a caller holds, the last of them the person's. */
export type PromptOptions = RunOptions & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** What a run goes on with that is paused, or whose process died. */
export interface ResumeOptions extends RunOptions, Pick<ClaimOptions, "after" | "closing"> {
  /** Its session. */
  readonly session: string;
  /** What a person said to its questions; none, where its process died. */
  readonly answers: readonly PersonAnswer[];
}

/** What a session is compacted with that no run has. */
export interface CompactOptions extends Omit<RunOptions, "busy"> {
  /** The session. */
  readonly session: string;
  /** What whoever summarizes should mind. Default: nothing. */
  readonly instructions?: string;
}

/** What a session is compacted with, for a server. */
export interface CompactingOptions
  extends Omit<CompactOptions, "instructions">, Required<Pick<ClaimOptions, "compact">> {}

/** An object with nothing in it. */
export type Empty = Record<never, never>;

/** Vars as a run takes them: not at all, or exactly what is needed. */
export type VarsOption<V> = unknown extends V ? { readonly vars?: unknown }
  : Empty extends V ? { readonly vars?: V }
  : { readonly vars: V };

/** A run that has begun. */
export interface RunHandle<O> {
  /** The session it belongs to. */
  readonly session: string;
  /** What happens, as it happens. Kept until read; whoever stops reading does not stop the run. */
  readonly events: ReadableStream<Event>;
  /** How it ended. Resolves whether or not anybody reads the events. */
  readonly result: Promise<RunResult<O>>;
  /** Stops it. Default reason: "stop". */
  readonly stop: Started["stop"];
  /**
   * Says something to it while it runs: delivered at the next safe place. Settles when it is on record. Rejects with a `RangeError` where ten messages
   * wait, and with a `SessionError` where the run is over.
   */
  readonly send: Started["send"];
  /** Has it end with one more answer, without tools; calls that have not begun are skipped. */
  readonly finish: Started["finish"];
}

/** How an agent is a tool. */
export interface AsToolOptions {
  /** What the model calls it. Default: the agent's name. */
  readonly name?: string;
  /** What it does and when to use it, for the model. Default: the agent's description. */
  readonly description?: string;
  /** What one run of it may use. Default: what the agent says. */
  readonly limits?: Partial<Limits>;
}

/** An agent. `V` are the vars it needs, `O` its structured answer. */
export interface Agent<V, O> {
  /** What it is called. */
  readonly name: string;
  /** Answers a prompt. */
  run(options: PromptOptions & VarsOption<V>): RunHandle<O>;
  /** Answers a prompt, of an agent that needs no vars. */
  run(prompt: unknown extends V ? string : Empty extends V ? string : never): RunHandle<O>;
  /** Goes on with a run that is paused, or whose process died. */
  resume(options: ResumeOptions & VarsOption<V>): RunHandle<O>;
  /**
   * Compacts the transcript of a session that no run has: a run of its own, which does nothing else. Its status is done, or cancelled where the compaction
   * was declined, or failed. The transcript as it was is kept, too: in the session that `Session.earlier` names.
   */
  compact(options: CompactOptions & VarsOption<V>): RunHandle<O>;
  /** Begins a run into a sink of the caller's: what a server does, to spare a stream. */
  start(
    options: (PromptOptions | ResumeOptions | CompactingOptions) & VarsOption<V>,
    sink: Sink<NumberedEvent>,
  ): Started;
  /** What it does and when to use it, for who calls it as a tool. */
  readonly description: string;
  /** The agent as a tool of another: its input is a prompt, its result the answer. */
  asTool(options?: AsToolOptions): Tool<{ prompt: string }, string, V>;
  /** The chain of every point, the outermost first. */
  explain(): string;
  /** Never there: it only carries the type. */
  readonly "~vars"?: (vars: V) => void;
}

/**
 * Makes an agent. Throws a `TypeError` for two tools of one name, or an order of middleware that another one rules out.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const weather = tool({
 *   name: "weather",
 *   description: "Current weather of a city",
 *   input: z.object({ city: z.string() }),
 *   execute: ({ city }) => `Sunny in ${city}`,
 * });
 *
 * const assistant = agent({
 *   model: scripted({ calls: [["weather", { city: "Kyoto" }]] }, "It is sunny."),
 *   tools: [weather],
 * });
 *
 * const { text } = await assistant.run("Weather in Kyoto?").result;
 * assertEquals(text, "It is sunny.");
 * ```
 */
export function agent<V, S extends Schema = Schema<unknown, string>>(options: AgentOptions<V, S>): Agent<V, Infer<S>> {
  const use = (options.use ?? []) as readonly Middleware[]; // what they need of vars, `run()` requires
  const blueprint = draw(options, use);
  const store = memory();

  function begin(given: Given, sink: Sink<NumberedEvent>): Started {
    return start(blueprint, { store, vars: undefined, ...startOptions(given) }, sink);
  }

  function handle(given: Given): RunHandle<Infer<S>> {
    const { sink, stream } = channel<NumberedEvent, Event, Event>({
      keep: ({ event }) => event,
      pack: (events, send) => events.forEach(send),
      highWater: Infinity, // the run waits for nobody here
    });
    const { session, result, stop, send, finish } = begin(given, sink);
    return { session, events: stream, result: result as Promise<RunResult<Infer<S>>>, stop, send, finish }; // checked against the schema
  }

  return {
    name: blueprint.name,
    run: handle,
    resume: handle,
    compact: ({ instructions = "", ...rest }: CompactOptions) => handle({ ...rest, compact: { instructions } }),
    start: begin,
    description: blueprint.description,
    asTool({ name, description, limits } = {}) {
      const child = { ...blueprint, limits: limited(blueprint.limits, limits) };
      return asChild(
        tool({
          name: name ?? child.name,
          description: description ?? child.description,
          input: promptSchema,
          execute: () => "",
        }),
        (ctx, entry) => runChild(child, ctx, entry),
      );
    },
    explain: () => explain(blueprint),
  };
}

/** What a run begins with, whichever way it does. */
type Given = string | ((PromptOptions | ResumeOptions | CompactingOptions) & { readonly vars?: unknown });

function startOptions(given: Given): Omit<StartOptions, "store" | "vars"> {
  if (typeof given === "string") return { messages: [user(given)] };
  const { prompt, messages, ...rest } = { prompt: undefined, messages: undefined, ...given };
  if ("answers" in rest || "compact" in rest) return rest;
  if (prompt !== undefined) return { ...rest, messages: [user(prompt)] };
  if (!messages || messages.at(-1)?.role !== "user") {
    throw new TypeError("Cannot run: expected a prompt, or messages of which the last is the person's");
  }
  return { ...rest, messages };
}

function draw<V, S extends Schema>(options: AgentOptions<V, S>, use: readonly Middleware[]): Blueprint {
  const { name = "agent", description = name, model, instructions = "", output, tools = [], limits } = options;
  const { observe = [], trace = false } = options;
  checkOrder(use);
  return assemble({
    name,
    description,
    // what these need of vars, `run()` requires
    model: model as Blueprint["model"],
    instructions: instructions as Blueprint["instructions"],
    tools: gather(use, tools as readonly AnyTool[]),
    limits: limited(defaultLimits, limits),
    output: output && outputOf(output),
    observers: [observe].flat(),
    use,
    trace,
  });
}

/** All tools, the agent's own first. */
function gather(use: readonly Middleware[], own: readonly AnyTool[]): readonly AnyTool[] {
  const from = new Map<string, string>();
  const sources = [
    { name: "tools", tools: own },
    ...use.map((middleware, index) => ({ name: nameOf(middleware, index), tools: middleware.tools ?? [] })),
  ];
  return sources.flatMap(({ name, tools }) => {
    for (const tool of tools) {
      const other = from.get(tool.name);
      if (other) throw new TypeError(`Cannot make an agent: "${other}" and "${name}" both bring a tool "${tool.name}"`);
      from.set(tool.name, name);
    }
    return tools;
  });
}

/** The input of an agent that is a tool: small enough to be written by hand, so that no schema library is needed. */
const promptSchema = schemaOf<{ prompt: string }>(
  {
    type: "object",
    properties: { prompt: { type: "string", description: "The task, with all that is needed to do it" } },
    required: ["prompt"],
  },
  (value) =>
    typeof value === "object" && value !== null && "prompt" in value && typeof value.prompt === "string"
      ? { value: { prompt: value.prompt } }
      : { issues: [{ message: "expected a text", path: ["prompt"] }] },
);
