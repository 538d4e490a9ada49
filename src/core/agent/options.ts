/**
 * The options of agents and of their runs.
 *
 * @module
 */
import type { Model } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { expectNames } from "../../protocol/shape.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import type { Middleware } from "../hooks/middleware.ts";
import type { Scope } from "../hooks/scope.ts";
import type { ClaimOptions } from "../persistence/claim_options.ts";
import type { Store } from "../persistence/store.ts";
import type { OnError } from "../run/events.ts";
import type { Limits } from "../run/limits.ts";
import type { StartOptions } from "../start/options.ts";
import type { WrapHooks } from "./definition.ts";
import type { Schema } from "./schema.ts";
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
export interface RunOptions extends Pick<ClaimOptions, "owner" | "lease" | "lost" | "busy"> {
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
export interface ResumeOptions extends RunOptions, Pick<ClaimOptions, "reconcile" | "closing" | "rollback"> {
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
  "lease",
  "lost",
  "reconcile",
  "closing",
  "rollback",
  "compact",
] as const satisfies readonly (keyof StartOptions | "prompt")[];

/** The names of the options with which servers start runs, beside those of runs. */
const serverOptionNames = [
  "run",
  "requestId",
  "startedAt",
  "pausedAt",
  "rewind",
  "early",
  "check",
  "review",
  "tools",
  "answerFormat",
] as const satisfies readonly (keyof StartOptions)[];

/** Throws a `TypeError` for an option that runs do not have; `ofServer` adds those of servers. A misspelt limit or owner would silently not exist. */
export function expectRunOptions(options: object, { ofServer = false }: { readonly ofServer?: boolean } = {}): void {
  expectNames("Cannot run", options, ofServer ? [...runOptionNames, ...serverOptionNames] : runOptionNames);
}
