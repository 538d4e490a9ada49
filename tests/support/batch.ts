/**
 * An agent whose model makes one batch of calls and then answers, and the outcome.
 *
 * @module
 */
import {
  agent,
  type AgentOptions,
  type AnyTool,
  type Event,
  type Middleware,
  type PersonAnswer,
  type RunHandle,
  type RunResult,
  type Schema,
  tool,
  type ToolExecutionContext,
} from "@jizai/jizai";
import { scripted, type ScriptedCall, type ScriptedModel } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { lines } from "./transcript_lines.ts";

/** Creates a call of `weather`, or of another tool. Its city is its id, or another one. */
export function call(
  id: string,
  { name = "weather", city = id }: { name?: string; city?: unknown } = {},
): Required<ScriptedCall> {
  return { id, name, input: { city } };
}

/** Three calls of `weather`. */
export const three = [call("a"), call("b"), call("c")];

/** A call whose input is not JSON. */
export const malformed = { id: "malformed", name: "weather", input: '{"city":' };

/** The outcome of a run. */
export interface Outcome {
  readonly result: RunResult;
  readonly events: readonly Event[];
  /** The errors that the operator received. */
  readonly errors: readonly unknown[];
  /** The transcript after the prompt, one line for each part. */
  readonly lines: readonly string[];
}

/** A batch to run. */
export interface Batch {
  readonly model: ScriptedModel;
  /** Starts the run. */
  run(): Begun;
  /** Resumes the run after a pause. */
  resume(session: string, answers?: readonly PersonAnswer[]): Begun;
}

/** A run that has begun. */
export interface Begun {
  readonly outcome: Promise<Outcome>;
  readonly stop: (reason?: string) => void;
}

/** Creates an agent whose model makes `calls` in one response. */
export function batch(
  calls: readonly ScriptedCall[],
  options: Pick<AgentOptions<unknown, Schema>, "tools" | "use" | "limits" | "observe"> = {},
): Batch {
  const model = scripted({ calls }, "Done.");
  const assistant = agent({ tools: [weather()], ...options, model });
  return {
    model,
    run: () => begun((onError) => assistant.run({ prompt: "Hi", onError })),
    resume: (session, answers = []) => begun((onError) => assistant.resume({ session, answers, onError })),
  };
}

function begun(begin: (onError: (error: unknown) => void) => RunHandle<unknown>): Begun {
  const errors: unknown[] = [];
  const handle = begin((error) => errors.push(error));
  return { outcome: outcomeOf(handle, errors), stop: handle.stop };
}

async function outcomeOf({ events, result }: RunHandle<unknown>, errors: readonly unknown[]): Promise<Outcome> {
  const all = await Array.fromAsync(events);
  const outcome = await result;
  return { result: outcome, events: all, errors, lines: lines(outcome.messages.slice(1)) };
}

/** Runs `calls` once and returns the outcome. */
export async function runBatch(
  calls: readonly ScriptedCall[],
  options?: Parameters<typeof batch>[1],
): Promise<Outcome> {
  return await batch(calls, options).run().outcome;
}

type Execute = (input: { city: string }, ctx: ToolExecutionContext) => unknown;

/** A tool about cities. */
export function weather(
  execute: Execute = ({ city }) => `sun in ${city}`,
  { name = "weather", ...options }: { readonly name?: string; readonly ask?: boolean; readonly idempotent?: boolean } =
    {},
): AnyTool {
  return tool({ name, ...options, description: "About a city", input: z.object({ city: z.string() }), execute });
}

/** A tool that asks a person, and logs its effects. */
export function drop(log: string[] = []): AnyTool {
  return weather(({ city }) => {
    log.push(`drop ${city}`);
    return `dropped ${city}`;
  }, { name: "drop", ask: true });
}

/** Hooks that act on one call only. */
export function at(id: string, hooks: Pick<Middleware, "tool" | "approval" | "execute">): Middleware {
  const { tool, approval, execute } = hooks;
  return {
    name: `at ${id}`,
    ...(tool && { tool: (ctx, next) => ctx.call.id === id ? tool(ctx, next) : next() }),
    ...(approval && { approval: (ctx, next) => ctx.call.id === id ? approval(ctx, next) : next() }),
    ...(execute && { execute: (ctx, next) => ctx.call.id === id ? execute(ctx, next) : next() }),
  };
}

/** Logs each call when it enters and leaves `tool`. */
export function watch(log: string[]): Middleware {
  return {
    name: "watch",
    async tool({ call, resumed }, next) {
      log.push(`in ${call.id}${resumed ? " again" : ""}`);
      try {
        const result = await next();
        log.push(`out ${call.id} ${result.status}`);
        return result;
      } finally {
        log.push(`finally ${call.id}`);
      }
    },
  };
}

/** Counts how many pieces of work run at the same time. */
export function gauge() {
  let inside = 0;
  let peak = 0;
  return {
    get peak() {
      return peak;
    },
    /** Runs `work`, and counts it until it is done. */
    async during<T>(work: () => T | Promise<T>): Promise<T> {
      peak = Math.max(peak, ++inside);
      try {
        return await work();
      } finally {
        inside--;
      }
    },
  };
}

/** Returns a function whose promises all resolve once it was called `size` times. */
export function barrier(size: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let missing = size;
  return () => {
    if (--missing === 0) resolve();
    return promise;
  };
}

/** Waits until all promises that can settle have settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
