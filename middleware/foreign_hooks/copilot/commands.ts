/**
 * The command hooks of GitHub Copilot's command line and of its agent on GitHub.
 *
 * @module
 */
import * as z from "zod";
import type { HookOptions, SessionHooks } from "./hooks.ts";
import { foreignOutput, foreignText, type HookName, hookNames } from "./outputs.ts";
import { joinLines, maybe, objectOf, parseJson } from "../kit/answers.ts";
import { commandError, expectDirectory, type Place, readJson, start } from "../kit/process.ts";
import {
  forEvent,
  invalidPattern,
  isForNoTool,
  neverRun,
  noTool,
  parseHooks,
  patternOf,
  type SettingsFile,
} from "../kit/settings.ts";
import { withinTime } from "../../../src/core/kit.ts";

const shared = {
  timeoutSec: maybe(z.number().positive()),
  timeout: maybe(z.number().positive()),
  matcher: maybe(z.string()),
};
const texts = z.record(z.string(), z.string());
const entry = z.object({
  type: z.string().default("command"),
  bash: maybe(z.string()),
  command: maybe(z.string()),
  powershell: maybe(z.string()),
  exec: maybe(z.string()),
  args: maybe(z.array(z.string())),
  cwd: maybe(z.string()),
  env: maybe(texts),
  url: maybe(z.string()),
  headers: maybe(texts),
  allowedEnvVars: maybe(z.array(z.string())),
  prompt: maybe(z.string()),
  ...shared,
});
/** Entries. Files that are written for Claude Code contain lists of entries with a matcher. */
const entries = z.array(z.unknown()).transform((all) =>
  all.flatMap((each) => {
    const { hooks, ...rest } = objectOf(each);
    return Array.isArray(hooks) ? hooks.map((hook) => ({ ...rest, ...objectOf(hook) })) : [each];
  })
).pipe(z.array(entry));
type Entry = z.output<typeof entry>;
type Fields = Readonly<Record<string, unknown>>;

/** Returns a function that posts JSON to the address of an entry. Throws a `TypeError` for an address that is not allowed. */
type Poster = (
  request: { readonly url: string; readonly headers?: Record<string, string>; readonly allowedEnvVars?: string[] },
) => (
  input: object,
  signal: AbortSignal,
) => Promise<{ readonly ok: boolean; readonly status: number; readonly text: string }>;

/** The surroundings of the handlers of a file. */
interface Surroundings extends Place {
  readonly poster: Poster;
}

/** Hooks, and one sentence for each part of the settings that never runs. */
interface CopilotSettings {
  readonly hooks: SessionHooks;
  readonly silent: readonly string[];
}

/** The events whose names with a capital letter differ. */
const renamed: { readonly [event: string]: HookName } = {
  UserPromptSubmit: "onUserPromptSubmitted",
  Stop: "onAgentStop",
};

/** An event of a settings file. */
interface FileEvent {
  /** Its name in the file. One with a capital letter has inputs as VS Code's, and matchers as Claude Code's. */
  readonly event: string;
  readonly name: HookName;
}

function eventOf(event: string): FileEvent | undefined {
  const name = renamed[event] ??
    hookNames.find((name) => name === `on${event.charAt(0).toUpperCase()}${event.slice(1)}`);
  return name && { event, name };
}

function isCapital({ event }: FileEvent): boolean {
  return /^[A-Z]/.test(event);
}

/** Reads settings. Throws a `TypeError` if the hooks of an event are invalid. */
export function readCopilot({ hooks = {}, disableAllHooks = false }: SettingsFile, at: Surroundings): CopilotSettings {
  const commands = new Map<HookName, Command[]>();
  const silent: string[] = [];
  for (const [eventName, eventEntries] of disableAllHooks ? [] : Object.entries(hooks)) {
    const event = eventOf(eventName);
    const skip = (...problem: Problem) => silent.push(neverRun(eventName, ...problem));
    if (!event) skip("the event does not occur here");
    else {
      const usable = parseHooks(eventName, entries, eventEntries).filter((entry) => {
        const problem = problemOf(event, entry);
        if (problem) skip(...problem);
        return problem === undefined;
      });
      const created = usable.map((entry) => forEvent(eventName, () => commandOf(event, entry, at)));
      commands.set(event.name, [...commands.get(event.name) ?? [], ...created]);
    }
  }
  const handlers = Object.fromEntries(Array.from(commands, ([name, all]) => [name, handlerOf(name, all)]));
  return { hooks: handlers as SessionHooks, silent }; // outputs of commands are validated like those of every handler
}

/** The reason why hooks never run, and the hooks of the event that it is about. Default: all of them. */
type Problem = readonly [reason: string, which?: string];

function problemOf(event: FileEvent, { type, matcher = ".*" }: Entry): Problem | undefined {
  if (type === "prompt" && event.name !== "onSessionStart") return ["it is for sessionStart", `the type "prompt"`];
  if (!["command", "http", "prompt"].includes(type)) return ["it is unknown", `the type "${type}"`];
  const which = `the matcher "${matcher}"`;
  if (hasClaudeMatcher(event) && /^(?:\*{0,2}|[\w|-]+)$/.test(matcher)) return undefined;
  if (!patternOf(wholeName(matcher))) return [invalidPattern, which];
  const isForTools = /ToolUse|ToolCall|PermissionRequest/.test(event.name);
  return isForTools && isForNoTool(matcher) ? [noTool, which] : undefined; // others ignore the matcher, or match another value
}

function wholeName(matcher: string): string {
  return `^(?:${matcher})$`;
}

// Matchers, and the names of tools in Claude Code.

/** The names of tools in Claude Code. */
const claudeNames: { readonly [tool: string]: string } = {
  ...{ bash: "Bash", powershell: "Bash", view: "Read", create: "Write", edit: "Edit", str_replace_editor: "Edit" },
  ...{ apply_patch: "Edit", grep: "Grep", rg: "Grep", glob: "Glob", web_fetch: "WebFetch", web_search: "WebSearch" },
  ...{ ask_user: "AskUserQuestion", update_todo: "TodoWrite", task: "Agent" },
};

function claudeName(tool: string): string {
  return Object.hasOwn(claudeNames, tool) ? claudeNames[tool]! : tool; // it has its own
}

/** Whether the matchers of an event are those of Claude Code. */
function hasClaudeMatcher(event: FileEvent): boolean {
  return isCapital(event) && ["onPreToolUse", "onPermissionRequest"].includes(event.name);
}

/** Returns a function that tests the input of an event against a matcher. Events without a value match every hook. */
function matching(event: FileEvent, matcher: string | undefined): (input: Fields) => boolean {
  if (matcher === undefined) return () => true;
  const isClaude = hasClaudeMatcher(event);
  if (isClaude && /^\*{0,2}$/.test(matcher)) return () => true;
  const names = isClaude && /^[\w|-]+$/.test(matcher) ? matcher.split("|") : undefined;
  const pattern = new RegExp(wholeName(matcher));
  return (input) => {
    const value = valueOf(event.name, input);
    if (value === undefined) return true;
    const shown = isClaude ? claudeName(value) : value;
    if (names) return [value, shown, ...value === "task" ? ["Task"] : []].some((name) => names.includes(name));
    return pattern.test(shown);
  };
}

/** Returns the value in an input that matchers test. */
function valueOf(
  name: HookName,
  { toolName, trigger, agentName, notification_type: kind }: Fields,
): string | undefined {
  const value = toolName ?? kind ??
    (name === "onPreCompact" ? trigger : name === "onSubagentStart" ? agentName : undefined);
  return typeof value === "string" ? value : undefined;
}

// Inputs, as settings files of the home system expect them.

/** Returns the input of an event. One with a capital letter has names with underscores, the tool's name in Claude Code, and its arguments as they are. */
function inputOf(event: FileEvent, fields: Fields): Fields {
  const { workingDirectory: _, toolArgs, error, stopHookActive, ...rest } = fields;
  const sent: Fields = {
    ...rest,
    ...(error !== undefined && { error: event.name === "onErrorOccurred" ? { name: "Error", message: error } : error }),
    ...(stopHookActive !== undefined && { stop_hook_active: stopHookActive }),
  };
  if (!isCapital(event)) return { ...sent, ...(toolArgs !== undefined && { toolArgs: JSON.stringify(toolArgs) }) };
  const { timestamp, toolName, response, ...others } = sent;
  const isClaude = hasClaudeMatcher(event);
  return {
    hook_event_name: event.event,
    ...underscored(others),
    timestamp: new Date(Number(timestamp)).toISOString(),
    ...(typeof toolName === "string" && { tool_name: isClaude ? claudeName(toolName) : toolName }),
    ...(toolArgs !== undefined && { tool_input: toolArgs }),
    ...(fields.toolInput !== undefined && { tool_input: fields.toolInput }),
    ...(response !== undefined && { last_assistant_message: response }),
  };
}

/** Renames the fields of an object, and of its result. Values of others stay as they are. */
function underscored(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return [key, name === "toolResult" ? underscored(objectOf(value)) : value];
    }),
  );
}

// Handlers: a command, a request or a prompt.

/** Answers an event with the fields of an output. */
type Command = (input: Fields, options: HookOptions) => Promise<Fields>;

function commandOf(event: FileEvent, entry: Entry, at: Surroundings): Command {
  const { timeoutSec = entry.timeout ?? 30 } = entry;
  const answer = entry.type === "http"
    ? requestOf(event, entry, at)
    : entry.type === "prompt"
    ? promptOf(entry)
    : processOf(event, entry, at);
  const matches = matching(event, entry.matcher);
  return async (input, options) => {
    if (!matches(input)) return {};
    const run = (signal: AbortSignal) => answer(inputOf(event, input), { ...options, signal });
    return await withinTime(run, { ms: timeoutSec * 1_000, signal: options.signal });
  };
}

/** Adds the text of a prompt handler before the prompt of a new session. */
function promptOf({ prompt }: Entry): Command {
  if (!prompt) throw new TypeError("expected `prompt`, a text");
  return ({ source }) => Promise.resolve(source === "resume" ? {} : { additionalContext: prompt });
}

function requestOf(
  { name }: FileEvent,
  { url = "", headers, allowedEnvVars }: Entry,
  { poster }: Surroundings,
): Command {
  const isGranting = name === "onPreToolUse" || name === "onPermissionRequest"; // its answer may grant a permission
  if (!url.startsWith("https://") && (isGranting || allowedEnvVars)) {
    throw new TypeError(`expected a URL with https://, got "${url}"`);
  }
  const post = poster({ url, ...(headers && { headers }), ...(allowedEnvVars && { allowedEnvVars }) });
  return async (input, { signal }) => {
    const { ok, status, text } = await post(input, signal);
    const { json = {}, broken, denies } = decisionIn(name, text.trim());
    if (denies) return json;
    if (!ok || broken) throw commandError(broken ?? `status ${status}`, url);
    return json;
  };
}

function processOf({ name }: FileEvent, entry: Entry, place: Place): Command {
  const { exec, args = [], bash, command, powershell, cwd = ".", env } = entry;
  const line = exec ?? bash ?? command ?? powershell;
  if (line === undefined) throw new TypeError("expected `bash`, a line for the shell, or `exec`, a program");
  if (exec !== undefined && (bash ?? command ?? powershell) !== undefined) {
    throw new TypeError("expected `exec` without `bash`, `command` and `powershell`");
  }
  const isPowershell = line === powershell && (exec ?? bash ?? command) === undefined;
  const program = exec === undefined
    ? { command: line, shell: isPowershell ? "powershell" : undefined }
    : { command: exec, args };
  const at = { cwd: cwd.startsWith("/") ? cwd : `${place.cwd}/${cwd}`, env: { ...place.env, ...env } };
  expectDirectory(at.cwd);

  return async (input, { signal, onProgress }) => {
    const progress = progressOf(onProgress);
    const running = start({ ...program, onOutput: progress.read }, `${JSON.stringify(input)}\n`, at, signal);
    const { code, stdout, stderr } = await running.exited;
    const written = progress.rest(stdout);
    const { json = {}, broken, denies } = decisionIn(name, written);
    if (code === 2 && name === "onPermissionRequest") return { ...json, behavior: "deny" };
    if (denies) return json;
    if (code === 0) {
      if (broken) throw commandError(broken, line);
      return json;
    }
    if (name === "onPreToolUse") {
      const { permissionDecisionReason: reason = `hook exited with code ${code}` } = code === 2 ? json : {};
      return { permissionDecision: "deny", permissionDecisionReason: reason };
    }
    if (code !== 2) throw commandError(`exit code ${code}. ${stderr.trim()}`, line);
    if (name === "onPostToolUseFailure") return { additionalContext: joinLines([stderr.trim(), written]) ?? "" };
    if (stderr.trim() !== "") onProgress(stderr.trim()); // a warning for the person
    return {};
  };
}

/** Reads the progress lines of a command: lines that are one JSON object of the type "progress". */
function progressOf(onProgress: HookOptions["onProgress"]) {
  let end = 0;
  const messageIn = (line: string) => {
    const { type, message, temporary } = objectOf(line.trim().startsWith("{") ? parseJson(line.trim()) : undefined);
    return type === "progress" && typeof message === "string" ? { message, temporary: temporary === true } : undefined;
  };
  return {
    /** Reports the progress in the complete lines that the output has gained. */
    read(output: string): void {
      const complete = output.lastIndexOf("\n") + 1;
      for (const line of output.slice(end, Math.max(end, complete)).split("\n")) {
        const found = messageIn(line);
        if (found) onProgress(found.message, found.temporary);
      }
      end = Math.max(end, complete);
    },
    /** Returns the output without these lines. */
    rest: (output: string): string => output.split("\n").filter((line) => !messageIn(line)).join("\n").trim(),
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
function handlerOf(name: HookName, commands: readonly Command[]) {
  return async (input: object, _: unknown, options: HookOptions): Promise<Fields> => {
    const outputs: Fields[] = [];
    for (const command of commands) {
      if (options.signal.aborted || outputs.some((output) => decisionOf(output) === "deny")) break;
      try {
        outputs.push(await command({ ...input }, options));
      } catch (error) {
        options.onFailed(error);
      }
    }
    return merged(name, outputs);
  };
}

/** The most bytes of the context of a successful call. */
const maxContext = 10_240;

/** Merges outputs: the strictest decision, also about a permission, all context, and the last value of every other field. */
function merged(name: HookName, outputs: readonly Fields[]): Fields {
  const decision = ["deny", "ask", "allow"].find((each) => outputs.some((output) => decisionOf(output) === each));
  const { permissionDecisionReason } = outputs.find((output) => decisionOf(output) === decision) ?? {};
  const contexts = outputs.map(({ additionalContext: text }) => typeof text === "string" ? text : undefined);
  const additionalContext = name === "onPostToolUse"
    ? beginningOf(contexts.filter((text) => text).join("\n\n"), maxContext)
    : joinLines(contexts);
  return {
    ...Object.assign({}, ...outputs, outputs.find(({ behavior }) => behavior === "deny")),
    ...(decision && { permissionDecision: decision, permissionDecisionReason }),
    ...(additionalContext && { additionalContext }),
  };
}

/** Returns the beginning of a text, of at most `bytes` bytes in UTF-8. */
function beginningOf(text: string, bytes: number): string {
  const encoded = new TextEncoder().encode(text);
  return encoded.length <= bytes ? text : new TextDecoder().decode(encoded.subarray(0, bytes), { stream: true });
}

function decisionOf({ permissionDecision: decision }: Fields): unknown {
  return typeof decision === "string" ? decision.trim().toLowerCase() : decision;
}
