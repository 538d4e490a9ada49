/**
 * Runs hooks that were written for PicoClaw.
 *
 * @module
 */
import { chainOf, type Hooks, notesOfRuns, type Warn } from "./chain.ts";
import {
  configOf,
  type Fetch,
  httpWire,
  ignoredFields,
  type OpenWire,
  type Process,
  type RpcHooksConfig,
  type Wire,
} from "./config.ts";
import { type Builtin, type Mounted, mountedBy, observersOf } from "./mounted.ts";
import { llmHook, runHooks, toolHooks } from "./points.ts";
import { aboutOf, type KindForm, type WireVersion } from "./wire/input.ts";
import { expectNoOption, warnFailed, warnSilent } from "../kit/adapter.ts";
import type { Middleware, Model } from "../../../mod.ts";
import { expectChoice, expectNames, Locks, withinTime } from "../../../src/core/kit.ts";

export type {
  BuiltinConfig,
  Fetch,
  HookConfig,
  OpenWire,
  ProcessConfig,
  Program,
  RpcHooksConfig,
  RpcMessage,
  RpcTimeouts,
  Wire,
} from "./config.ts";
export type { Builtin, BuiltinOptions } from "./mounted.ts";
export type {
  About,
  AfterLlm,
  AfterTool,
  BeforeLlm,
  BeforeTool,
  KindForm,
  Meta,
  TurnContext,
  WireVersion,
} from "./wire/input.ts";
export type { WireCall, WireMessage, WireResponse, WireResult, WireTool, WireUsage } from "./wire/message.ts";

/** Options of `rpc_hooks()`. */
export interface RpcHooksOptions {
  /** Starts hooks that are processes: `stdio`. Default: none, and a configuration with such hooks is refused. */
  readonly stdio?: OpenWire;
  /** Sends requests to hooks behind a URL. Default: the platform's `fetch`. */
  readonly fetch?: Fetch;
  /** Creates the hooks in this process, by their names in the configuration. Default: none. */
  readonly builtins?: Readonly<Record<string, (config: unknown) => Builtin>>;
  /**
   * The version of the wire: that of the document, or "head", in which events have another form and system messages and tools cannot be changed. Default:
   * "document".
   */
  readonly wire?: WireVersion;
  /** The form of the kinds of events: `tool_exec_start`, 8, or `agent.tool.exec_start`. Default: "names" in "document", "dotted" in "head". */
  readonly kinds?: KindForm;
  /** The channel of the conversation. Default: "jizai". */
  readonly channel?: string;
  /** Returns the model of a name that a hook chooses. Default: hooks cannot choose another model. */
  readonly models?: (name: string) => Model | undefined;
  /** Whether approvers are asked about calls that a hook has answered. Default: false, as in the protocol: a hook that responds is trusted. */
  readonly approveResponses?: boolean;
}

/** The middleware. Dispose it to end its processes before the program ends. */
export type RpcHooks = Middleware & AsyncDisposable;

/**
 * Runs hooks of PicoClaw, unchanged: processes, URLs, and objects in this process.
 *
 * `config` is the object under `hooks` in PicoClaw's configuration file. Hooks in this process are asked first, then hooks of lower priority, then by name;
 * each receives the changes of the hooks before it. A hook that fails, is late or returns an invalid reply is skipped, and a `warning` reports it; an
 * approver denies in that case. A denial in the form of another system, such as `{ decision: "block" }`, denies a call all the same, and so does a question,
 * because hooks cannot ask; a `warning` reports it, and unknown members of replies. Observers run later: at most 64 events wait, further ones are dropped, and failures go to `onError`. Subagents inherit the
 * hooks.
 *
 * If a hook responds to a call, the call neither runs nor is approved by other hooks of this kind; every other guard is still asked. An approval answers no
 * question of a guard or a tool. `abort_turn` ends the run as failed and keeps the messages; `hard_abort` ends it, and the
 * runs that it works for, as cancelled and removes them.
 *
 * A `warning` reports fields of the configuration that are unknown, and ignored as in PicoClaw.
 *
 * Hooks are started by the first run. Every run fails if one of them does not answer `hook.hello` within 30 seconds, or within the timeout of its replies if
 * that is longer.
 *
 * Differences from the home system:
 *
 * - The calls of one response run in parallel: all `before_tool` replies come before the first call, and all `after_tool` requests after the last one.
 * - A message that arrives during a batch skips no call of the batch; the model receives it afterwards.
 * - `media` of a result with `response_handled` becomes artifacts of the result: clients receive them as events, not through a channel.
 * - The events `session_summarize`, `follow_up_queued` and `subturn_orphan`, and those of channels, buses and gateways, never occur.
 * - "head": `mcp.server.connected` and `mcp.tool.discovered` occur once per run, before the first request with a tool named `mcp__server__tool`; `mcp.server.connecting` and `mcp.server.failed` when `mcp()` after it in `use` connects.
 * - "head": `context.route` and `context.scope` name one account and one rule, "default", and a conversation is a session.
 *
 * Throws a `TypeError` for an invalid configuration, or one that needs an option that is not given.
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
  const subject = "Cannot create rpc_hooks()";
  const known = ["stdio", "fetch", "builtins", "wire", "kinds", "channel", "models", "approveResponses"];
  expectNames(subject, options, known);
  const { wire = "document", channel = "jizai", models = () => undefined, approveResponses = false } = options;
  const { kinds = wire === "document" ? "names" : "dotted" } = options;
  expectChoice(subject, "wire", wire, ["document", "head"]);
  expectChoice(subject, "kinds", kinds, ["names", "numbers", "dotted"]);
  const read = configOf(config);
  expectNoOption(subject, config, ["enabled", "defaults", "builtins", "processes", "hooks"], known);
  const { observer_timeout_ms, interceptor_timeout_ms: interceptor, approval_timeout_ms: approval } = read.defaults;
  const mounted = mountedBy(read, sourcesOf(options));
  const form = { wire, kinds, channel };
  const observers = observersOf(mounted, { ...form, timeout: observer_timeout_ms });
  const hooks: Hooks = {
    ...form,
    models,
    approveResponses,
    warn,
    observers,
    chain: chainOf(mounted, { timeouts: { interceptor, approval }, observers, warn }),
    notes: notesOfRuns(),
    about: (ctx, turn, path) => aboutOf(ctx, turn, path, form),
  };
  const locks = new Locks();
  let started: PromiseSettledResult<void> | undefined;

  async function stopAll(): Promise<void> {
    await Promise.all(mounted.map((hook) => hook.stop()));
  }

  async function startAll(): Promise<void> {
    const all = await Promise.allSettled(mounted.map((hook) => start(hook, interceptor))); // every process is stopped if one fails
    const failed = all.find((each) => each.status === "rejected");
    if (!failed) return;
    await stopAll();
    throw failed.reason;
  }

  /** Starts the hooks, unless another run has. No run awaits a promise of another one, whose request the platform may end. */
  function startOnce(): Promise<void> {
    return locks.hold("start", undefined, async () => {
      if (!started) [started] = await Promise.allSettled([startAll()]);
      if (started.status === "rejected") throw started.reason;
    });
  }

  const middleware: Middleware = {
    name: "rpc_hooks",
    inherit: true,
    ...(mounted.length > 0 && {
      ...runHooks(hooks, startOnce),
      ...llmHook(hooks),
      ...toolHooks(hooks),
    }),
  };
  return {
    ...warnSilent(
      middleware,
      read.enabled ? ignoredFields(config).map((field) => `${field} is ignored: unknown field.`) : [],
    ),
    async [Symbol.asyncDispose]() {
      await locks.hold("start", undefined, stopAll); // after a start
    },
  };
}

/** The least milliseconds that a hook has to answer `hook.hello`: its process may have to start first. */
const startTime = 30_000;

const never = new AbortController().signal;

async function start(hook: Mounted, timeout: number): Promise<void> {
  try {
    await withinTime((signal) => hook.start(signal), { ms: Math.max(timeout, startTime), signal: never });
  } catch (error) {
    throw new Error(`Cannot start the hook "${hook.name}"`, { cause: error });
  }
}

const warn: Warn = (ctx, { hook, problem, point, error }) => {
  warnFailed(ctx, { middleware: "rpc_hooks", point, message: `The hook "${hook}" ${problem}.`, error });
};

function sourcesOf({ stdio, fetch: send = fetch, builtins = {} }: RpcHooksOptions) {
  return {
    builtin(name: string, config: unknown): Builtin {
      const create = builtins[name];
      if (!create) throw new TypeError("expected the name of an entry of `builtins`");
      return create(config);
    },
    connect(process: Process): () => Wire {
      if (process.transport === "http") return httpWire(process, send);
      if (!stdio) throw new TypeError("a process needs the option `stdio`");
      if (process.command.length === 0) throw new TypeError("its `command` is empty");
      return () => stdio(process);
    },
  };
}
