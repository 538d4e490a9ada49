/**
 * The hooks of a configuration, in this process or outside it.
 *
 * @module
 */
import { type Config, dutiesOf, type Mode, type Process, type Stage } from "./config.ts";
import { resultOf, type Wire } from "./transport.ts";
import type { AfterLlm, AfterTool, BeforeLlm, BeforeTool } from "./wire/input.ts";
import { type Kind, kindsOf } from "./wire/kinds.ts";

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
      const own = structuredClone(params) as never; // the params belong to the stage
      return await hook[stage]?.(own, { signal });
    },
    async notify(_, event, signal) {
      await hook.event?.(structuredClone(event), { signal });
    },
    stop: () => Promise.resolve(),
  };
}

/** Creates a hook outside this process. */
function remote(name: string, process: Process, open: () => Wire): Mounted {
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
      wire = open();
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
export interface Sources {
  readonly builtin: (name: string, config: unknown) => Builtin;
  readonly open: (process: Process) => () => Wire;
}

/**
 * Creates the hooks of a configuration, in their order: hooks in this process first, then by priority, then by name. Throws a `TypeError` for an invalid one.
 */
export function mountedBy(
  { enabled, builtins, processes }: Config,
  { builtin: create, open }: Sources,
): readonly Mounted[] {
  if (!enabled) return [];
  const own = used(builtins).filter(([name]) => !processes[name]?.enabled);
  return [
    ...own.map(([name, { config }]) => named(name, () => builtin(name, create(name, config)))),
    ...used(processes).map(([name, process]) => named(name, () => remote(name, process, open(process)))),
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
