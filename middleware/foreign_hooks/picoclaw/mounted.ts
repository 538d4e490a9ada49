/**
 * The hooks of a configuration, in this process or outside it.
 *
 * @module
 */
import { type Config, dutiesOf, type Mode, type Process, resultOf, type Stage, type Wire } from "./config.ts";
import {
  type AfterLlm,
  type AfterTool,
  type BeforeLlm,
  type BeforeTool,
  isMcpKind,
  type Kind,
  kindsOf,
  metaOf,
  type WireForm,
  writeKind,
} from "./wire/input.ts";
import type { Scope } from "../../../mod.ts";
import { withinTime } from "../../../src/core/kit.ts";

/** The second argument of a hook in this process. */
export interface BuiltinOptions {
  /** Aborts when the run no longer waits for the hook. */
  readonly signal: AbortSignal;
}

/** A hook in this process. It returns the result of a reply; nothing means `continue`, and no approval. */
export interface Builtin {
  /** Before a request to the model. */
  readonly before_llm?: (params: BeforeLlm, options: BuiltinOptions) => unknown;
  /** After the response of the model. */
  readonly after_llm?: (params: AfterLlm, options: BuiltinOptions) => unknown;
  /** Before a call. */
  readonly before_tool?: (params: BeforeTool, options: BuiltinOptions) => unknown;
  /** After a call. */
  readonly after_tool?: (params: AfterTool, options: BuiltinOptions) => unknown;
  /** Whether a call is approved. */
  readonly approve_tool?: (params: BeforeTool, options: BuiltinOptions) => unknown;
  /** For every event. */
  readonly event?: (event: Readonly<Record<string, unknown>>, options: BuiltinOptions) => unknown;
}

/** An enabled hook. */
export interface Mounted {
  readonly name: string;
  readonly modes: ReadonlySet<Mode>;
  /** The kinds of events that it observes. */
  readonly kinds: ReadonlySet<Kind>;
  /** Starts it, with the handshake. */
  start(signal: AbortSignal): Promise<void>;
  ask(stage: Stage, params: object, signal: AbortSignal): Promise<unknown>;
  notify(method: string, event: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Creates a hook in this process. */
function builtin(name: string, hook: Builtin): Mounted {
  const modes: readonly (readonly [Mode, readonly (keyof Builtin)[]])[] = [
    ["observe", ["event"]],
    ["llm", ["before_llm", "after_llm"]],
    ["tool", ["before_tool", "after_tool"]],
    ["approve", ["approve_tool"]],
  ];
  return {
    name,
    modes: new Set(modes.flatMap(([mode, stages]) => stages.some((stage) => hook[stage]) ? [mode] : [])),
    kinds: kindsOf(hook.event ? ["*"] : []),
    start: () => Promise.resolve(),
    async ask(stage, params, signal) {
      const copy = structuredClone(params) as never; // the params belong to the stage
      return await hook[stage]?.(copy, { signal });
    },
    async notify(_, event, signal) {
      await hook.event?.(structuredClone(event), { signal });
    },
    stop: () => Promise.resolve(),
  };
}

/** Creates a hook outside this process. */
function remote(name: string, process: Process, connect: () => Wire): Mounted {
  const { modes, kinds } = dutiesOf(process);
  const listed = (["observe", "llm", "tool", "approve"] as const).filter((mode) => modes.has(mode));
  let wire: Wire | undefined;
  let last = 0;

  async function call(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    if (!wire) throw new Error("Cannot ask the hook: the connection was closed");
    return resultOf(await wire.ask({ jsonrpc: "2.0", id: ++last, method, params }, signal));
  }

  async function stop(): Promise<void> {
    const left = wire;
    wire = undefined;
    await left?.[Symbol.asyncDispose]();
  }

  return {
    name,
    modes,
    kinds,
    async start(signal) {
      wire = connect();
      try {
        await call("hook.hello", { name, version: 1, modes: listed }, signal);
      } catch (error) {
        await stop();
        throw error;
      }
    },
    ask: (stage, params, signal) => call(`hook.${stage}`, params, signal),
    async notify(method, params, signal) {
      await wire?.notify({ jsonrpc: "2.0", method, params }, signal);
    },
    stop,
  };
}

/** Creates the hooks of a configuration. */
interface Sources {
  readonly builtin: (name: string, config: unknown) => Builtin;
  readonly connect: (process: Process) => () => Wire;
}

/**
 * Creates the hooks of a configuration, in their order: hooks in this process first, then by priority, then by name. Throws a `TypeError` for an invalid one.
 */
export function mountedBy(
  { enabled, builtins, processes }: Config,
  { builtin: create, connect }: Sources,
): readonly Mounted[] {
  if (!enabled) return [];
  const builtinHooks = used(builtins).filter(([name]) => !processes[name]?.enabled);
  return [
    ...builtinHooks.map(([name, { config }]) => named(name, () => builtin(name, create(name, config)))),
    ...used(processes).map(([name, process]) => named(name, () => remote(name, process, connect(process)))),
  ];
}

function used<T extends { readonly enabled: boolean; readonly priority: number }>(
  hooks: Readonly<Record<string, T>>,
): readonly (readonly [string, T])[] {
  return Object.entries(hooks).filter(([, { enabled }]) => enabled)
    .sort(([a, { priority: of }], [b, { priority: to }]) => of - to || (a < b ? -1 : 1));
}

/** Calls `create`. Adds the name of the hook to its errors. */
function named<T>(name: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`Cannot use the hook "${name}": ${why}`, { cause: error });
  }
}

// The hooks that observe events. The run does not wait for them.

/** The most events that wait. Further events are dropped. */
const maxStarted = 64;

/** The observers of one middleware. */
export type Observers = ReturnType<typeof observersOf>;

/** The data of an event. */
type Payload = Readonly<Record<string, unknown>>;

/** Options of sending events. */
interface ObserverOptions extends WireForm {
  /** Milliseconds for one hook. */
  readonly timeout: number;
}

/** Creates the observers. Events are sent one after another, to one hook after another. */
export function observersOf(hooks: readonly Mounted[], { timeout, ...form }: ObserverOptions) {
  const observed = new Set(
    hooks.flatMap(({ kinds }) => [...kinds]).filter((kind) => form.wire === "head" || !isMcpKind(kind)),
  );
  const waiting: (() => Promise<void>)[] = [];
  const never = new AbortController().signal;
  const method = form.wire === "document" ? "hook.event" : "hook.runtime_event";
  let isSending = false;

  async function send(kind: Kind, event: Payload, ctx: Scope): Promise<void> {
    for (const hook of hooks.filter(({ kinds }) => kinds.has(kind))) {
      try {
        await withinTime((signal) => hook.notify(method, event, signal), { ms: timeout, signal: never });
      } catch (error) {
        ctx.run.report(
          new Error(`Cannot send the event ${kind} to the hook "${hook.name}"`, { cause: error }),
        );
      }
    }
  }

  /** Never rejects: `send` reports failures. */
  async function sendAll(): Promise<void> {
    isSending = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
    isSending = false;
  }

  return {
    /** Whether a hook observes one of the kinds. */
    has: (...kinds: readonly Kind[]): boolean => kinds.some((kind) => observed.has(kind)),
    /** Sends an event, later. `payload` is called if a hook observes the kind. */
    notify(kind: Kind, ctx: Scope, turn: number, payload: () => Payload): void {
      if (!observed.has(kind) || waiting.length >= maxStarted) return;
      const event = eventOf(kind, ctx, turn, payload(), form);
      waiting.push(() => send(kind, event, ctx));
      if (!isSending) void sendAll();
    },
  };
}

function eventOf(kind: Kind, ctx: Scope, turn: number, payload: Payload, { wire, kinds, channel }: WireForm): Payload {
  const path = kind.replace("_exec", "").replace(/^(follow_up|[a-z]+)_/, "$1.");
  const meta = metaOf(ctx, turn, path.startsWith("turn.") ? path : `turn.${path}`, wire);
  const time = new Date().toISOString();
  if (wire === "document") return { Kind: writeKind(kind, kinds), Time: time, Meta: meta, Payload: payload };
  const event = { id: crypto.randomUUID(), kind: writeKind(kind, kinds), time };
  const severity = severityOf(kind, payload);
  const scope = { agent_id: meta.AgentID, session_key: meta.SessionKey, channel, chat_id: meta.SessionKey };
  if (isMcpKind(kind)) {
    const source = { component: "mcp", name: payload.server };
    return { ...event, source, scope, correlation: {}, severity, payload, attrs: payload };
  }
  return {
    ...event,
    source: { component: "agent", name: meta.AgentID },
    scope: { ...scope, turn_id: meta.TurnID },
    correlation: { trace_id: meta.TracePath, parent_turn_id: meta.ParentTurnID },
    severity,
    payload,
    attrs: { agent_source: meta.Source, iteration: meta.Iteration },
  };
}

function severityOf(kind: Kind, { Status, IsError, is_error }: Payload): "info" | "warn" | "error" {
  if (kind === "error" || kind === "mcp.server.failed" || Status === "error" || is_error) return "error";
  const warns = ["llm_retry", "context_compress", "tool_exec_skipped"].includes(kind);
  return warns || Status === "aborted" || IsError === true ? "warn" : "info";
}
