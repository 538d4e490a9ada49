/**
 * The configuration, as PicoClaw's configuration file has it under `hooks`, and the ports through which hooks outside this process are reached.
 *
 * @module
 */
import * as z from "zod";
import { type Kind, kindsOf } from "./wire/input.ts";
import { struct } from "./wire/message.ts";
import { objectOf } from "../kit/answers.ts";
import { describeIssues, isObject, readText } from "../../../src/core/kit.ts";

// The port through which hooks outside this process are reached: JSON-RPC.

/** A message of JSON-RPC. With an `id` it is a request. */
export interface RpcMessage {
  /** The version. */
  readonly jsonrpc: "2.0";
  /** The id of the request. */
  readonly id?: number;
  /** The method: `hook.before_tool`, `hook.event`, ... */
  readonly method: string;
  /** Its params. */
  readonly params: unknown;
}

/** A connection to one hook. */
export interface Wire extends AsyncDisposable {
  /** Sends a request and returns the message that answers it. Rejects without an answer, or if `signal` aborts. */
  ask(request: RpcMessage & { readonly id: number }, signal: AbortSignal): Promise<unknown>;
  /** Sends a notification. */
  notify(message: RpcMessage, signal: AbortSignal): Promise<void>;
}

/** A program that is a hook. */
export interface Program {
  /** Its name and its arguments. */
  readonly command: readonly string[];
  /** Its working directory. Default: that of this process. */
  readonly dir?: string | undefined;
  /** Variables in addition to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program and connects to it. Throws if it cannot. */
export type OpenWire = (program: Program) => Wire;

/** The most bytes of one message. */
export const mostBytes = 1_048_576;

/** The reason in an error: a text, or an object with a message. */
const failure = z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)])
  .catch("no reason");
/** An answer. Its `id` may be a string. A message with a `method` and without a result is a request of the hook, which is ignored. */
const reply = z.object({
  id: z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]),
  method: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
}).refine(({ method, result, error }) => method === undefined || result !== undefined || error !== undefined);

/** Returns the result in an answer. Throws if the message is not an answer, or contains an error. */
export function resultOf(answer: unknown): unknown {
  const { result, error } = reply.parse(answer);
  if (error !== undefined && error !== null) throw new Error(failure.parse(error));
  return result;
}

/** Returns the id of the request that a message answers; undefined if it is not an answer. */
export function answeredBy(message: unknown): number | undefined {
  const { success, data } = reply.safeParse(message);
  return success ? data.id : undefined;
}

// The configuration as PicoClaw has it under `hooks`, its schema, and the defaults that replace absent values.

/** A stage at which hooks are asked. */
export type Stage = "before_llm" | "after_llm" | "before_tool" | "after_tool" | "approve_tool";

/** A mode of a hook, as its handshake names it. */
export type Mode = "observe" | "llm" | "tool" | "approve";

/** The timeouts of hooks, in milliseconds. A value of 0 or less means the default. */
export interface RpcTimeouts {
  /** For an event. Default: 500. */
  readonly observer_timeout_ms?: number;
  /** For a reply around the model and a tool; a late hook is skipped. Default: 5,000. */
  readonly interceptor_timeout_ms?: number;
  /** For an approval; a late hook denies. Default: 60,000. */
  readonly approval_timeout_ms?: number;
}

/** The options that all hooks have. */
export interface HookConfig {
  /** Whether it is used. Default: false. */
  readonly enabled?: boolean;
  /** Hooks of lower priority are asked first; equal ones in the order of their names. Default: 0. */
  readonly priority?: number;
}

/** A hook in this process. */
export interface BuiltinConfig extends HookConfig {
  /** The argument of the function that creates it. */
  readonly config?: unknown;
}

/** A hook in its own process, or behind a URL. */
export interface ProcessConfig extends HookConfig {
  /** The transport. Default: "stdio". */
  readonly transport?: "stdio" | "http";
  /** stdio: the program and its arguments. */
  readonly command?: readonly string[];
  /** stdio: its working directory. Default: that of this process. */
  readonly dir?: string;
  /** stdio: variables in addition to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** http: the URL. */
  readonly url?: string;
  /** http: headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The events that it observes: `tool_exec_start`, `agent.tool.exec_start`, ...; `*`, `all` or an empty string for all. Default: none. */
  readonly observe?: readonly string[];
  /** The stages at which it is asked. One of `before_llm` and `after_llm` means both, and so does one of `before_tool` and `after_tool`. Default: none. */
  readonly intercept?: readonly string[];
}

/** Hooks and their timeouts. */
export interface RpcHooksConfig {
  /** Whether hooks are used. Default: true. */
  readonly enabled?: boolean;
  /** The timeouts. */
  readonly defaults?: RpcTimeouts;
  /** Hooks in this process, by name. */
  readonly builtins?: Readonly<Record<string, BuiltinConfig>>;
  /** Hooks outside this process, by name. One replaces a builtin of the same name. */
  readonly processes?: Readonly<Record<string, ProcessConfig>>;
}

const common = { enabled: z.boolean().default(false), priority: z.number().default(0) };
const texts = z.array(z.string()).default([]);
const time = (ms: number) => z.number().default(ms).transform((value) => value > 0 ? value : ms);

const builtin = { ...common, config: z.unknown().optional() };
const process = {
  ...common,
  transport: z.enum(["stdio", "http", ""]).default("").transform((transport) => transport || "stdio"),
  command: texts,
  dir: z.string().optional(),
  env: z.record(z.string(), z.string()).default({}),
  url: z.string().optional(),
  headers: z.record(z.string(), z.string()).default({}),
  observe: texts,
  intercept: texts,
};
const timeouts = {
  observer_timeout_ms: time(500),
  interceptor_timeout_ms: time(5_000),
  approval_timeout_ms: time(60_000),
};
const config = {
  enabled: z.boolean().default(true),
  defaults: z.prefault(struct(timeouts), {}),
  builtins: z.record(z.string(), struct(builtin)).default({}),
  processes: z.record(z.string(), struct(process)).default({}),
};
const shape = struct(config);

/** A configuration that was read. */
export type Config = z.output<typeof shape>;

/** A hook outside this process, as it was read. */
export type Process = Config["processes"][string];

/** Reads a configuration, or a file that contains one under `hooks`. Throws a `TypeError` for an invalid one. */
export function configOf(config: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): Config {
  const read = z.safeParse(shape, contentOf(config));
  if (!read.success) throw new TypeError(`Cannot use hooks: ${describeIssues(read.error.issues)}`);
  return read.data;
}

function contentOf(config: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): unknown {
  if (!isObject(config)) throw new TypeError("Cannot use hooks: expected an object, what PicoClaw has under `hooks`");
  return "hooks" in config ? config.hooks : config;
}

/** Returns the unknown fields of a configuration, which PicoClaw ignores: one may be a misspelt hook. */
export function ignoredFields(hooksConfig: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): string[] {
  const content = objectOf(contentOf(hooksConfig));
  const below = Object.entries(content).flatMap(([field, value]) => {
    if (field.toLowerCase() === "defaults") return unknownIn(value, timeouts, `${field}.`);
    const known = entryFields.get(field.toLowerCase());
    if (!known) return [];
    return Object.entries(objectOf(value)).flatMap(([name, entry]) => unknownIn(entry, known, `${field}.${name}.`));
  });
  return [...unknownIn(content, config, ""), ...below];
}

const entryFields: ReadonlyMap<string, object> = new Map<string, object>([["builtins", builtin], [
  "processes",
  process,
]]);

function unknownIn(value: unknown, known: object, path: string): string[] {
  const names = Object.keys(known).map((name) => name.toLowerCase());
  return Object.keys(objectOf(value)).filter((name) => !names.includes(name.toLowerCase())).map((name) => path + name);
}

const modes: Readonly<Record<string, Mode>> = {
  before_llm: "llm",
  after_llm: "llm",
  before_tool: "tool",
  after_tool: "tool",
  approve_tool: "approve",
};

/** Returns the modes and the events of a hook. Throws a `TypeError` for an unknown one, or if there is none. */
export function dutiesOf(
  { observe, intercept }: Process,
): { readonly modes: ReadonlySet<Mode>; readonly kinds: ReadonlySet<Kind> } {
  const kinds = kindsOf(observe);
  const asked = intercept.filter((stage) => stage !== "").map((stage) => {
    const mode = modes[stage];
    if (!mode) throw new TypeError(`unknown stage "${stage}" in \`intercept\``);
    return mode;
  });
  if (observe.length === 0 && asked.length === 0) throw new TypeError("expected `observe` or `intercept`");
  return { kinds, modes: new Set([...observe.length > 0 ? ["observe" as const] : [], ...asked]) };
}

// Hooks behind a URL: every message is a POST request, and the body of the response is the answer.

const unread = "Cannot read the answer of the hook";

/** Sends a request. */
export type Fetch = (url: string, init: RequestInit) => Response | Promise<Response>;

/** Returns a function that connects to a URL. Throws a `TypeError` if the text is not a URL. */
export function httpWire({ url = "", headers }: Pick<Process, "url" | "headers">, fetch: Fetch): () => Wire {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new TypeError(`expected a URL with http:// or https://, got "${url}"`);
  }
  const sent = new Headers(headers);
  sent.set("content-type", "application/json");

  async function post(message: RpcMessage, signal: AbortSignal): Promise<Response> {
    const response = await fetch(url, { method: "POST", headers: sent, body: JSON.stringify(message), signal });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`Cannot post to the hook: status ${response.status}`);
  }

  return () => ({
    async ask(request, signal) {
      const answer: unknown = JSON.parse(
        await readText(await post(request, signal), { maxBytes: mostBytes, operation: unread }),
      );
      if (answeredBy(answer) !== request.id) throw new TypeError("Cannot ask the hook: its answer has another id");
      return answer;
    },
    async notify(message, signal) {
      await (await post(message, signal)).body?.cancel();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}
