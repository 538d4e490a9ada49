/**
 * Handlers of type `command`: a process reads the input as JSON and answers with its exit code and its output.
 *
 * @module
 */
import * as z from "zod";
import { startTimer } from "../../../../src/core/kit.ts";
import { type BackgroundAnswer, laterAnswer } from "../../claude_hooks/ask/read.ts";
import { outputOf, readJson, type Speaker, specificOutput } from "../output.ts";
import type { CommandHook } from "../handler_config.ts";
import type { Environments } from "./environment.ts";
import type { Handler } from "./handler.ts";
import { type Exited, expectDirectory, type Place, start } from "./process.ts";

/** The first line of a command that continues in the background. */
const firstLine = z.object({ async: z.literal(true), asyncTimeout: z.number().positive().default(15_000) });

/**
 * Creates the handler. Throws a `TypeError` if its directory does not exist. A command is killed, with the processes that it started, when the run no longer
 * waits for it.
 */
export function commandHandler(hook: CommandHook, place: Place, environments: Environments): Handler {
  expectDirectory(place.cwd);
  const name = [hook.command, ...hook.args ?? []].join(" ");
  const isAsync = hook.async || hook.asyncRewake;

  return async (input, { signal, dialect }) => {
    const speaker: Speaker = { event: input.hook_event_name, dialect, name };
    const session = environments.enter(input.session_id, speaker.event);
    const at = { cwd: place.cwd, env: { ...place.env, ...session.env } };
    const running = start(hook, `${JSON.stringify(input)}\n`, at, signal);
    const exited = session.file === undefined ? running.exited : running.exited.finally(() => session.read(at));
    if (isAsync) return later(exited.then((exited) => lateOutput(exited, speaker)), running.kill);
    const { json } = readJson((await running.line ?? "").trim(), true, dialect);
    const { success, data } = firstLine.safeParse(json);
    if (!success) return outputOf(await exited, speaker);
    const timer = startTimer(running.kill, data.asyncTimeout);
    const done = exited.finally(() => clearTimeout(timer)).then((exited) => outputOf(restOf(exited), speaker));
    return later(done, running.kill);
  };

  function lateOutput(exited: Exited, speaker: Speaker): unknown {
    if (!hook.asyncRewake || exited.code !== 2) return outputOf(exited, speaker);
    return specificOutput(speaker.event, { additionalContext: exited.stderr.trim() || exited.stdout.trim() });
  }
}

function later(done: Promise<unknown>, stop: () => void): BackgroundAnswer {
  return { async: true, [laterAnswer]: { done, stop } };
}

function restOf({ stdout, ...exited }: Exited): Exited {
  return { ...exited, stdout: stdout.slice(stdout.indexOf("\n") + 1) };
}
