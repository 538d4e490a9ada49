/**
 * Runs hooks that were written for PicoClaw.
 *
 * @module
 */
import type { Middleware, Model } from "../../../mod.ts";
import { aboutOf, type WireVersion } from "./about.ts";
import { chainOf, type Warn } from "./chain.ts";
import { configOf, type Process, type RpcHooksConfig } from "./config.ts";
import { heard } from "./heard.ts";
import { type Hooks, noting } from "./hooks.ts";
import { type Fetch, httpWire } from "./http.ts";
import { llm } from "./llm.ts";
import { type Builtin, type Mounted, mountedBy } from "./mounted.ts";
import { observersOf } from "./observers.ts";
import { tool } from "./tool.ts";
import { inTime, type OpenWire, type Wire } from "./wire.ts";

export type { About, AfterLlm, AfterTool, BeforeLlm, BeforeTool, Meta, WireVersion } from "./about.ts";
export type { BuiltinConfig, HookConfig, ProcessConfig, RpcHooksConfig, RpcTimeouts } from "./config.ts";
export type { Fetch } from "./http.ts";
export type { WireCall, WireMessage, WireTool } from "./message.ts";
export type { Builtin, BuiltinOptions } from "./mounted.ts";
export type { WireResponse, WireUsage } from "./response.ts";
export type { WireResult } from "./result.ts";
export type { OpenWire, Program, RpcMessage, Wire } from "./wire.ts";

/** How hooks are reached, and how they are told. */
export interface RpcHooksOptions {
  /** Starts those that are processes: `stdio`, where there are processes. Default: nothing does, and one that asks for it cannot be used. */
  readonly stdio?: OpenWire;
  /** Posts to those behind a URL. Default: the platform's. */
  readonly fetch?: Fetch;
  /** Makes those of this process, by the name under which they are in the configuration. Default: there are none. */
  readonly builtins?: Readonly<Record<string, (config: unknown) => Builtin>>;
  /**
   * How messages are spelled. "brief": as the protocol's document and its version have them. "head": as later versions do, where events have another form, and
   * neither what the model is told of its task nor its tools can be changed. Default: "brief".
   */
  readonly wire?: WireVersion;
  /** What hooks are told that the conversation is held on. Default: "jizai". */
  readonly channel?: string;
  /** The model of a name, where hooks may choose another. Default: there is none but the one that they are told of. */
  readonly models?: (name: string) => Model | undefined;
  /** Whether approvers are asked about calls that a hook has answered. Default: false, as the protocol has it: a hook that responds is trusted. */
  readonly approveResponses?: boolean;
}

/** The middleware, which is to be left where its processes should end before the program does. */
export type RpcHooks = Middleware & AsyncDisposable;

/**
 * Runs hooks of PicoClaw, unchanged: processes that are started for them, URLs to which every message is posted, and objects in this process.
 *
 * `config` is what PicoClaw has under `hooks`. Hooks of this process are asked before others, then those of lower priority, then by name; each is asked about
 * what those before it have made of it. One that fails, takes too long or says what is no answer is passed over, and whoever watches is warned; an approver
 * denies then. Who observes is told later: at most 64 events wait, others are told to nobody, and of a failure the operator alone hears. Agents beneath have the hooks too.
 *
 * A hook that responds to a call has it neither made nor approved by other hooks of this kind; every other guard is asked about it all the same. An approval
 * objects to nothing; it answers no question that a guard or a tool has for a person. Of a run that hooks end, `abort_turn` keeps what was said, as "failed",
 * and `hard_abort` keeps nothing, as "cancelled". Calls of one response go through `before_tool` one after another, run at the same time, and come back through
 * `after_tool` one after another.
 *
 * Hooks are started by the first run, and every run fails where one of them does not answer to `hook.hello` within 30 seconds, or as many as it may take for
 * other answers.
 *
 * Throws a `TypeError` where the configuration is none, or asks for what there is not.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { type Builtin, rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const gate: Builtin = {
 *   before_tool: ({ arguments: { command } }) =>
 *     String(command).includes("rm -rf") ? { action: "deny_tool", reason: "Dangerous" } : { action: "continue" },
 * };
 * const bash = tool({
 *   name: "bash",
 *   description: "Runs a command",
 *   input: z.object({ command: z.string() }),
 *   execute: ({ command }) => `ran ${command}`,
 * });
 * const config = { builtins: { gate: { enabled: true } } };
 * const assistant = agent({
 *   model: scripted({ calls: [["bash", { command: "rm -rf /" }], ["bash", { command: "ls" }]] }, "Done."),
 *   tools: [bash],
 *   use: [rpc_hooks(config, { builtins: { gate: () => gate } })],
 * });
 *
 * const { messages } = await assistant.run("Clean up").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status }) => status), ["denied", "ok"]);
 * ```
 */
export function rpc_hooks(
  config: RpcHooksConfig | { readonly hooks: RpcHooksConfig },
  options: RpcHooksOptions = {},
): RpcHooks {
  const { wire = "brief", channel = "jizai", models = () => undefined, approveResponses = false } = options;
  const read = configOf(config);
  const { observer_timeout_ms, interceptor_timeout_ms: interceptor, approval_timeout_ms: approval } = read.defaults;
  const mounted = mountedBy(read, sourcesOf(options));
  const observers = observersOf(mounted, { wire, channel, timeout: observer_timeout_ms });
  const hooks: Hooks = {
    wire,
    channel,
    models,
    approveResponses,
    warn,
    observers,
    chain: chainOf(mounted, { timeouts: { interceptor, approval }, observers, warn }),
    notes: noting(),
    about: (ctx, iteration, path) => aboutOf(ctx, iteration, path, { wire, channel }),
  };
  const never = new AbortController().signal;
  let started: Promise<void> | undefined;

  async function leave(): Promise<void> {
    await Promise.all(mounted.map((hook) => hook.stop()));
  }

  async function start(hook: Mounted): Promise<void> {
    try {
      await inTime(Math.max(interceptor, beginning), never, (signal) => hook.start(signal));
    } catch (error) {
      throw new Error(`Cannot start the hook "${hook.name}"`, { cause: error });
    }
  }

  async function startAll(): Promise<void> {
    const all = await Promise.allSettled(mounted.map(start)); // so that none is left behind
    const failed = all.find((each) => each.status === "rejected");
    if (!failed) return;
    await leave();
    throw failed.reason;
  }

  return {
    name: "rpc_hooks",
    inherit: true,
    ...(mounted.length > 0 && { ...heard(hooks, () => started ??= startAll()), ...llm(hooks), ...tool(hooks) }),
    async [Symbol.asyncDispose]() {
      await started?.catch(() => {}); // every run was told
      await leave();
    },
  };
}

/** The least milliseconds that a hook has to answer to `hook.hello`: it may have to be started first. */
const beginning = 30_000;

const warn: Warn = ({ run, emit }, { hook, why, point, error }) => {
  const id = error === undefined ? undefined : run.report(error);
  emit({
    type: "warning",
    code: "hook.failed",
    message: `The hook "${hook}" ${why}.`,
    middleware: "rpc_hooks",
    point,
    ...(id !== undefined && { error: id }),
  });
};

function sourcesOf({ stdio, fetch: send = fetch, builtins = {} }: RpcHooksOptions) {
  return {
    builtin(name: string, config: unknown): Builtin {
      const make = builtins[name];
      if (!make) throw new TypeError("there is no builtin of this name");
      return make(config);
    },
    open(process: Process): () => Wire {
      if (process.transport === "http") return httpWire(process, send);
      if (!stdio) throw new TypeError("nothing starts processes here; hand `stdio` over");
      if (process.command.length === 0) throw new TypeError("it has no command");
      return () => stdio(process);
    },
  };
}
