/**
 * The command hooks of GitHub Copilot's command line and of its agent on GitHub.
 *
 * @module
 */
import * as z from "zod";
import type { HookOptions, SessionHooks } from "./hooks.ts";
import { foreignOutput, foreignText, type HookName, hookNames } from "./outputs.ts";
import { joinLines, maybe, parseJson } from "../kit/answers.ts";
import { commandError, expectDirectory, type Place, readJson, start } from "../kit/process.ts";
import {
  forEvent,
  invalidHooks,
  invalidPattern,
  isForNoTool,
  neverRun,
  noTool,
  parseHooks,
  patternOf,
  type SettingsFile,
} from "../kit/settings.ts";
import { withinTime } from "../../../src/core/kit.ts";

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

/** Hooks, and one sentence for each part of the settings that never runs. */
interface CopilotSettings {
  readonly hooks: SessionHooks;
  readonly silent: readonly string[];
}

/** Reads settings. Throws a `TypeError` if the hooks of an event are invalid. */
export function readCopilot({ hooks = {}, disableAllHooks = false }: SettingsFile, place: Place): CopilotSettings {
  const handlers: Partial<Record<HookName, ReturnType<typeof handlerOf>>> = {};
  const silent: string[] = [];
  for (const [event, eventEntries] of disableAllHooks ? [] : Object.entries(hooks)) {
    const name = hookNames.find((name) => name === `on${event.charAt(0).toUpperCase()}${event.slice(1)}`);
    const skip = (...problem: Problem) => silent.push(neverRun(event, ...problem));
    if (/^[A-Z]/.test(event)) skip('they are written for "claude"');
    else if (!name) skip("the event does not occur here");
    else {
      const entries = parseHooks(event, z.array(entry), eventEntries);
      const usable = entries.filter((entry) => {
        const problem = problemOf(event, entry);
        if (problem) skip(...problem);
        return problem === undefined;
      });
      handlers[name] = handlerOf(event, usable.map((entry) => commandOf(event, name, entry, place)));
    }
  }
  return { hooks: handlers as SessionHooks, silent }; // outputs of commands are validated like those of every handler
}

/** The reason why hooks never run, and the hooks of the event that it is about. Default: all of them. */
type Problem = readonly [reason: string, which?: string];

function problemOf(event: string, { type, matcher = ".*" }: Entry): Problem | undefined {
  if (type !== "command") return ['expected the type "command"', `the type "${type}"`];
  const which = `the matcher "${matcher}"`;
  if (!patternOf(wholeName(matcher))) return [invalidPattern, which];
  return /ToolUse|ToolCall/.test(event) && isForNoTool(matcher) ? [noTool, which] : undefined; // others ignore the matcher
}

function wholeName(matcher: string): string {
  return `^(?:${matcher})$`;
}

type Command = (input: Fields, signal: AbortSignal) => Promise<Fields>;

function commandOf(event: string, name: HookName, entry: Entry, place: Place): Command {
  const { bash, command = bash, powershell, cwd = ".", env, timeoutSec = 30, matcher = ".*" } = entry;
  const line = command ?? powershell;
  if (line === undefined) throw invalidHooks(event, "expected `bash`, a line for the shell");
  const hook = { command: line, shell: command === undefined ? "powershell" : undefined };
  const at = { cwd: cwd.startsWith("/") ? cwd : `${place.cwd}/${cwd}`, env: { ...place.env, ...env } };
  forEvent(event, () => expectDirectory(at.cwd));
  const pattern = new RegExp(wholeName(matcher));

  return async (input, signal) => {
    if (typeof input.toolName === "string" && !pattern.test(input.toolName)) return {};
    const run = (signal: AbortSignal) => start(hook, `${JSON.stringify(input)}\n`, at, signal).exited;
    const { code, stdout, stderr } = await withinTime(run, { ms: timeoutSec * 1_000, signal });
    const { json = {}, broken, denies } = decisionIn(name, stdout.trim());
    if (denies) return json;
    if (code === 0) {
      if (broken) throw commandError(broken, line);
      return json;
    }
    if (event === "preToolUse") {
      return { permissionDecision: "deny", permissionDecisionReason: `hook exited with code ${code}` };
    }
    throw commandError(`exit code ${code}. ${stderr.trim()}`, line);
  };
}

/** Reads an output. A denial in it counts in whatever form, also amid other text. */
function decisionIn(name: HookName, written: string) {
  const read = readJson(written, false, { wholeOutput: false });
  const { json = {} } = read;
  const found = foreignOutput(name, json) ??
    (parseJson(written) === undefined ? foreignText(name, written) : undefined);
  const denies = decisionOf(json) === "deny" || found?.type === "deny";
  if (!found || decisionOf(json) === "deny") return { ...read, denies };
  const { type: permissionDecision, reason: permissionDecisionReason } = found;
  return { ...read, json: { ...json, permissionDecision, permissionDecisionReason }, denies };
}

/** Runs commands in sequence, until one denies. A command that fails is skipped. */
function handlerOf(event: string, commands: readonly Command[]) {
  return async (input: object, _: unknown, { signal, onFailed }: HookOptions): Promise<Fields> => {
    const { workingDirectory: _cwd, toolArgs, error, ...rest }: Fields = { ...input };
    const sent = {
      ...rest,
      ...(toolArgs !== undefined && { toolArgs: JSON.stringify(toolArgs) }),
      ...(error !== undefined && { error: event === "errorOccurred" ? { name: "Error", message: error } : error }),
    };
    const outputs: Fields[] = [];
    for (const command of commands) {
      if (signal.aborted || outputs.some((output) => decisionOf(output) === "deny")) break;
      try {
        outputs.push(await command(sent, signal));
      } catch (error) {
        onFailed(error);
      }
    }
    return merged(outputs);
  };
}

/** Merges outputs: the strictest decision, all context, and the last value of every other field. */
function merged(outputs: readonly Fields[]): Fields {
  const decision = ["deny", "ask", "allow"].find((each) => outputs.some((output) => decisionOf(output) === each));
  const { permissionDecisionReason } = outputs.find((output) => decisionOf(output) === decision) ?? {};
  const context = outputs.map(({ additionalContext: text }) => typeof text === "string" ? text : undefined);
  const additionalContext = joinLines(context);
  return {
    ...Object.assign({}, ...outputs),
    ...(decision && { permissionDecision: decision, permissionDecisionReason }),
    ...(additionalContext && { additionalContext }),
  };
}

function decisionOf({ permissionDecision: decision }: Fields): unknown {
  return typeof decision === "string" ? decision.trim().toLowerCase() : decision;
}
