/**
 * Tools: what the model may use.
 *
 * @module
 */
import type { ToolDefinition } from "../model/model.ts";
import { type Infer, jsonSchemaOf, type Schema } from "./schema.ts";
import type { Scope } from "./scope.ts";

/** What a tool knows of the call it runs for. Nothing is scheduled by it: a tool that must wait for another waits inside `execute`. */
export interface ToolExecutionContext<V = unknown> extends Scope<V> {
  /** The provider's id of the call. */
  readonly callId: string;
  /** The batch of calls it belongs to: new for every response of the model, and for a resumed batch. */
  readonly batchId: string;
  /** Its place in the model's order, from 0; calls that were answered without running consume one too. */
  readonly callIndex: number;
  /** The turn, from 1. */
  readonly turn: number;
  /** The same for every try of this call, also after a resume: for services that take an idempotency key. */
  readonly idempotencyKey: string;
  /** Tells whoever watches how far it is. */
  readonly progress: (data: unknown) => void;
}

/** A tool. `I` is its parsed input, `O` what it returns, `V` the vars it needs. */
export interface Tool<I, O, V> {
  /** What the model calls it. */
  readonly name: string;
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /** What its input is checked against. */
  readonly input: Schema;
  /** The tool as the model is told of it. */
  readonly definition: ToolDefinition;
  /** Whether a person has to agree: to every call, or to those it answers true for. */
  readonly ask?: boolean | ((input: I, scope: Scope<V>) => boolean | Promise<boolean>);
  /** Whether a call of it may run again, with the same idempotency key, where its process died and nobody knows whether it was done. */
  readonly idempotent?: boolean;
  /** Does the work. */
  readonly execute: (input: I, ctx: ToolExecutionContext<V>) => O | Promise<O>;
}

/** Any tool, whatever its input, in an agent with vars `V`. */
export type AnyTool<V = unknown> = Tool<never, unknown, V>;

/** What `tool()` takes. */
export interface ToolOptions<S extends Schema, O, V> {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, as the providers accept them. */
  readonly name: string;
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /** Its input. Any Standard Schema that can say itself as JSON Schema. */
  readonly input: S;
  /** Whether a person has to agree before it runs. Default: false. */
  readonly ask?: boolean | ((input: NoInfer<Infer<S>>, scope: Scope<V>) => boolean | Promise<boolean>);
  /**
   * Whether a call may run again where its process died and nobody knows whether it was done: it has the same `idempotencyKey` then. Default: false,
   * the model is told that it was interrupted.
   */
  readonly idempotent?: boolean;
  /** Does the work. A string is told to the model as it is, a `ToolResult` too, anything else as JSON. What it throws becomes an error result. */
  readonly execute: (input: NoInfer<Infer<S>>, ctx: ToolExecutionContext<V>) => O | Promise<O>;
}

/**
 * Makes a tool. Throws a `TypeError` for a name that providers refuse, or a schema without JSON Schema.
 *
 * ```ts
 * import { tool } from "@jizai/jizai";
 * import * as z from "zod";
 *
 * const weather = tool({
 *   name: "weather",
 *   description: "Current weather of a city",
 *   input: z.object({ city: z.string() }),
 *   execute: ({ city }) => `Sunny in ${city}`,
 * });
 * ```
 */
export function tool<S extends Schema, O, V = unknown>(options: ToolOptions<S, O, V>): Tool<Infer<S>, O, V> {
  const { name, description, input } = options;
  if (!names.test(name)) throw new TypeError(`Cannot make tool ${JSON.stringify(name)}: a name has ${named}`);
  return { ...options, definition: { name, description, schema: jsonSchemaOf(input, `tool "${name}"`) } };
}

/** What a tool may be called. */
export const names = /^[A-Za-z0-9_-]{1,64}$/;
/** What a tool may be called, in words. */
export const named = "1 to 64 of A-Z a-z 0-9 _ -";

/** A failure whose message is written for the model. Any other error a tool throws is told to the operator; the model hears only that the tool failed. */
export class ToolError extends Error {
  /** The name of the class. */
  override readonly name = "ToolError";
}
