/**
 * A command as a hook: it is told on its standard input, and answers by its exit code and its output.
 *
 * @module
 */
import * as z from "zod";
import { startTimer } from "../../../src/core/kit.ts";
import type { HookInput } from "../claude_hooks/input.ts";
import { going, type GoingOn } from "../claude_hooks/output.ts";
import { means, ruleOf } from "../claude_hooks/rule.ts";
import { type Exited, type Place, start } from "./process.ts";
import { about, readIn, saidBy } from "./said.ts";
import type { CommandHook } from "./settings.ts";

/** What a command says first that goes on by itself. */
const goesOn = z.object({ async: z.literal(true), asyncTimeout: z.number().positive().default(15_000) });

/** Makes a hook of a command. It is killed, with all that it has started, where nobody waits for it any more. */
export function commandHook(command: CommandHook, place: Place) {
  const rule = command.if === undefined ? undefined : ruleOf(command.if);
  const name = [command.command, ...command.args ?? []].join(" ");

  function isMeant(input: HookInput): boolean {
    if (!rule) return true;
    return "tool_name" in input && means(rule, input.tool_name, input.tool_input, { every: false });
  }

  return async function run(
    input: HookInput,
    _: string | undefined,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<unknown> {
    if (!isMeant(input)) return undefined;
    const { hook_event_name: event } = input;
    const { line, exited: done, kill } = start(command, `${JSON.stringify(input)}\n`, place, signal);
    if (command.async || command.asyncRewake) {
      return goingOn(
        done.then((exited) => command.asyncRewake && exited.code === 2 ? woken(exited) : saidBy(exited, event, name)),
      );
    }
    const { success, data } = goesOn.safeParse(readIn((await line ?? "").trim()).said);
    if (!success) return saidBy(await done, event, name);
    const timer = startTimer(kill, data.asyncTimeout);
    return goingOn(done.finally(() => clearTimeout(timer)).then((exited) => saidBy(afterFirst(exited), event, name)));

    function goingOn(done: Promise<unknown>): GoingOn {
      return { async: true, [going]: { done, stop: kill } };
    }

    /** Tells the model why. */
    function woken({ stdout, stderr }: Exited): unknown {
      return about(event, { additionalContext: stderr.trim() || stdout.trim() });
    }
  };
}

function afterFirst({ stdout, ...exited }: Exited): Exited {
  return { ...exited, stdout: stdout.slice(stdout.indexOf("\n") + 1) };
}
