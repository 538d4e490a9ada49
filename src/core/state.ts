/**
 * Typed state of a run or a session, for middleware, and cleanups. Such data lives here, never in a factory's closure.
 *
 * @module
 */
import { expectJson } from "./lib/json.ts";
import { expectChoice } from "./lib/options.ts";
import type { Hook } from "./onion.ts";
import type { AbortContext } from "./points.ts";
import type { Change, Run, Scope } from "./scope.ts";
import type { Schema } from "./tool.ts";
import type { Emit } from "../protocol/event.ts";
import { expectNames } from "../protocol/shape.ts";

/** A named value in the state of a run or session. */
export interface State<T> {
  /** Returns the value. Throws a `TypeError` if its initial value is one that JSON cannot hold. */
  get(at: Scope): T;
  /** Replaces the value. Throws a `TypeError` for a value that JSON cannot hold. */
  set(at: Scope, value: T): void;
  /** Replaces the value with `change(value)` and returns the new value. */
  update(at: Scope, change: (value: T) => T): T;
}

/** The `emit` of a scope that is recorded. It receives each value that is set there. */
export interface RecordedEmit extends Emit {
  /** Receives a value that was set. */
  readonly "~set": (lifetime: "run" | "session", name: string, value: unknown) => void;
}

/** The options of `state()`. */
export interface StateOptions {
  /** "run": for one run, across its pauses. "session": for all runs of the session. Default: "run". */
  readonly lifetime?: "run" | "session";
  /** The version of the value's form. A stored value of another version is ignored. Default: 1. */
  readonly version?: number;
  /** A synchronous schema for stored values. A value that does not match is ignored. Default: accepts every value. */
  readonly schema?: Schema;
}

/**
 * Creates a named value that every run or session starts with `init()`. It is saved with the run, so it must be JSON. Subagents share the state
 * of the session. Throws a `TypeError` for an unknown option or lifetime.
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
export function state<T>(name: string, init: () => T, options: StateOptions = {}): State<T> {
  const { lifetime = "run", version = 1, schema } = options;
  const operation = `Cannot create the state "${name}"`;
  expectNames(operation, options, ["lifetime", "version", "schema"]);
  expectChoice(operation, "lifetime", lifetime, ["run", "session"]);
  const key = version === 1 ? name : `${name}@${version}`;
  const writing = `Cannot set the state "${name}"`;
  /** The maps whose value was validated. */
  const validated = schema && new WeakSet<Map<string, unknown>>();
  const mapOf = ({ run }: Scope) => lifetime === "session" ? run.sessionState : run.state;

  function read(at: Scope): T {
    const values = mapOf(at);
    const value = values.get(key);
    const isStored = (value !== undefined || values.has(key)) &&
      (!schema || validated?.has(values) || fits(schema, value));
    if (!isStored) return write(at, init());
    validated?.add(values);
    return value as T; // only this state writes this key
  }
  function write(at: Scope, value: T): T {
    expectJson(writing, value, { whole: true });
    const values = mapOf(at);
    validated?.add(values);
    values.set(key, value);
    const emit = at.emit as Partial<RecordedEmit> | undefined; // code without types may pass a run alone
    emit?.["~set"]?.(lifetime, key, value);
    return value;
  }
  return {
    get: read,
    set: write,
    update: (at, change) => write(at, change(read(at))),
  };
}

function fits(schema: Schema, value: unknown): boolean {
  const result = schema["~standard"].validate(value);
  return !("then" in result) && !result.issues;
}

// Cleanups: functions that release what a middleware opened for a run.

/** The cleanups of runs, each called once: by the `finally` of a `session` hook, or by `abort` if an inner hook never returns to it. */
export class Cleanups {
  readonly #byRun = new WeakMap<Run, () => Promise<void>>();

  /** Sets the cleanup of a run. */
  set({ run }: Scope, cleanup: () => Promise<void>): void {
    let done: Promise<void> | undefined;
    this.#byRun.set(run, () => done ??= cleanup());
  }

  /** Calls the cleanup of a run, or waits for it if it was called before. */
  async run({ run }: Scope): Promise<void> {
    await this.#byRun.get(run)?.();
    this.#byRun.delete(run); // a cleanup that holds its run would keep it until the next full garbage collection
  }

  /** The `abort` hook: cleans up after the hooks inside. */
  readonly abort: Hook<AbortContext, Change, void> = async (ctx, next) => {
    try {
      await next();
    } finally {
      await this.run(ctx);
    }
  };
}
