/**
 * The commands of GitHub Copilot's command line and of its agent on GitHub: hooks whose handlers are commands.
 *
 * @module
 */
import * as z from "zod";
import { startTimer } from "../../../src/core/kit.ts";
import { lines } from "../claude_hooks/answers.ts";
import { refusal } from "../claude_hooks/config.ts";
import { patternOf } from "../claude_hooks/matcher.ts";
import type { HookAsking, SessionHooks } from "../copilot_hooks/hooks.ts";
import { type HookName, hookNames } from "../copilot_hooks/outputs.ts";
import { type Place, start } from "./process.ts";
import { failure, readIn } from "./said.ts";
import { type CommandSettings, maybe, neverAsked } from "./settings.ts";

const entry = z.object({
  type: z.string().default("command"),
  bash: maybe(z.string()),
  command: maybe(z.string()),
  powershell: maybe(z.string()),
  cwd: maybe(z.string()),
  env: maybe(z.record(z.string(), z.string())),
  timeoutSec: maybe(z.number().positive()),
  matcher: maybe(z.string()),
});
type Entry = z.output<typeof entry>;
type Fields = Readonly<Record<string, unknown>>;

/** Hooks, and what of the settings is never asked, and why: a sentence for each. */
export interface Copilot {
  readonly hooks: SessionHooks;
  readonly silent: readonly string[];
}

/** Reads settings. Throws a `TypeError` where the hooks of an event are not as they should be. */
export function copilot({ hooks = {}, disableAllHooks = false }: CommandSettings, place: Place): Copilot {
  const handlers: Partial<Record<HookName, ReturnType<typeof handlerOf>>> = {};
  const silent: string[] = [];
  for (const [event, given] of disableAllHooks ? [] : Object.entries(hooks)) {
    const name = hookNames.find((name) => name === `on${event.charAt(0).toUpperCase()}${event.slice(1)}`);
    const never = (why: string) => silent.push(neverAsked(event, why));
    if (/^[A-Z]/.test(event)) never(': they are written for "claude"');
    else if (!name) never(": that does not happen here");
    else {
      const commands = entriesOf(event, given).flatMap((entry) => {
        if (entry.type !== "command") never(` that are no commands: ${entry.type}`);
        else if (!patternOf(wholly(entry))) never(` whose matcher is no regular expression: ${entry.matcher}`);
        else return [commandOf(event, entry, place)];
        return [];
      });
      handlers[name] = handlerOf(event, commands);
    }
  }
  return { hooks: handlers as SessionHooks, silent }; // what commands say is read like what any handler says
}

function entriesOf(event: string, given: unknown): readonly Entry[] {
  const { success, data, error } = z.array(entry).safeParse(given);
  if (!success) throw refusal(event, z.prettifyError(error));
  return data;
}

/** The names of tools that an entry is for. */
function wholly({ matcher = ".*" }: Entry): string {
  return `^(?:${matcher})$`;
}

/** Asks one command. */
type Command = (told: Fields, signal: AbortSignal) => Promise<Fields>;

function commandOf(event: string, entry: Entry, place: Place): Command {
  const { bash, command = bash, powershell, cwd = ".", env, timeoutSec = 30 } = entry;
  const line = command ?? powershell;
  if (line === undefined) throw refusal(event, "expected `bash`, what the shell runs");
  const hook = { type: "command", command: line, shell: command === undefined ? "powershell" : undefined } as const;
  const at = { cwd: cwd.startsWith("/") ? cwd : `${place.cwd}/${cwd}`, env: { ...place.env, ...env } };
  const pattern = new RegExp(wholly(entry));

  return async (told, signal) => {
    if (typeof told.toolName === "string" && !pattern.test(told.toolName)) return {};
    const { exited, kill } = start(hook, `${JSON.stringify(told)}\n`, at, signal);
    let late: Error | undefined;
    const timer = startTimer(() => {
      late = new DOMException(`Not done after ${timeoutSec * 1_000} ms`, "TimeoutError");
      kill();
    }, timeoutSec * 1_000);
    const { code, stdout, stderr } = await exited.finally(() => clearTimeout(timer));
    if (late) throw late;
    if (code === 0) {
      const { said, broken } = readIn(stdout.trim());
      if (broken) throw failure(broken, line);
      return { ...said };
    }
    if (event === "preToolUse") {
      return { permissionDecision: "deny", permissionDecisionReason: `hook exited with code ${code}` };
    }
    throw failure(`exit code ${code}. ${stderr.trim()}`, line);
  };
}

/** Asks commands one after another, until one denies; one that fails is left out. */
function handlerOf(event: string, commands: readonly Command[]) {
  return async (input: object, _: unknown, { signal, failed }: HookAsking): Promise<Fields> => {
    const { workingDirectory: _cwd, toolArgs, error, ...rest }: Fields = { ...input };
    const told = {
      ...rest,
      ...(toolArgs !== undefined && { toolArgs: JSON.stringify(toolArgs) }),
      ...(error !== undefined && { error: event === "errorOccurred" ? { name: "Error", message: error } : error }),
    };
    const said: Fields[] = [];
    for (const command of commands) {
      if (signal.aborted || said.some((one) => decisionOf(one) === "deny")) break;
      try {
        said.push(await command(told, signal));
      } catch (error) {
        failed(error);
      }
    }
    return merged(said);
  };
}

/** What commands say together: the strictest decision, all that is for the model, and of the rest the last. */
function merged(said: readonly Fields[]): Fields {
  const decision = ["deny", "ask", "allow"].find((each) => said.some((one) => decisionOf(one) === each));
  const { permissionDecisionReason } = said.find((one) => decisionOf(one) === decision) ?? {};
  const context = lines(said.map(({ additionalContext: text }) => typeof text === "string" ? text : undefined));
  return {
    ...Object.assign({}, ...said),
    ...(decision && { permissionDecision: decision, permissionDecisionReason }),
    ...(context && { additionalContext: context }),
  };
}

/** What a command decides, however it is capitalized. */
function decisionOf({ permissionDecision: said }: Fields): unknown {
  return typeof said === "string" ? said.trim().toLowerCase() : said;
}
