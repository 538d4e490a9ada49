/**
 * The definition of an agent: its parts, composed once. Every run reads it, and none changes it.
 *
 * @module
 */
import type { Model, ModelRequest } from "../../model/model.ts";
import type { Event, FinishReason, Point } from "../../protocol/event.ts";
import type { UserMessage } from "../../protocol/message.ts";
import { type Middleware, nameOf } from "../hooks/middleware.ts";
import { points } from "../hooks/each_hook.ts";
import { compose, type Conditional, type Hook, type Onion } from "../hooks/onion.ts";
import type { Change, Scope } from "../hooks/scope.ts";
import type { Limits } from "../run/limits.ts";
import type { Steps } from "../run/step.ts";
import type { OutputStream } from "./output_stream.ts";
import { type AnyTool, type ToolTable, toolTable } from "./tool.ts";

/** The hooks of every point, composed. */
export type Onions = { readonly [P in Point]: OnionOf<NonNullable<Middleware[P]>> };

/** The hooks of one point, composed. `H` is a hook of that point. */
export type OnionOf<H> = H extends Hook<infer C, infer D, infer R> ? Onion<C, D, R> : never;

/** The format of the final answer. */
export interface AnswerFormat {
  /** The JSON Schema of the answer. */
  readonly schema: { readonly [key: string]: unknown };
  /** Adds the format to a request. */
  shape(request: ModelRequest): ModelRequest;
  /** Reads the final text. Returns the structured answer, or a message that asks the model again. */
  read(
    text: string,
    finish: FinishReason | undefined,
  ): Promise<{ readonly output: unknown } | { readonly retry: UserMessage }>;
  /** Streams the partial answer. Undefined unless the schema is `streamed()`. */
  readonly stream?: OutputStream | undefined;
}

/** Wraps each hook of an agent. */
export type WrapHooks = <C extends Scope, D extends object, R>(
  point: Point,
  middleware: string,
  hook: Hook<C, D, R>,
) => Hook<C, D, R>;

/** The parts of an agent. `S` is the scope of the engine's steps. */
export interface AgentParts<S> {
  /** The agent's name. */
  readonly name: string;
  /** The agent's purpose, for the model of a parent agent. */
  readonly description: string;
  /** The model, or a function that picks one per request. */
  readonly model: Model | ((scope: Scope) => Model | Promise<Model>);
  /** The system prompt, or a function that returns it. */
  readonly instructions: string | ((scope: Scope) => string | Promise<string>);
  /** The agent's own tools. */
  readonly tools: readonly AnyTool[];
  /** The limits of a run. */
  readonly limits: Limits;
  /** The clock of its runs. Undefined for `Date.now`. */
  readonly now: (() => number) | undefined;
  /** The format of the final answer. Undefined for plain text. */
  readonly format: AnswerFormat | undefined;
  /** Functions that receive each event of a run. */
  readonly observers: readonly ((event: Event) => void)[];
  /** The middleware, outermost first. */
  readonly use: readonly Middleware[];
  /** Wraps each hook, as `trace` does. Undefined if nothing does. */
  readonly wrapHooks: WrapHooks | undefined;
  /** Steps for further positions. */
  readonly steps: Steps<S>;
  /** Throws a `TypeError` if a limit needs a feature that the agent does not have. */
  readonly checkLimits: (limits: Limits) => void;
}

/** An agent, composed. */
export interface AgentDefinition<S> extends AgentParts<S> {
  /** The hooks of every point, composed. */
  readonly onions: Onions;
  /** True if it has `input` hooks. */
  readonly reviewsInput: boolean;
  /** Its own tools, for every run that has no others. */
  readonly toolTable: ToolTable;
  /** The functions of middleware that request groups of calls. */
  readonly groups: readonly NonNullable<Middleware["groups"]>[];
  /** The functions of middleware that change what the store keeps, innermost first. */
  readonly savers: readonly NonNullable<Middleware["~save"]>[];
  /** The functions of middleware that change each request before it is sent, innermost first. */
  readonly senders: readonly NonNullable<Middleware["~request"]>[];
}

/** Composes the hooks of an agent. */
export function defineAgent<S>(parts: AgentParts<S>): AgentDefinition<S> {
  const { use, wrapHooks } = parts;
  const names = uniqueNames(use.map(nameOf));

  function fold<C extends Scope, D extends Change, R>(point: Point): Onion<C, D, R> {
    return compose(use.flatMap((middleware, index) => {
      const hook = middleware[point] as Hook<C, D, R> | Conditional<C, D, R> | undefined; // C, D and R are those of the point
      const name = names[index] ?? "";
      if (!hook) return [];
      if (wrapHooks) return [{ name, hook: wrapHooks(point, nameOf(middleware, index), hook.bind(middleware)) }];
      return [{ name, hook: "~applies" in hook ? hook : hook.bind(middleware) }];
    }));
  }

  const onions = Object.fromEntries(points.map((point) => [point, fold(point)])) as Onions; // one for each point
  const groups = use.flatMap((middleware) => middleware.groups ? [middleware.groups.bind(middleware)] : []);
  const savers = use.flatMap((middleware) => middleware["~save"] ?? []).reverse();
  const senders = use.flatMap((middleware) => middleware["~request"] ?? []).reverse();
  const reviewsInput = use.some(({ input }) => input !== undefined);
  return { ...parts, onions, reviewsInput, toolTable: toolTable(parts.tools), groups, savers, senders };
}

/** Returns names of which no two are the same: "always allow" binds to the guard that asked. */
function uniqueNames(names: readonly string[]): readonly string[] {
  const unique = new Set<string>();
  for (const name of names) {
    let own = name;
    for (let n = 2; unique.has(own); n++) own = `${name} (${n})`;
    unique.add(own);
  }
  return [...unique];
}
