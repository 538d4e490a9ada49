/**
 * The configuration, as PicoClaw's configuration file has it under `hooks`.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import { isObject, objectOf } from "../kit/fields.ts";
import { type Kind, kindsOf } from "./wire/kinds.ts";
import { struct } from "./wire/struct.ts";

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
const time = (ms: number) => z.number().default(ms).transform((given) => given > 0 ? given : ms);

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
export function configOf(given: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): Config {
  const read = z.safeParse(shape, contentOf(given));
  if (!read.success) throw new TypeError(`Cannot use hooks: ${describeIssues(read.error.issues)}`);
  return read.data;
}

function contentOf(given: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): unknown {
  if (!isObject(given)) throw new TypeError("Cannot use hooks: expected an object, what PicoClaw has under `hooks`");
  return "hooks" in given ? given.hooks : given;
}

/** Returns the unknown fields of a configuration, which PicoClaw ignores: one may be a misspelt hook. */
export function ignoredFields(given: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): string[] {
  const content = objectOf(contentOf(given));
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

function unknownIn(given: unknown, known: object, path: string): string[] {
  const names = Object.keys(known).map((name) => name.toLowerCase());
  return Object.keys(objectOf(given)).filter((name) => !names.includes(name.toLowerCase())).map((name) => path + name);
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
