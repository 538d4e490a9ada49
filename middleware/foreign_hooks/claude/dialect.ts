/**
 * The differences between the systems, as data.
 *
 * @module
 */
import type { HookEvent } from "./events.ts";

/** A system: `qoder` as its SDK documents it, `qodercli` as it behaves, `claude` as Claude Code and its SDK behave. */
export type DialectName = "qoder" | "qodercli" | "claude";

/** A decision about a call. */
export type Decision = "allow" | "ask" | "defer" | "deny";

/** One system. */
export interface Dialect {
  /** The matchers that are a list of names. Any other matcher is a regular expression. */
  readonly nameList: {
    readonly tools: RegExp | undefined;
    readonly values: RegExp;
    readonly other: { readonly [E in HookEvent]?: RegExp };
  };
  /** The match of an invalid regular expression: its own text, or nothing. */
  readonly malformed: "itself" | "nothing";
  /** Decisions, the weakest first. Other words are ignored. */
  readonly decisions: readonly Decision[];
  /** The input or output that counts if there are several: the last in the configuration, or the last to arrive. */
  readonly last: "listed" | "given";
  /** The questions that an allow answers: those of the tool and of all inner guards, or that of the tool. */
  readonly allows: "all" | "tool";
  /** Whether an empty output replaces a result. */
  readonly takesEmpty: boolean;
  /** The answer to a PermissionRequest that counts if there are several. */
  readonly permission: "strictest" | "last";
  /** Whether a block at PostToolUseFailure replaces the result of the tool. */
  readonly replacesFailures: boolean;
  /** Whether `suppressOutput` hides the result and the hook's own message from the person. */
  readonly suppresses: boolean;
  /** Whether `sequential` has an effect. */
  readonly sequential: boolean;
  /** The form in which hooks receive a result that is JSON: as text, or parsed. */
  readonly response: "text" | "json";
  /** The events at which `continue: false` ends the run. */
  readonly ending: readonly HookEvent[];
  /** Whether a hook can prevent a compaction. */
  readonly declines: boolean;
  /**
   * Whether the additions of Claude Code of 2026 are reported. These are the effort, the cost of a resumed session, its sources `clear` and `fork`, all kinds of
   * StopFailure, and StopFailure in place of Stop for an answer that ends at the limit of its length.
   */
  readonly additions: boolean;
  /** The number of times in a row that hooks can keep an agent from stopping. */
  readonly mostBlocks: number;
  /** The events at which a callback that exceeds its timeout blocks. */
  readonly lateBlocks: readonly HookEvent[];
  /** Whether an invalid field voids the whole output, except a deny. */
  readonly voidsInvalid: boolean;
  /** Whether the output of a command is JSON only if all of it is one object. */
  readonly wholeOutput: boolean;
  /** The events at which exit code 2 of a command has no effect. */
  readonly ignoresExit2: readonly HookEvent[];
  /** The events whose `systemMessage` is discarded. */
  readonly discardsMessages: readonly HookEvent[];
  /** The receiver of the `systemMessage` of an asynchronous command. */
  readonly lateMessages: "person" | "model";
  /** Whether PermissionDenied also fires when a rule, not a classifier, denies a call. */
  readonly reportsRules: boolean;
  /** Whether only files that a matcher or `watchPaths` names are watched. */
  readonly watchesNamed: boolean;
  /** Timeouts in seconds: by event, and by kind of handler. */
  readonly timeouts: { readonly [E in HookEvent]?: number } & Readonly<Record<HandlerKind, number>>;
}

/** The kinds of handlers. In settings, a callback has no kind. */
export type HandlerKind = "callback" | "command" | "http" | "prompt" | "agent" | "mcp_tool";

const ending = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "UserPromptSubmit",
  "Stop",
  "SubagentStop",
] as const;

const qoder: Dialect = {
  nameList: { tools: undefined, values: /^[\w|-]+$/, other: {} },
  malformed: "itself",
  decisions: ["allow", "ask", "deny"],
  last: "listed",
  allows: "all",
  takesEmpty: false,
  permission: "strictest",
  replacesFailures: true,
  suppresses: true,
  sequential: true,
  response: "text",
  ending,
  declines: false,
  additions: false,
  mostBlocks: Infinity,
  lateBlocks: [],
  voidsInvalid: false,
  wholeOutput: false,
  ignoresExit2: [],
  discardsMessages: [],
  lateMessages: "person",
  reportsRules: true,
  watchesNamed: false,
  timeouts: { callback: 600, command: 600, http: 600, prompt: 30, agent: 60, mcp_tool: 600 },
};

const claudeNames = /^[\w\- ,|]+$/;

/** Every system by its name. */
const dialects: Readonly<Record<DialectName, Dialect>> = {
  qoder,
  qodercli: { ...qoder, takesEmpty: true, permission: "last" },
  claude: {
    nameList: {
      tools: claudeNames,
      values: claudeNames,
      other: { FileChanged: /^[\w|]+$/, StopFailure: /^[\w|]+$/ },
    },
    malformed: "nothing",
    decisions: ["allow", "ask", "defer", "deny"],
    last: "given",
    allows: "tool",
    takesEmpty: true,
    permission: "strictest",
    replacesFailures: false,
    suppresses: false,
    sequential: false,
    response: "json",
    ending: [...ending, "PostToolBatch", "UserPromptExpansion"],
    declines: true,
    additions: true,
    mostBlocks: 8,
    lateBlocks: ["PreToolUse", "PermissionRequest", "UserPromptSubmit"],
    voidsInvalid: true,
    wholeOutput: true,
    ignoresExit2: ["PermissionRequest", "PermissionDenied", "Notification"],
    discardsMessages: ["Notification", "PreCompact", "SessionEnd", "Elicitation", "ElicitationResult"],
    lateMessages: "model",
    reportsRules: false,
    watchesNamed: true,
    timeouts: {
      ...{ callback: 60, command: 600, http: 600, prompt: 30, agent: 60, mcp_tool: 600 },
      UserPromptSubmit: 30,
      PostModelSwitch: 30,
      MessageDisplay: 10,
      SessionEnd: 1.5,
    },
  },
};

/** Returns the system of that name. Throws a `TypeError` for an unknown one. */
export function dialectOf(name: DialectName, others: readonly string[] = []): Dialect {
  const dialect = Object.hasOwn(dialects, name) ? dialects[name] : undefined;
  if (dialect) return dialect;
  const known = [...Object.keys(dialects), ...others].map((each) => `"${each}"`).join(", ");
  throw new TypeError(`Cannot use hooks of "${name}": unknown dialect; expected one of ${known}`);
}
