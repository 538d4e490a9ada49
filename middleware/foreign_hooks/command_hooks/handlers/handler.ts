/**
 * The port that every type of handler implements.
 *
 * @module
 */
import type { Dialect } from "../../claude_hooks/config/dialect.ts";
import type { HookInput } from "../../claude_hooks/config/input.ts";

/** Options of one call of a handler. */
export interface HandlerOptions {
  readonly signal: AbortSignal;
  readonly dialect: Dialect;
}

/** Answers one event. Returns the output of a hook, and throws if it failed. */
export type Handler = (input: HookInput, options: HandlerOptions) => Promise<unknown>;
