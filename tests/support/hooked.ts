/**
 * Agents with hooks of other systems.
 *
 * @module
 */
import { type AnyTool, type Event, type Limits, type Middleware, type PersonAnswer, tool } from "@jizai/jizai";
import {
  claude_hooks,
  type HookAnswer,
  type HookCallback,
  type HookConfig,
  type HookSpecificOutput,
} from "@jizai/jizai/middleware/claude_hooks";
import type { ClaudeHooksOptions } from "@jizai/jizai/middleware/claude_hooks";
import type { ScriptedCall } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { type Batch, batch, type Came } from "./batch.ts";

/** A call of `Bash`. */
export function command(id: string, command = id, name = "Bash"): Required<ScriptedCall> {
  return { id, name, input: { command } };
}

/** A tool that runs commands; writes down which. */
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

/** What an agent with hooks is made of. */
export interface HookedOptions extends ClaudeHooksOptions {
  /** What the model calls at once. Default: `Bash` with `ls`. */
  readonly calls?: readonly ScriptedCall[];
  /** Default: `Bash`. */
  readonly tools?: readonly AnyTool[];
  /** What stands before the hooks. */
  readonly before?: readonly Middleware[];
  /** What stands after them. */
  readonly after?: readonly Middleware[];
  readonly limits?: Partial<Limits>;
}

/** An agent with hooks, whose model makes some calls at once and then is done. */
export function hooked(config: HookConfig, options: HookedOptions = {}): Batch {
  const { calls = [command("a", "ls")], tools = [shell()], before = [], after = [], limits = {}, ...rest } = options;
  return batch(calls, { tools, limits, use: [...before, claude_hooks(config, rest), ...after] });
}

/** What came of running it once. */
export async function ran(config: HookConfig, options?: HookedOptions): Promise<Came> {
  return await hooked(config, options).run().came;
}

/** What came of running it once and of going on, after `answers`. */
export async function resumed(
  config: HookConfig,
  answers: readonly PersonAnswer[],
  options?: HookedOptions,
): Promise<readonly [Came, Came]> {
  const agent = hooked(config, options);
  const first = await agent.run().came;
  return [first, await agent.resume(first.result.session, answers).came];
}

/** A hook that always says the same. */
export function saying(answer: HookAnswer): HookCallback {
  return () => answer;
}

/** A hook that always says the same to its event, whichever that is. */
export function saysOf(said: Omit<HookSpecificOutput, "hookEventName">): HookCallback {
  return ({ hook_event_name: hookEventName }) => ({ hookSpecificOutput: { hookEventName, ...said } });
}

/** A configuration of an event with one matcher of these hooks. */
export function hooks(...hooks: readonly HookCallback[]) {
  return [{ hooks }];
}

/** What the person was told. */
export function notices(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "notice" ? [event.text] : []);
}

/** What whoever watches was warned of. */
export function warnings(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "warning" ? [event.message] : []);
}
