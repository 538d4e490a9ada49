/**
 * Agents: a model, tools and middleware, composed once.
 *
 * @module
 */
import { type Message, user } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import { expectMessages } from "../lib/repair.ts";
import { agentMemory } from "../persistence/memory/kept_runs.ts";
import { expectedInPlaceOf } from "../persistence/store.ts";
import type { NumberedEvent } from "../run/events.ts";
import type { Started, StartOptions } from "../start/options.ts";
import { start } from "../start/start.ts";
import { defineAgent } from "./definition.ts";
import {
  type AgentOptions,
  expectRunOptions,
  type PromptOptions,
  type ResumeOptions,
  type StartCompactOptions,
  type VarsOption,
} from "./options.ts";
import { partsOf } from "./parts.ts";
import { type RunHandle, runHandle } from "./run_handle.ts";
import type { Infer, Schema } from "./schema.ts";

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

  function begin(options: Exclude<Given, string>, sink: Sink<NumberedEvent>): Started {
    if (options.session !== undefined) expectId(options.session);
    return start(definition, { store, vars: undefined, ...options, messages: messagesOf(options) }, sink);
  }

  function handle(given: Given): RunHandle<Infer<S>> {
    const options = typeof given === "object" && given !== null ? given : { prompt: given };
    expectRunOptions(options);
    return runHandle((sink) => begin(options, sink), definition.format?.stream);
  }

  function startForServer(options: Exclude<Given, string>, sink: Sink<NumberedEvent>): Started {
    expectRunOptions(options, { ofServer: true });
    return begin(options, sink);
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
  { prompt, messages, answers, compact }: { prompt?: string } & Pick<StartOptions, "messages" | "answers" | "compact">,
): readonly Message[] | undefined {
  if (answers || compact) return undefined;
  if (typeof prompt === "string") return [user(prompt)];
  if (!Array.isArray(messages) || messages.at(-1)?.role !== "user") {
    throw new TypeError("Cannot run: expected a prompt, or messages of which the last is the person's");
  }
  expectMessages("Cannot run", messages);
  return messages;
}
