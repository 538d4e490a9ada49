/**
 * The configuration, as PicoClaw has it under `hooks`.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import { type Kind, kindsOf } from "./kinds.ts";
import { isObject, struct } from "./struct.ts";

/** What a hook is asked about. */
export type Stage = "before_llm" | "after_llm" | "before_tool" | "after_tool" | "approve_tool";

/** What a hook can be there for, as it is told in its handshake. */
export type Mode = "observe" | "llm" | "tool" | "approve";

/** How long hooks may take, in milliseconds. What is not more than 0 counts as not said. */
export interface RpcTimeouts {
  /** To hear of an event. Default: 500. */
  readonly observer_timeout_ms?: number;
  /** To answer before and after the model and a tool; one that takes longer is passed over. Default: 5,000. */
  readonly interceptor_timeout_ms?: number;
  /** To approve a call; one that takes longer denies. Default: 60,000. */
  readonly approval_timeout_ms?: number;
}

/** What is said of any hook. */
export interface HookConfig {
  /** Whether it is used. Default: false. */
  readonly enabled?: boolean;
  /** The lower, the sooner it is asked; those of the same in the order of their names. Default: 0. */
  readonly priority?: number;
}

/** A hook in this process. */
export interface BuiltinConfig extends HookConfig {
  /** What its maker is given. */
  readonly config?: unknown;
}

/** A hook in a process of its own, or behind a URL. */
export interface ProcessConfig extends HookConfig {
  /** How it is reached. Default: "stdio". */
  readonly transport?: "stdio" | "http";
  /** Over stdio: the program, and what it is given. */
  readonly command?: readonly string[];
  /** Over stdio: where it runs. Default: where this process does. */
  readonly dir?: string;
  /** Over stdio: variables of its environment, beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Over HTTP: where every message is posted to. */
  readonly url?: string;
  /** Over HTTP: headers that are sent along. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The events it is told of: `tool_exec_start`, `agent.tool.exec_start`, ...; `*`, `all` or an empty text for every one. Default: none. */
  readonly observe?: readonly string[];
  /** What it is asked about. One of `before_llm` and `after_llm` stands for both, and so does one of `before_tool` and `after_tool`. Default: nothing. */
  readonly intercept?: readonly string[];
}

/** Hooks, and how long they may take. */
export interface RpcHooksConfig {
  /** Whether any are used. Default: true. */
  readonly enabled?: boolean;
  /** How long they may take. */
  readonly defaults?: RpcTimeouts;
  /** Hooks in this process, by the name of their maker. */
  readonly builtins?: Readonly<Record<string, BuiltinConfig>>;
  /** Hooks elsewhere, by their name. One takes the place of a builtin of the same name. */
  readonly processes?: Readonly<Record<string, ProcessConfig>>;
}

const common = { enabled: z.boolean().default(false), priority: z.number().default(0) };
const texts = z.array(z.string()).default([]);
const time = (ms: number) => z.number().default(ms).transform((given) => given > 0 ? given : ms);

const shape = struct({
  enabled: z.boolean().default(true),
  defaults: struct({
    observer_timeout_ms: time(500),
    interceptor_timeout_ms: time(5_000),
    approval_timeout_ms: time(60_000),
  }).prefault({}),
  builtins: z.record(z.string(), struct({ ...common, config: z.unknown().optional() })).default({}),
  processes: z.record(
    z.string(),
    struct({
      ...common,
      transport: z.enum(["stdio", "http", ""]).default("").transform((transport) => transport || "stdio"),
      command: texts,
      dir: z.string().optional(),
      env: z.record(z.string(), z.string()).default({}),
      url: z.string().optional(),
      headers: z.record(z.string(), z.string()).default({}),
      observe: texts,
      intercept: texts,
    }),
  ).default({}),
});

/** A configuration that was read. */
export type Config = z.output<typeof shape>;

/** A hook elsewhere, as it was read. */
export type Process = Config["processes"][string];

/** Reads a configuration; a whole one, with everything else beside `hooks`, too. Throws a `TypeError` where it is none. */
export function configOf(given: RpcHooksConfig | { readonly hooks: RpcHooksConfig }): Config {
  if (!isObject(given)) throw new TypeError("Cannot use hooks: expected an object, what PicoClaw has under `hooks`");
  const read = shape.safeParse("hooks" in given ? given.hooks : given);
  if (!read.success) throw new TypeError(`Cannot use hooks: ${describeIssues(read.error.issues)}`);
  return read.data;
}

const modes: Readonly<Record<string, Mode>> = {
  before_llm: "llm",
  after_llm: "llm",
  before_tool: "tool",
  after_tool: "tool",
  approve_tool: "approve",
};

/** What a hook elsewhere is there for. Throws a `TypeError` where that is nothing, or nothing that there is. */
export function dutiesOf(
  { observe, intercept }: Process,
): { readonly modes: ReadonlySet<Mode>; readonly kinds: ReadonlySet<Kind> } {
  const kinds = kindsOf(observe);
  const asked = intercept.filter((stage) => stage !== "").map((stage) => {
    const mode = modes[stage];
    if (!mode) throw new TypeError(`there is no "${stage}" to intercept`);
    return mode;
  });
  if (observe.length === 0 && asked.length === 0) throw new TypeError("it neither observes nor intercepts anything");
  return { kinds, modes: new Set([...observe.length > 0 ? ["observe" as const] : [], ...asked]) };
}
