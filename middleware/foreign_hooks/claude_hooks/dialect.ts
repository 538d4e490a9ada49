/**
 * In what the systems differ, as data.
 *
 * @module
 */
import type { HookEvent } from "./input.ts";

/** A system: `qoder` as its SDK documents it, `qodercli` as it works, `claude` as Claude Code and its SDK do. */
export type DialectName = "qoder" | "qodercli" | "claude";

/** What is said of one call. */
export type Decision = "allow" | "ask" | "defer" | "deny";

/** One system. */
export interface Dialect {
  /** The characters of a matcher that lists names; any other is a regular expression. */
  readonly list: { readonly [E in HookEvent]?: RegExp | undefined } & { readonly otherwise: RegExp | undefined };
  /** What a matcher matches that is no regular expression: its own text, or nothing. */
  readonly malformed: "itself" | "nothing";
  /** Decisions, the weakest first; what is not among them is none. */
  readonly decisions: readonly Decision[];
  /** Which of several inputs or outputs counts: the last in the configuration, or the last that was given. */
  readonly last: "listed" | "given";
  /** Whether an empty output replaces one. */
  readonly takesEmpty: boolean;
  /** Which of several answers to a request for permission counts. */
  readonly permission: "strictest" | "last";
  /** Whether a hook that fails a call may replace what the tool said of its failure. */
  readonly replacesFailures: boolean;
  /** Whether an output that suppresses what is shown hides its own message too. */
  readonly suppressesMessages: boolean;
  /** Whether `sequential` counts. */
  readonly sequential: boolean;
  /** How a result is told that is the JSON of an object: as its text, or as the object. */
  readonly response: "text" | "json";
  /** The events at which `continue: false` ends the run. */
  readonly ending: readonly HookEvent[];
  /** Whether a hook may prevent a compaction. */
  readonly declines: boolean;
  /** How often in a row hooks may keep an agent from stopping. */
  readonly mostBlocks: number;
  /** Seconds that hooks have. */
  readonly timeouts: { readonly [E in HookEvent]?: number } & { readonly callback: number; readonly command: number };
}

const plain = /^[\w|-]+$/;
const ending = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "UserPromptSubmit",
  "Stop",
  "SubagentStop",
] as const;

const qoder: Dialect = {
  list: {
    PreToolUse: undefined,
    PostToolUse: undefined,
    PostToolUseFailure: undefined,
    PermissionRequest: undefined,
    PermissionDenied: undefined,
    otherwise: plain,
  },
  malformed: "itself",
  decisions: ["allow", "ask", "deny"],
  last: "listed",
  takesEmpty: false,
  permission: "strictest",
  replacesFailures: true,
  suppressesMessages: true,
  sequential: true,
  response: "text",
  ending,
  declines: false,
  mostBlocks: Infinity,
  timeouts: { callback: 600, command: 600 },
};

/** Every system by its name. */
export const dialects: Readonly<Record<DialectName, Dialect>> = {
  qoder,
  qodercli: { ...qoder, takesEmpty: true, permission: "last" },
  claude: {
    list: { FileChanged: /^[\w|]+$/, StopFailure: /^[\w|]+$/, otherwise: /^[\w\- ,|]+$/ },
    malformed: "nothing",
    decisions: ["allow", "ask", "defer", "deny"],
    last: "given",
    takesEmpty: true,
    permission: "strictest",
    replacesFailures: false,
    suppressesMessages: false,
    sequential: false,
    response: "json",
    ending: [...ending, "PostToolBatch", "UserPromptExpansion"],
    declines: true,
    mostBlocks: 8,
    timeouts: {
      callback: 60,
      command: 600,
      UserPromptSubmit: 30,
      PostModelSwitch: 30,
      MessageDisplay: 10,
      SessionEnd: 1.5,
    },
  },
};
