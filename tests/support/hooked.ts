/**
 * Agents with hooks of Claude and Qoder.
 *
 * @module
 */
import { type AnyTool, type Event, type Limits, type Middleware, type PersonAnswer, tool } from "@jizai/jizai";
import {
  claude_hooks,
  type HookAnswer,
  type HookCallback,
  type HookConfig,
  type HookInput,
  type HookSpecificOutput,
} from "@jizai/jizai/middleware/claude_hooks";
import type { ClaudeHooksOptions } from "@jizai/jizai/middleware/claude_hooks";
import type { ScriptedCall } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { type Batch, batch, type Outcome } from "./batch.ts";

/** A call of `Bash`. */
export function command(id: string, command = id, name = "Bash"): Required<ScriptedCall> {
  return { id, name, input: { command } };
}

/** A tool that runs commands and logs them. */
export function shell(
  { name = "Bash", ask = false, log = [], execute = (text) => `ran ${text}` }: {
    readonly name?: string;
    readonly ask?: boolean;
    readonly log?: string[];
    readonly execute?: (command: string) => unknown;
  } = {},
): AnyTool {
  return tool({
    name,
    ask,
    description: "Runs a command",
    input: z.object({ command: z.string() }),
    execute({ command }) {
      log.push(command);
      return execute(command);
    },
  });
}

/** Returns the fields of an input that only its event has. */
export function ownFields(input: HookInput): Record<string, unknown> {
  const {
    session_id: _,
    transcript_path: __,
    cwd: ___,
    prompt_id: ____,
    model: _____,
    permission_mode: ______,
    ...own
  } = input;
  return own;
}

/** The parts of an agent around its hooks. */
export interface SurroundingParts {
  /** The calls of the first response. Default: `Bash` with `ls`. */
  readonly calls?: readonly ScriptedCall[];
  /** The tools. Default: `Bash`. */
  readonly tools?: readonly AnyTool[];
  /** The middleware outside the hooks. */
  readonly before?: readonly Middleware[];
  /** The middleware inside the hooks. */
  readonly after?: readonly Middleware[];
  readonly limits?: Partial<Limits>;
}

/** Creates an agent with hooks of a system, which `hooks` makes from the options that are no parts of the agent. Its model makes some calls in one response and then answers. */
export function surrounded<O extends SurroundingParts>(
  hooks: (options: Omit<O, keyof SurroundingParts>) => Middleware,
  options: O,
): Batch {
  const { calls = [command("a", "ls")], tools = [shell()], before = [], after = [], limits = {}, ...rest } = options;
  return batch(calls, { tools, limits, use: [...before, hooks(rest), ...after] });
}

/** Runs an agent until it pauses and resumes it with `answers`. */
export async function pausedAndResumed(
  agent: Batch,
  answers: readonly PersonAnswer[],
): Promise<readonly [Outcome, Outcome]> {
  const first = await agent.run().outcome;
  return [first, await agent.resume(first.result.session, answers).outcome];
}

/** Options of an agent with hooks. */
export interface HookedOptions extends ClaudeHooksOptions, SurroundingParts {}

/** Creates an agent with hooks, whose model makes some calls in one response and then answers. */
export function hooked(config: HookConfig, options: HookedOptions = {}): Batch {
  return surrounded((rest) => claude_hooks(config, rest), options);
}

/** Runs an agent with hooks once. */
export async function ran(config: HookConfig, options?: HookedOptions): Promise<Outcome> {
  return await hooked(config, options).run().outcome;
}

/** Runs an agent with hooks and resumes it with `answers`. */
export async function resumed(
  config: HookConfig,
  answers: readonly PersonAnswer[],
  options?: HookedOptions,
): Promise<readonly [Outcome, Outcome]> {
  return await pausedAndResumed(hooked(config, options), answers);
}

/** A hook that always returns `answer`. */
export function returning(answer: HookAnswer): HookCallback {
  return () => answer;
}

/** A hook that always returns the same `hookSpecificOutput`, for its own event. */
export function returningOutput(output: Omit<HookSpecificOutput, "hookEventName">): HookCallback {
  return ({ hook_event_name: hookEventName }) => ({ hookSpecificOutput: { hookEventName, ...output } });
}

/** The matchers of an event: one with these hooks. */
export function hooks(...hooks: readonly HookCallback[]) {
  return [{ hooks }];
}

/** The texts of the notices. */
export function notices(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "notice" ? [event.text] : []);
}

/** The messages of the warnings. */
export function warnings(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "warning" ? [event.message] : []);
}
