/**
 * All points, and an agent that reaches each of them once.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  type Event,
  type Limits,
  type Middleware,
  type Next,
  type Point,
  type RunResult,
  type Scope,
  tool,
} from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { lines } from "./transcript_lines.ts";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { trace } from "@jizai/jizai/trace";
import { asTool } from "@jizai/jizai/subagents";

/** The vars of the agent: a function that stops the run. */
export interface Stoppable {
  readonly stop: (reason?: string) => void;
}

/** A hook at a point. */
export type AnyHook = (
  ctx: Scope<Stoppable> & { readonly [key: string]: unknown },
  next: Next<Readonly<Record<string, unknown>>, unknown>,
) => Promise<unknown>;

/** A middleware with a single hook. */
export function at(point: Point, name: string, hook: AnyHook): Middleware<Stoppable> {
  return { name, [point]: hook } as Middleware<Stoppable>; // the caller matches the hook to its point
}

/** The outcome of a run. */
export interface Reached {
  readonly result: RunResult;
  readonly events: readonly Event[];
  /** The errors that the operator received. */
  readonly errors: readonly unknown[];
  /** The status, and every line of the transcript. */
  readonly outcome: readonly string[];
}

/** Runs an agent that reaches `point` once. The core of the point writes "core" to `log` if it can. */
export async function reach(
  point: Point,
  use: readonly Middleware<Stoppable>[],
  { log = [], traces = false }: { readonly log?: string[]; readonly traces?: boolean } = {},
): Promise<Reached> {
  const scene = scenes[point](() => log.push("core"));
  const errors: unknown[] = [];
  const events: Event[] = [];
  const stop = (reason?: string) => run.stop(reason);
  const run = agent({
    model: scripted(...scene.steps),
    tools: scene.tools ?? [],
    limits: scene.limits ?? {},
    use: point === "compact" ? [compaction({ summarize: false }), ...use] : use,
    ...(traces && { trace }),
    observe: (event) => scene.observe?.(event, stop),
  }).run({ prompt: "Hi", vars: { stop }, onError: (error) => errors.push(error) });
  for await (const event of run.events) events.push(event);
  const result = await run.result;
  return { result, events, errors, outcome: [result.status, ...lines(result.messages)] };
}

interface Scene {
  readonly steps: readonly ScriptedAnswer[];
  readonly tools?: readonly AnyTool[];
  readonly limits?: Partial<Limits>;
  readonly observe?: (event: Event, stop: Stoppable["stop"]) => void;
}

function talk(core: () => void): Scene {
  const step = { text: "Done.", before: core };
  return { steps: [step, step] };
}

function call(tool: AnyTool): Scene {
  return { steps: [{ calls: [[tool.name, { n: 1, prompt: "Help" }]] }, "Done."], tools: [tool] };
}

/** A tool. `ask` returns whether a person must approve. */
function work(execute: () => string, ask: () => boolean = () => false): AnyTool {
  const input = z.object({ n: z.number() });
  return tool({ name: "work", description: "Works", input, idempotent: true, execute, ask });
}

function asked(core: () => void): boolean {
  core();
  return false;
}

function worked(core: () => void): string {
  core();
  return "Worked.";
}

function broken(): never {
  throw new Error("broken");
}

const scenes: Readonly<Record<Point, (core: () => void) => Scene>> = {
  session: talk,
  input: () => talk(() => {}),
  prompt: talk,
  turn: talk,
  model: talk,
  tool: (core) => call(work(() => worked(core))),
  approval: (core) => call(work(() => "Worked.", () => asked(core))),
  execute: (core) => call(work(() => worked(core))),
  stop: () => talk(() => {}),
  compact: () => ({ steps: [({ messages }) => `Heard: ${lines(messages).join()}`], limits: { context: 1 } }),
  subagent: (core) =>
    call(
      asTool(agent({ name: "child", model: scripted({ text: "Helped.", before: core }) }), {
        name: "work",
        description: "Helps",
      }),
    ),
  error: () => call(work(broken)),
  abort: () => ({
    steps: [{ text: ["Do", "ne."] }],
    observe: (event, stop) => event.type === "text.delta" && stop("enough"),
  }),
};
