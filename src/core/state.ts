/**
 * Typed state of a run or of a session, for middleware: what belongs to one of them lives here, never in a closure.
 *
 * @module
 */
import type { Schema } from "./schema.ts";
import type { Scope } from "./scope.ts";

/** A named piece of state. */
export interface State<T> {
  /** Its value in this run, or in its session. */
  get(at: Scope): T;
  /** Replaces it. */
  set(at: Scope, value: T): void;
  /** Replaces it with what `change` makes of it, and gives that. */
  update(at: Scope, change: (value: T) => T): T;
}

/** How state is kept. */
export interface StateOptions {
  /** For how long: for one run, over its pauses; or for as long as its session, in every run of it. Default: "run". */
  readonly lifetime?: "run" | "session";
  /** Says which form its values have; one that was kept in another form counts as none. Default: 1. */
  readonly version?: number;
  /** What a value that was kept has to look like; one that does not counts as none. It may not wait for anything. Default: anything. */
  readonly schema?: Schema;
}

/**
 * Names a piece of state that every run, or every session, starts with `init()`. It goes on when a paused run is resumed, so keep it JSON.
 * Agents beneath an agent share what lasts for the session.
 *
 * ```ts
 * import { agent, type Middleware, state } from "@jizai/jizai";
 *
 * const used = state("counter.used", () => 0);
 *
 * const counter: Middleware = {
 *   name: "counter",
 *   async tool(ctx, next) {
 *     used.update(ctx, (n) => n + 1);
 *     return await next();
 *   },
 * };
 * ```
 */
export function state<T>(
  name: string,
  init: () => T,
  { lifetime = "run", version = 1, schema }: StateOptions = {},
): State<T> {
  const key = version === 1 ? name : `${name}@${version}`;
  /** Where the value has been looked at. */
  const known = schema && new WeakSet<Map<string, unknown>>();
  const heldIn = ({ run }: Scope) => lifetime === "session" ? run.sessionState : run.state;

  function read(at: Scope): T {
    const held = heldIn(at);
    if (!held.has(key) || (schema && !known?.has(held) && !fits(schema, held.get(key)))) held.set(key, init());
    known?.add(held);
    return held.get(key) as T; // only this state writes under its name
  }
  function write(at: Scope, value: T): T {
    const held = heldIn(at);
    known?.add(held);
    held.set(key, value);
    return value;
  }
  return {
    get: read,
    set: write,
    update: (at, change) => write(at, change(read(at))),
  };
}

function fits(schema: Schema, value: unknown): boolean {
  const validated = schema["~standard"].validate(value);
  return !("then" in validated) && !validated.issues;
}
