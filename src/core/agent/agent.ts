/**
 * Agents: a model, tools and middleware, composed once.
 *
 * @module
 */
import type { Model } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { type Message, user } from "../../protocol/message.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import type { Sink } from "../../stream/channel.ts";
import { outputFormat } from "../features/output.ts";
import { checkHookNames } from "../hooks/hook_names.ts";
import { checkOrder, type Middleware, nameOf } from "../hooks/middleware.ts";
import type { Scope } from "../hooks/scope.ts";
import type { ClaimOptions } from "../persistence/claim.ts";
import { memory } from "../persistence/memory.ts";
import type { Store } from "../persistence/store.ts";
import type { NumberedEvent, OnError } from "../run/events.ts";
import { defaultLimits, limited, type Limits } from "../run/limits.ts";
import { promptSteps } from "../steps/regions.ts";
import type { StepScope } from "../run/run.ts";
import { start, type Started, type StartOptions } from "../run/start.ts";
import type { Steps } from "../run/step.ts";
import { type AgentDefinition, type AgentParts, defineAgent, type WrapHooks } from "./definition.ts";
import { type RunHandle, runHandle } from "./run_handle.ts";
import type { Infer, Schema } from "./schema.ts";
import type { AnyTool } from "./tool.ts";

/** The type of an agent's vars, as a value. Made by `vars()`. */
export interface Vars<V> {
  /** Carries the type only. It is never set. */
  readonly "~vars"?: V;
}

/**
 * Declares the vars of an agent whose tools and middleware do not declare them.
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

/** The options of `agent()`. */
export interface AgentOptions<V, S extends Schema> {
  /** The name, for events and for agents that use it as a tool. Default: "agent". */
  readonly name?: string;
  /** The purpose, for agents that use it as a tool. Default: its name. */
  readonly description?: string;
  /** The type of the vars, made by `vars<...>()`, if middleware and tools do not declare them. */
  readonly vars?: Vars<V>;
  /** The model, or a function that chooses it for a run. Keys and choices often come with the request. */
  readonly model: Model | ((scope: Scope<V>) => Model | Promise<Model>);
  /** The system instructions, or a function that returns them for a run. Default: none. */
  readonly instructions?: string | ((scope: Scope<V>) => string | Promise<string>);
  /** A schema for the final answer. */
  readonly output?: S;
  /** Tools, in addition to those of middleware. */
  readonly tools?: readonly AnyTool<V>[];
  /** Middleware. The first is the outermost. */
  readonly use?: readonly Middleware<V>[];
  /** Changes of the default limits of a run. */
  readonly limits?: Partial<Limits>;
  /** Receives every event. It can neither slow nor change a run. */
  readonly observe?: ((event: Event) => void) | readonly ((event: Event) => void)[];
  /** Emits a `hook.acted` event for each hook: pass `trace` of `@jizai/jizai/trace`. Default: none. */
  readonly trace?: WrapHooks;
}

/** The options of every run. */
export interface RunOptions extends Pick<ClaimOptions, "owner" | "lease" | "lost" | "busy"> {
  /** The session. It is created if there is none with this id. Default: a new one. */
  readonly session?: string;
  /** The store of sessions. Default: the memory of this agent. */
  readonly store?: Store;
  /** Stops the run when it aborts. */
  readonly signal?: AbortSignal;
  /** Changes of the agent's limits. */
  readonly limits?: Partial<Limits>;
  /** Receives every error with the id that clients see in its place. */
  readonly onError?: OnError;
}

/** The options of a new run: a prompt, or messages of which the last is the person's. */
export type PromptOptions = RunOptions & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** The options of a run that continues after a pause or a crash. */
export interface ResumeOptions extends RunOptions, Pick<ClaimOptions, "after" | "closing"> {
  /** The session. */
  readonly session: string;
  /** A person's answers to the run's questions. Empty for a run whose process died. */
  readonly answers: readonly PersonAnswer[];
}

/** The options of a run that only compacts a session. */
export interface StartCompactOptions extends Omit<RunOptions, "busy">, Required<Pick<ClaimOptions, "compact">> {
  /** The session. */
  readonly session: string;
}

/** The vars that a run takes: none, or exactly those that the agent needs. */
export type VarsOption<V> = unknown extends V ? { readonly vars?: unknown }
  : Record<never, never> extends V ? { readonly vars?: V }
  : { readonly vars: V };

/** An agent. `V` are the vars it needs, `O` is its structured answer. */
export interface Agent<V, O> {
  /** The name. */
  readonly name: string;
  /** The purpose, for agents that use it as a tool. */
  readonly description: string;
  /** Answers a prompt. */
  run(options: PromptOptions & VarsOption<V>): RunHandle<O>;
  /** Answers a prompt of an agent that needs no vars. */
  run(prompt: Record<never, never> extends VarsOption<V> ? string : never): RunHandle<O>;
  /** Continues a run after a pause or a crash. */
  resume(options: ResumeOptions & VarsOption<V>): RunHandle<O>;
  /** Starts a run whose events go to a sink, for servers: it needs no stream. */
  start(
    options: (PromptOptions | ResumeOptions | StartCompactOptions) & VarsOption<V>,
    sink: Sink<NumberedEvent>,
  ): Started;
  /** The definition, for features of the engine. */
  readonly "~definition": object;
  /** Carries the type only. It is never set. */
  readonly "~vars"?: (vars: V) => void;
}

/**
 * Creates an agent. Throws a `TypeError` without a model, for a misspelt hook, for two tools with the same name, for an order of middleware that one of them rules out, and for an option
 * whose feature is not imported.
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
  const definition = defineAgent(partsOf(options));
  const store = memory();

  function begin(given: Given, sink: Sink<NumberedEvent>): Started {
    return start(definition, { store, vars: undefined, ...startOptions(given) }, sink);
  }

  const handle = (given: Given) => runHandle<Infer<S>>((sink) => begin(given, sink));
  const { name, description } = definition;
  return { name, description, run: handle, resume: handle, start: begin, "~definition": definition };
}

/** The options of a run, however it starts. */
type Given = string | ((PromptOptions | ResumeOptions | StartCompactOptions) & { readonly vars?: unknown });

/** Returns a prompt as messages. Throws a `TypeError` if there is none. */
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

function partsOf<V, S extends Schema>(options: AgentOptions<V, S>): AgentParts<StepScope> {
  const { name = "agent", description = name, model, instructions = "", output, tools = [], limits } = options;
  const { observe = [], trace } = options;
  const use = (options.use ?? []) as readonly Middleware[]; // run() requires the vars that they need
  if (typeof model !== "function" && typeof model?.stream !== "function") {
    throw new TypeError(
      `Cannot create the agent "${name}": it has no model; expected \`model\`, such as openai({ model, apiKey })`,
    );
  }
  checkOrder(use);
  checkHookNames(use);
  if (trace !== undefined && typeof trace !== "function") {
    throw new TypeError(`Cannot trace: expected trace of "@jizai/jizai/trace", got ${trace}`);
  }
  const more = use.map((middleware) => middleware["~steps"] as Steps<StepScope> | undefined); // a feature of this engine made them
  const steps: Steps<StepScope> = Object.assign({}, promptSteps, ...more);
  const parts: AgentParts<StepScope> = {
    name,
    description,
    // run() requires the vars that these need
    model: model as AgentDefinition<StepScope>["model"],
    instructions: instructions as AgentDefinition<StepScope>["instructions"],
    tools: collectTools(use, tools as readonly AnyTool[]),
    limits: limited(defaultLimits, limits),
    format: output && outputFormat(output),
    observers: [observe].flat(),
    use,
    wrapHooks: trace,
    steps,
    checkLimits({ context }) {
      if (context < Infinity && !steps.compact) {
        const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
        throw new TypeError(`Cannot limit "context" to ${context} tokens: ${expected}`);
      }
    },
  };
  parts.checkLimits(parts.limits);
  return parts;
}

/** Returns all tools, the agent's own first. */
function collectTools(use: readonly Middleware[], own: readonly AnyTool[]): readonly AnyTool[] {
  const from = new Map<string, string>();
  const sources = [
    { name: "tools", tools: own },
    ...use.map((middleware, index) => ({ name: nameOf(middleware, index), tools: middleware.tools ?? [] })),
  ];
  return sources.flatMap(({ name, tools }) => {
    for (const tool of tools) {
      const other = from.get(tool.name);
      if (other) {
        throw new TypeError(`Cannot create the agent: "${other}" and "${name}" both have a tool "${tool.name}"`);
      }
      from.set(tool.name, name);
    }
    return tools;
  });
}
