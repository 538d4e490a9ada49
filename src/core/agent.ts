/**
 * Agents: a model, tools and middleware, composed once. The file also has the options of agents and runs, and the handles of runs.
 *
 * @module
 */
import type { ClaimConditions } from "./claim.ts";
import { defineAgent, partsOf, type WrapHooks } from "./definition.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import type { Limits } from "./limits.ts";
import { agentMemory } from "./memory.ts";
import type { Middleware } from "./middleware.ts";
import type { DeepPartial, OutputStream } from "./output.ts";
import type { RunResult } from "./points.ts";
import { stopFor } from "./position.ts";
import type { Scope } from "./scope.ts";
import { start, type Started, type StartOptions } from "./start.ts";
import { expectedInPlaceOf, type Store } from "./store.ts";
import type { AnyTool, Infer, Schema } from "./tool.ts";
import { expectMessages } from "./transcript.ts";
import type { Model } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import { type Message, user } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import { expectNames } from "../protocol/shape.ts";
import { channel, type Sink } from "../stream/channel.ts";

// The options of agents and of their runs.

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
  /**
   * The order of middleware: as given in `use`, which must keep to `after` and `before`; or sorted by these declarations, and as given where there is
   * none. Default: "given".
   */
  readonly order?: "given" | "declared";
  /** Changes of the default limits of a run. */
  readonly limits?: Partial<Limits>;
  /** Receives every event. It can neither slow nor change a run. */
  readonly observe?: ((event: Event) => void) | readonly ((event: Event) => void)[];
  /**
   * Freezes the contexts, results and events that hooks receive, so that a write throws a `TypeError` that names the hook. Vars, tools, models and
   * objects of a class stay as they are. Default: false, and true once `@jizai/jizai/testing` is imported.
   */
  readonly strict?: boolean;
  /** Returns the time for `ctx.run.now()`, in milliseconds since 1970, such as that of a recording. Default: `Date.now`. */
  readonly now?: () => number;
  /** Emits a `hook.acted` event for each hook: pass `trace` of `@jizai/jizai/trace`. Default: none. */
  readonly trace?: WrapHooks;
}

/** The options of every run. */
export interface RunOptions extends ClaimConditions {
  /**
   * The session. It is created if there is none with this id: 1 to 500 characters, without NUL, lone surrogates and U+FFFD, which databases change.
   * Default: a new one, which `session` of the result continues if the run has no `store`; a store keeps it only if the run pauses.
   */
  readonly session?: string;
  /** The store of sessions. Default: the memory of this agent. */
  readonly store?: Store;
  /** Stops the run when it aborts. */
  readonly signal?: AbortSignal;
  /** Changes of the agent's limits. */
  readonly limits?: Partial<Limits>;
  /** Receives every error with the id that clients see in its place. Default: `console.error`. */
  readonly onError?: OnError;
}

/** The options of a new run: a prompt, or messages of which the last is the person's. */
export type PromptOptions = RunOptions & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** The options of a run that continues after a pause or a crash. */
export interface ResumeOptions extends RunOptions {
  /** The session. */
  readonly session: string;
  /** A person's answers to the run's questions. Empty for a run whose process died. */
  readonly answers: readonly PersonAnswer[];
  /** Ends the run as soon as its open calls have results, for this reason. Default: the run continues. */
  readonly closing?: string | undefined;
  /** Restores the transcript to the start of the run when it ends because of `closing`. Default: false. */
  readonly rollback?: boolean | undefined;
}

/** The options of a run that only compacts a session. */
export interface StartCompactOptions extends Omit<RunOptions, "busy"> {
  /** Only compacts the transcript, with these instructions. Throws if a run has the session. */
  readonly compact: { readonly instructions: string };
  /** The session. */
  readonly session: string;
}

/** The vars that a run takes: none, or exactly those that the agent needs. */
export type VarsOption<V> = unknown extends V ? { readonly vars?: unknown }
  : Record<never, never> extends V ? { readonly vars?: V }
  : { readonly vars: V };

/** The names of the options of runs. */
const runOptionNames = [
  "prompt",
  "messages",
  "session",
  "answers",
  "store",
  "vars",
  "owner",
  "signal",
  "limits",
  "onError",
  "busy",
  "traceparent",
  "lease",
  "lost",
  "closing",
  "rollback",
  "compact",
] as const satisfies readonly (keyof StartOptions | "prompt" | "closing")[];

/** The names of the options with which servers start runs, beside those of runs. */
const serverOptionNames = [
  "records",
  "onUsage",
  "isNew",
  "isRepeated",
  "mustExist",
  "run",
  "requestId",
  "startedAt",
  "pausedAt",
  "rewind",
  "call",
  "firstEvents",
  "detailed",
  "check",
  "review",
  "stop",
  "tools",
  "answerFormat",
] as const satisfies readonly (keyof StartOptions)[];

/** Throws a `TypeError` for an option that runs do not have; `ofServer` adds those of servers. A misspelt limit or owner would silently not exist. */
export function expectRunOptions(options: object, { ofServer = false }: { readonly ofServer?: boolean } = {}): void {
  expectNames("Cannot run", options, ofServer ? [...runOptionNames, ...serverOptionNames] : runOptionNames);
}

// Handles of runs: the events as a stream, beside the result.

/** A run that has started. */
export interface RunHandle<O> {
  /** The session's id. */
  readonly session: string;
  /**
   * The events. They are kept until they are read, except that of the progress of a call only the latest event is kept while 10,000 events wait. A reader
   * that stops does not stop the run.
   */
  readonly events: ReadableStream<Event>;
  /**
   * The partial values of the structured output, until the run ends or pauses. They are not validated, and a slow reader skips values. Needs `streamed()` of
   * `@jizai/jizai/output`; without it, reading this property throws a `TypeError`.
   */
  readonly output: AsyncIterable<DeepPartial<O>>;
  /** The result. It resolves whether or not the events are read. */
  readonly result: Promise<RunResult<O>>;
  /** Stops the run. Default reason: "stop". */
  readonly stop: Started["stop"];
  /**
   * Sends a message to the run, which receives it at the next safe place. Resolves once it is accepted; of a run that is saved as it works, once it is
   * saved. Rejects with a `RangeError` if ten messages wait, and with a `SessionError` if the run is over.
   */
  readonly send: Started["send"];
  /**
   * Asks the run to end with one more answer, without tools. Calls that have not begun are skipped. A call that asks a person still pauses the run, which
   * then ends when it continues. Resolves as `send()` does. Rejects with a `SessionError` if the run is over, or ends before the request is saved. Callers
   * need not wait.
   */
  readonly finish: Started["finish"];
}

/** The number of unread events from which on only the latest progress of each call is kept. */
const maxUnread = 10_000;

/** Starts a run, and returns its handle. */
export function runHandle<O>(
  start: (sink: Sink<NumberedEvent>) => Started,
  outputStream?: OutputStream,
): RunHandle<O> {
  const collector = outputStream?.collect();
  const { sink, stream } = channel<NumberedEvent, Event[], Event>({
    keep({ event }) {
      collector?.add(event);
      return [event];
    },
    merge(events, added) {
      events.push(...added);
      return events;
    },
    pack: (events, send) => events.forEach(send),
    highWater: Infinity, // the reader never slows the run
    congestedAt: maxUnread,
  });
  const run = start(sink);
  return {
    session: run.session,
    events: stream,
    get output() {
      if (collector) return collector.values as AsyncIterable<DeepPartial<O>>; // the text is written for the schema of O
      throw new TypeError("Cannot read run.output: expected `output: streamed(schema)` of @jizai/jizai/output");
    },
    result: run.result as Promise<RunResult<O>>, // validated by the output's schema
    stop: (reason, options) => run.stop(reason, options),
    send: (message, options) => run.send(message, options),
    finish: () => run.finish(),
  };
}

// The agent: `agent()`, and the methods that start its runs.

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
 * Creates an agent. Throws a `TypeError` without a model, for a misspelt hook, for two tools with the same name, for an order of middleware that one of
 * them rules out, and for an option whose feature is not imported.
 *
 * Without options, a run ends with the status `limit` after 300 seconds or 50 turns, also in the background. The calls of a response run in parallel, at most
 * 64. Nothing is retried or compacted, and sessions are in memory: change that with `limits`, `retry()`, `compaction()` and a store.
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
  const definition = defineAgent(partsOf<V, S>(Object(options))); // code without types may pass nothing
  const store = agentMemory();

  function startOptionsOf(options: Exclude<Given, string>): StartOptions {
    if (options.session !== undefined) expectId(options.session);
    const { closing, ...rest } = { closing: undefined, ...options };
    const stop = closing !== undefined && { stop: stopFor(closing) };
    return { store, vars: undefined, ...rest, ...stop, messages: messagesOf(options) };
  }

  function handle(promptOrOptions: Given): RunHandle<Infer<S>> {
    const options = typeof promptOrOptions === "object" && promptOrOptions !== null
      ? promptOrOptions
      : { prompt: promptOrOptions };
    expectRunOptions(options);
    return runHandle((sink) => start(definition, startOptionsOf(options), sink), definition.format?.stream);
  }

  function startForServer(options: Exclude<Given, string>, sink: Sink<NumberedEvent>): Started {
    expectRunOptions(options, { ofServer: true });
    return start(definition, startOptionsOf(options), sink);
  }

  const { name, description } = definition;
  return { name, description, run: handle, resume: handle, start: startForServer, "~definition": definition };
}

/** The options of a run, however it starts. */
type Given = string | ((PromptOptions | ResumeOptions | StartCompactOptions) & { readonly vars?: unknown });

/** Throws a `TypeError` for a session that a store cannot keep under its id. */
function expectId(session: unknown): void {
  const expected = typeof session === "string" ? expectedInPlaceOf(session) : "a text";
  if (expected !== undefined) throw new TypeError(`Cannot run: \`session\` is no id; expected ${expected}`);
}

/** Returns the messages of a new prompt; undefined for a run that continues or only compacts. Throws a `TypeError` if there is no prompt. */
function messagesOf(
  { prompt, messages, answers, compact }: Partial<StartOptions> & { readonly prompt?: string },
): readonly Message[] | undefined {
  if (answers || compact) return undefined;
  if (typeof prompt === "string") return [user(prompt)];
  if (!Array.isArray(messages) || messages.at(-1)?.role !== "user") {
    throw new TypeError("Cannot run: expected a prompt, or messages of which the last is the person's");
  }
  expectMessages("Cannot run", messages);
  return messages;
}
