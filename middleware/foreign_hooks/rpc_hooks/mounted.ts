/**
 * Hooks, as they are asked: in this process, or elsewhere.
 *
 * @module
 */
import type { AfterLlm, AfterTool, BeforeLlm, BeforeTool } from "./about.ts";
import { type Config, dutiesOf, type Mode, type Process, type Stage } from "./config.ts";
import { type Kind, kindsOf } from "./kinds.ts";
import { resultOf, type Wire } from "./wire.ts";

/** What a hook in this process is given beside what it is told. */
export interface BuiltinOptions {
  /** Aborts when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

/** A hook in this process. It answers with what one elsewhere would; nothing is `continue`, and no approval. */
export interface Builtin {
  /** Asked before the model is. */
  readonly before_llm?: (params: BeforeLlm, options: BuiltinOptions) => unknown;
  /** Asked after the model has answered. */
  readonly after_llm?: (params: AfterLlm, options: BuiltinOptions) => unknown;
  /** Asked before a call is made. */
  readonly before_tool?: (params: BeforeTool, options: BuiltinOptions) => unknown;
  /** Asked after a call was made. */
  readonly after_tool?: (params: AfterTool, options: BuiltinOptions) => unknown;
  /** Asked whether a call may be made. */
  readonly approve_tool?: (params: BeforeTool, options: BuiltinOptions) => unknown;
  /** Told of every event. */
  readonly event?: (event: Readonly<Record<string, unknown>>, options: BuiltinOptions) => unknown;
}

/** A hook that is used. */
export interface Mounted {
  /** What it is called. */
  readonly name: string;
  /** What it is there for. */
  readonly modes: ReadonlySet<Mode>;
  /** What it is told of. */
  readonly kinds: ReadonlySet<Kind>;
  /** Shakes hands with it. */
  start(signal: AbortSignal): Promise<void>;
  /** Asks it. */
  ask(stage: Stage, params: object, signal: AbortSignal): Promise<unknown>;
  /** Tells it of an event. */
  tell(method: string, event: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void>;
  /** Leaves it. */
  stop(): Promise<void>;
}

/** The hook `name` in this process. */
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
      const own = structuredClone(params) as never; // what is told belongs to the stage
      return await hook[stage]?.(own, { signal });
    },
    async tell(_, event, signal) {
      await hook.event?.(structuredClone(event), { signal });
    },
    stop: () => Promise.resolve(),
  };
}

/** The hook `name` elsewhere, to which `open` opens a way. */
function remote(name: string, process: Process, open: () => Wire): Mounted {
  const { modes, kinds } = dutiesOf(process);
  const listed = (["observe", "llm", "tool", "approve"] as const).filter((mode) => modes.has(mode));
  let wire: Wire | undefined;
  let last = 0;

  async function call(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    if (!wire) throw new Error("It was left.");
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
    async tell(method, params, signal) {
      await wire?.tell({ jsonrpc: "2.0", method, params }, signal);
    },
    stop,
  };
}

/** What is behind a name: the maker of a hook in this process, or a way to one elsewhere. */
export interface Sources {
  /** Makes a hook in this process. */
  readonly builtin: (name: string, config: unknown) => Builtin;
  /** Opens a way to a hook elsewhere. */
  readonly open: (process: Process) => () => Wire;
}

/**
 * The hooks of a configuration, in the order in which they are asked: those of this process first, then by priority, then by name. Throws a `TypeError` where
 * one cannot be.
 */
export function mountedBy(
  { enabled, builtins, processes }: Config,
  { builtin: make, open }: Sources,
): readonly Mounted[] {
  if (!enabled) return [];
  const own = used(builtins).filter(([name]) => !processes[name]?.enabled);
  return [
    ...own.map(([name, { config }]) => naming(name, () => builtin(name, make(name, config)))),
    ...used(processes).map(([name, process]) => naming(name, () => remote(name, process, open(process)))),
  ];
}

function used<T extends { readonly enabled: boolean; readonly priority: number }>(
  hooks: Readonly<Record<string, T>>,
): readonly (readonly [string, T])[] {
  return Object.entries(hooks).filter(([, { enabled }]) => enabled)
    .sort(([a, { priority: of }], [b, { priority: to }]) => of - to || (a < b ? -1 : 1));
}

/** What `make` makes; what it throws says which hook it is about. */
function naming<T>(name: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`Cannot use the hook "${name}": ${why}`, { cause: error });
  }
}
