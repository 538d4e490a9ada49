/**
 * The options of `mods()`, and the ports of what a server has instead of a person's machine.
 *
 * @module
 */
import type { Data } from "./patterns.ts";
import type { At, ModRun } from "./run.ts";
import type {
  Approval,
  ApprovalContext,
  Change,
  CompactChange,
  CompactContext,
  Compaction,
  Model,
  Next,
  Scope,
  Stop,
  StopContext,
  ToolContext,
  ToolResult,
} from "../../../mod.ts";
import type { Files, Locks } from "../../../src/core/kit.ts";

/** The events `classic.*`: `classic` of `middleware/mods/classic`. */
export interface ClassicEvents {
  /** The events, for `mods()`. */
  readonly "~events": object;
}

/** The events `classic.*`, at the places of a run where they occur. */
export interface ClassicPort {
  /** The names of the events. */
  readonly events: readonly string[];
  /** After the hooks of `prompt.submit`: returns the answer of the core, or none. */
  readonly submit: (run: ModRun, at: At, e: Data) => Promise<Data | undefined>;
  /** Inside the hooks of `tool.call`, around the call. */
  readonly call: (
    run: ModRun,
    ctx: ToolContext,
    e: Data,
    execute: (e: Data) => Promise<ToolResult>,
  ) => Promise<ToolResult>;
  /** Applies what hooks decided about a call to the decision of the inner guards. */
  readonly approve: (ctx: ApprovalContext, inner: Approval) => Approval;
  /** Before an agent finishes. */
  readonly stop: (run: ModRun, ctx: StopContext, next: Next<Change, Stop>) => Promise<Stop>;
  /** When a session is opened. Returns texts for the model. */
  readonly start: (run: ModRun, ctx: Scope, source: string) => Promise<readonly string[]>;
  /** When a run has ended. */
  readonly end: (run: ModRun, at: At) => Promise<void>;
  /** Around a compaction. */
  readonly compact: (
    run: ModRun,
    ctx: CompactContext,
    next: Next<CompactChange, Compaction>,
  ) => Promise<Compaction>;
}

/** A database for `$.store`: one text for each tenant and mod. */
export interface ModStore {
  /** Returns the text of a key, or undefined if there is none. */
  get(key: string): Promise<string | undefined>;
  /** Sets the text of a key. */
  set(key: string, text: string): Promise<void>;
}

/** Options of `mods()`. */
export interface ModsOptions {
  /**
   * The treatment of a hook that throws, is late, or returns a wrong answer. "home": it is skipped, and the call, the prompt or the subagent goes on. "closed":
   * at `tool.call`, `tool.check`, `prompt.submit` and `agent.spawn` it refuses, and a mod that cannot be loaded fails the run. Default: "home".
   */
  readonly failure?: "home" | "closed" | undefined;
  /** The life of a module's variables: one run, or all runs of a session in this process. Default: "run". */
  readonly lifetime?: "run" | "session" | undefined;
  /**
   * Whether calls of one response run one after another if a mod has a hook at `tool.call`. Calls of tools that are `readOnly` or have `parallel: true` overlap
   * all the same. Default: true.
   */
  readonly groups?: boolean | undefined;
  /** Whether a call that a mod has answered runs without approval, as at home. Default: false. */
  readonly answersAreApproved?: boolean | undefined;
  /** Returns the model of an id or an alias, for `turn.step`, `agent.spawn` and `$.model`. Default: none but the model of the run. */
  readonly models?: ((id: string) => Model | undefined) | undefined;
  /** The working directory, as mods see it. Default: `/`. */
  readonly cwd?: string | undefined;
  /** The root of the project, as mods see it. Default: `cwd`. */
  readonly root?: string | undefined;
  /** The origin of prompts. Default: "sdk". */
  readonly origin?: string | undefined;
  /** The database of `$.store`. Default: the memory of this process. */
  readonly store?: ModStore | undefined;
  /** The files of `$.fs`. Default: none. */
  readonly files?: Files | undefined;
  /** The variables of `$.env`. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The result of `$.settings.read()`. Default: `{}`. */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /** The hosts that `$.http.fetch()` may reach, such as `api.example.com`. Default: none. */
  readonly hosts?: readonly string[] | undefined;
  /** Sends the requests of `$.http.fetch()`. Default: `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Whether `$.ui.ask()` pauses the run. Default: false, and it rejects. */
  readonly ask?: boolean | undefined;
  /** Receives the lines of `$.ui.log(text, { to: "debug" })`. Default: they are dropped. */
  readonly debug?: ((mod: string, text: string) => void) | undefined;
  /** The version of Claude Code that the mods were written for. Before 2.1.280, `$.model.complete()` returns a text. Default: the latest. */
  readonly dialect?: "2.1.277" | "latest" | undefined;
  /** The events `classic.*`, from `middleware/mods/classic`. Default: hooks of these events never run. */
  readonly classic?: ClassicEvents | undefined;
}

/** The names of the options. */
export const optionNames: readonly string[] = [
  ...["failure", "lifetime", "groups", "answersAreApproved", "models", "cwd", "root", "origin", "store", "files"],
  ...["env", "settings", "hosts", "fetch", "ask", "debug", "dialect", "classic"],
];

/** The options with the parts that all runs share. */
export interface Resolved extends Omit<ModsOptions, "classic"> {
  readonly classic: ClassicPort | undefined;
  readonly store: ModStore;
  /** Locks the store of a tenant and a mod while it is read and written. */
  readonly locks: Locks;
}

/** The number of tenants and mods whose stores the memory holds. */
const maxStores = 1_000;

/** Creates a store in memory. It forgets the store that was written the longest ago. */
export function memoryStore(): ModStore {
  const texts = new Map<string, string>();
  return {
    get: (key) => Promise.resolve(texts.get(key)),
    set(key, text) {
      texts.delete(key);
      texts.set(key, text);
      const [oldest] = texts.keys();
      if (texts.size > maxStores && oldest !== undefined) texts.delete(oldest);
      return Promise.resolve();
    },
  };
}
