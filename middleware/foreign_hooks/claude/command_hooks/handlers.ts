/**
 * The handlers of hooks: a command, an HTTP request, a model, an agent, or a tool of an MCP server.
 *
 * @module
 */
import * as z from "zod";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { denialOf, outputOf, type Speaker, specificOutput } from "./output.ts";
import type { CommandHook, HttpHook, McpToolHook, PromptHook } from "./settings.ts";
import type { Dialect } from "../dialect.ts";
import type { HookEvent, HookInput } from "../events.ts";
import { type BackgroundAnswer, laterAnswer } from "../outputs.ts";
import { parseJson } from "../../kit/answers.ts";
import { commandError, type Exited, expectDirectory, type Place, readJson, start } from "../../kit/process.ts";
import { agent, type Model } from "../../../../mod.ts";
import { expectNames, isObject, readText, startTimer, wildcard } from "../../../../src/core/kit.ts";

// The port that every type of handler implements.

/** Options of one call of a handler. */
interface HandlerOptions {
  readonly signal: AbortSignal;
  readonly dialect: Dialect;
}

/** Answers one event. Returns the output of a hook, and throws if it failed. */
export type Handler = (input: HookInput, options: HandlerOptions) => Promise<unknown>;

// `CLAUDE_ENV_FILE`: a shell script in which some commands write variables for the later commands of a session.

/** The events whose commands receive the variable. */
const writers: readonly HookEvent[] = ["SessionStart", "CwdChanged", "FileChanged"];

/** The variables of sessions, in this process. */
type Environments = ReturnType<typeof environmentsOf>;

/** The most sessions whose variables are kept. */
const mostSessions = 1_000;

const marker = "====";
const script = `test -e "$0" || exit 0; env -0; printf '${marker}\\0'; set -a; . "$0" >&2; env -0; rm -f "$0"`;

/** Creates the variables of sessions. Files are in `directory`. */
export function environmentsOf(directory: string) {
  const sessions = new Map<string, Record<string, string>>();
  return {
    /** Returns the variables of a command that is about to run, and a function that afterwards reads the file that it may write. */
    enter(session: string, event: HookEvent) {
      const known = sessions.get(session) ?? {};
      sessions.delete(session);
      sessions.set(session, known); // the newest
      const [oldest] = sessions.keys();
      if (sessions.size > mostSessions && oldest !== undefined) sessions.delete(oldest);
      if (!writers.includes(event)) return { env: known };
      const file = `${directory}/claude-env-${crypto.randomUUID()}`;
      return {
        env: { ...known, CLAUDE_ENV_FILE: file },
        async read(place: Place): Promise<void> {
          const never = new AbortController().signal;
          const { stdout } = await start({ command: "sh", args: ["-c", script, file] }, "", place, never).exited;
          Object.assign(known, exportedIn(stdout));
        },
      };
    },
  };
}

/** Returns the variables that differ after the script has run. */
function exportedIn(output: string): Record<string, string> {
  const [before = "", after = ""] = output.split(`${marker}\0`);
  const old = new Set(before.split("\0"));
  const changed = after.split("\0").filter((line) => line.includes("=") && !old.has(line));
  const entries = changed.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries(entries.filter(([name]) => name !== "_" && name !== "CLAUDE_ENV_FILE"));
}

// Handlers of type `command`: a process reads the input as JSON and answers with its exit code and its output.

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
    const effort = input.effort && { CLAUDE_EFFORT: input.effort.level };
    const at = { cwd: place.cwd, env: { ...place.env, ...session.env, ...effort } };
    const running = start(hook, `${JSON.stringify(input)}\n`, at, signal);
    const exited = running.exited.finally(() => session.read?.(at));
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

// Handlers of type `http`: the input is posted as JSON, and the body of the response is the output.

/** The addresses that handlers of type `http` may post to. */
export interface HttpHandlerOptions {
  /** The addresses, with `*` as a wildcard. Default: all. */
  readonly allow?: readonly string[];
  /** Whether private addresses and this machine are allowed. Default: false. */
  readonly privateAddresses?: boolean;
  /** Sends the request. Default: the platform's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
}

/** Throws a `TypeError` for options that would allow more addresses than they say. */
export function checkHttpOptions(options: HttpHandlerOptions): void {
  const subject = "Cannot create command_hooks(): `http`";
  expectNames(subject, options, ["allow", "privateAddresses", "fetch"]);
  const { allow = [], privateAddresses = false } = options;
  if (!Array.isArray(allow)) throw new TypeError(`${subject}: \`allow\` is ${allow}; expected a list of addresses`);
  if (typeof privateAddresses !== "boolean") {
    throw new TypeError(`${subject}: \`privateAddresses\` is ${privateAddresses}; expected true or false`);
  }
}

/** The most bytes of a response. */
const maxBytes = 1_000_000;

/** A request that a handler sends. */
type Posted = Pick<HttpHook, "url" | "headers" | "allowedEnvVars">;

/** The answer to such a request. */
interface PostAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly text: string;
}

/** Returns a function that posts JSON. `env` are the variables that headers may contain. Throws a `TypeError` for an address that is not allowed. */
export function poster(
  { url, headers = {}, allowedEnvVars = [] }: Posted,
  { allow, privateAddresses = false, fetch: send = fetch }: HttpHandlerOptions,
  env: Readonly<Record<string, string>>,
): (input: object, signal: AbortSignal) => Promise<PostAnswer> {
  const { hostname, protocol } = URL.parse(url) ?? {};
  if (hostname === undefined || !/^https?:$/.test(protocol ?? "")) {
    throw new TypeError(`expected a URL with http:// or https://, got "${url}"`);
  }
  if (allow && !allow.some((pattern) => wildcard(pattern)(url))) {
    throw new TypeError(`expected an address in the allow-list, got "${url}"`);
  }
  const host = hostname.replace(/^\[|\]$/g, "");
  if (!privateAddresses && isPrivate(host)) throw new TypeError(`expected a public address, got "${url}"`);
  const filled = (text: string) =>
    text.replace(/\$\{(\w+)\}|\$(\w+)/g, (_, braced, plain) => {
      const name = braced ?? plain;
      return allowedEnvVars.includes(name) ? env[name] ?? "" : "";
    });

  async function checkAddress(): Promise<void> {
    if (privateAddresses || isIP(host)) return;
    const addresses = await lookup(host, { all: true });
    if (addresses.some(({ address }) => isPrivate(address))) throw commandError("it is at a private address", url);
  }

  return async (input, signal) => {
    await checkAddress();
    const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, filled(value)]);
    const response = await send(url, {
      method: "POST",
      headers: [["content-type", "application/json"], ...sent],
      body: JSON.stringify(input),
      redirect: "error",
      signal,
    });
    const text = await readText(response, { maxBytes, operation: "Cannot read the answer of the hook" });
    return { ok: response.ok, status: response.status, text };
  };
}

/** Creates the handler. Throws a `TypeError` for an address that is not allowed. */
export function httpHandler(
  hook: HttpHook,
  options: HttpHandlerOptions,
  env: Readonly<Record<string, string>>,
): Handler {
  const post = poster(hook, options, env);
  return async (input, { signal, dialect }) => {
    const { ok, status, text: stdout } = await post(input, signal);
    const event = input.hook_event_name;
    if (ok) return outputOf({ code: 0, stdout, stderr: "" }, { event, dialect, name: hook.url });
    const denial = denialOf(event, parseJson(stdout));
    if (!denial) throw commandError(`status ${status}`, hook.url);
    return denial;
  };
}

/** Address ranges of private networks, of this machine, and of links, as prefixes of the text form. */
const privateRanges =
  /^(0|10|127)\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^::1?$|^f[cd]|^fe[89ab]/;

/** Whether a host is this machine or in a private network. */
function isPrivate(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (!isIP(name)) return /^(.*\.)?(localhost|local|internal)$/.test(name);
  const [, mapped] = name.match(/^::ffff:(.*)$/) ?? [];
  return mapped === undefined ? privateRanges.test(name) : !mapped.includes(".") || privateRanges.test(mapped);
}

// Handlers of type `prompt`, `agent` and `mcp_tool`: a model, an agent or a tool of an MCP server decides.

/** Calls tools of an MCP server: the `Client` of `@modelcontextprotocol/client`, or an object like it. */
export interface McpClient {
  /** Calls a tool. */
  callTool(
    call: { name: string; arguments: Record<string, unknown> },
    options?: { signal: AbortSignal },
  ): Promise<{ content?: unknown; isError?: unknown }>;
}

/** Decides about events: an agent made by `agent()`. */
export interface HookAgent {
  /** Runs the agent. */
  run(options: { prompt: string; signal: AbortSignal }): {
    readonly result: Promise<{ readonly status: string; readonly text: string }>;
  };
}

const instructions = 'Decide about an event. Answer with JSON alone: {"ok": true}, or {"ok": false, "reason": "..."}.';

/** Creates a handler of type `prompt`. */
export function promptHandler(hook: PromptHook, model: Model): Handler {
  return agentHandler(hook, agent({ name: "prompt_hook", model, instructions }));
}

/** Creates a handler of type `agent`. */
export function agentHandler({ prompt }: PromptHook, decider: HookAgent): Handler {
  return async (input, { signal }) => {
    const json = JSON.stringify(input);
    const text = prompt.includes("$ARGUMENTS") ? prompt.replaceAll("$ARGUMENTS", () => json) : `${prompt}\n\n${json}`;
    const { status, text: answer } = await decider.run({ prompt: text, signal }).result;
    if (status !== "done") throw commandError(`its run is ${status}`, prompt);
    const decision = parseJson(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1));
    if (!isObject(decision) || typeof decision.ok !== "boolean") {
      const denial = denialOf(input.hook_event_name, decision ?? answer);
      if (denial) return denial;
      throw commandError('expected JSON with a boolean "ok"', prompt);
    }
    return decision.ok ? undefined : { decision: "block", reason: String(decision.reason ?? "Blocked by a hook.") };
  };
}

/** Creates a handler of type `mcp_tool`. The text of the result is read like the output of a command. */
export function mcpToolHandler({ server, tool, input: template = {} }: McpToolHook, client: McpClient): Handler {
  const name = `${server} ${tool}`;
  return async (input, { signal, dialect }) => {
    const call = {
      name: tool,
      arguments: Object.fromEntries(Object.entries(template).map(([key, value]) => [key, fill(value, input)])),
    };
    const { content, isError } = await client.callTool(call, { signal });
    const parts = Array.isArray(content) ? content : [];
    const stdout = parts.map((part) => isObject(part) && typeof part.text === "string" ? part.text : "").join("");
    const denial = isError === true ? denialOf(input.hook_event_name, parseJson(stdout)) : undefined;
    if (denial) return denial;
    if (isError === true) throw commandError(`the tool failed: ${stdout}`, name);
    return outputOf({ code: 0, stdout, stderr: "" }, { event: input.hook_event_name, dialect, name });
  };
}

/** Replaces `${a.b}` in strings by the field `a.b` of the input. */
function fill(value: unknown, input: object): unknown {
  if (Array.isArray(value)) return value.map((each) => fill(each, input));
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fill(each, input)]));
  if (typeof value !== "string") return value;
  return value.replace(/\$\{([\w.]+)\}/g, (_, path: string) => {
    const found = path.split(".").reduce<unknown>((at, key) => isObject(at) ? at[key] : undefined, input);
    return typeof found === "string" ? found : JSON.stringify(found) ?? "";
  });
}
