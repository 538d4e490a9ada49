/**
 * What hooks answer, read field by field: a field that is wrong is left out, and does not take the others with it.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import type { Work } from "./background.ts";
import type { Decision } from "./dialect.ts";
import type { HookEvent } from "./input.ts";

/** What a hook may say. */
export interface HookOutput {
  /** Whether the run goes on. Default: true. */
  readonly continue?: boolean;
  /** Why it does not, for the person. */
  readonly stopReason?: string;
  /** Whether the person is spared what this is about. Default: false. */
  readonly suppressOutput?: boolean;
  /** For the person. */
  readonly systemMessage?: string;
  /** What is decided, where the event has no field of its own for it. */
  readonly decision?: "approve" | "block";
  /** Why, for the model where it is blocked. */
  readonly reason?: string;
  /** What is said to one event in particular. */
  readonly hookSpecificOutput?: HookSpecificOutput;
  /** The hook goes on by itself: nothing waits for it, and it decides nothing. */
  readonly async?: boolean;
  /** How long it may go on. */
  readonly asyncTimeout?: number;
}

/** What a hook may say to one event in particular. */
export interface HookSpecificOutput {
  /** The event. */
  readonly hookEventName: string;
  /** At `PreToolUse`: what is done about the call. */
  readonly permissionDecision?: Decision;
  /** At `PreToolUse`: why, for the model where it is denied, for the person where they are asked. */
  readonly permissionDecisionReason?: string;
  /** At `PreToolUse`: what the call is made with instead. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** For the model. */
  readonly additionalContext?: string;
  /** At `PostToolUse`: what the model is told instead. */
  readonly updatedToolOutput?: unknown;
  /** At `PostToolUse`, the same for tools whose names begin with `mcp__`. */
  readonly updatedMCPToolOutput?: unknown;
  /** At `PermissionRequest`: what the person would say. */
  readonly decision?: PermissionAnswer;
  /** At `PermissionDenied`: whether the model may try again. */
  readonly retry?: boolean;
  /** At `SessionStart`, `CwdChanged` and `FileChanged`: the files to watch. */
  readonly watchPaths?: readonly string[];
  /** At `SessionStart`: what the person says first. */
  readonly initialUserMessage?: string;
  /** At `WorktreeCreate`: where it is. */
  readonly worktreePath?: string;
  /** At `MessageDisplay`: what is shown instead. */
  readonly displayContent?: string;
}

/** What is said in a person's place. */
export interface PermissionAnswer {
  /** What is done about the call. */
  readonly behavior: "allow" | "deny";
  /** Where it is allowed: what it is made with instead. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** Where it is allowed: what is asked from then on. */
  readonly updatedPermissions?: readonly unknown[];
  /** Where it is denied: why, for the model. */
  readonly message?: string;
  /** Where it is denied: whether the run ends. */
  readonly interrupt?: boolean;
}

const object = z.looseObject({});
/** As much of one text as anybody is told. */
const text = z.string().transform((text) => text.length > 10_000 ? `${text.slice(0, 10_000).toWellFormed()}…` : text);
/** One of these words, or another word for one of them. */
const word = <const T extends string>(...words: readonly T[]) =>
  z.preprocess((given) => given === "approve" ? "allow" : given === "block" ? "deny" : given, z.enum(words));
const paths = z.array(z.string());

const common = {
  continue: z.boolean(),
  stopReason: text,
  suppressOutput: z.boolean(),
  systemMessage: text,
  decision: word("allow", "deny", "ask"),
  reason: text,
  hookSpecificOutput: object,
};

const specific = {
  permissionDecision: word("allow", "deny", "ask", "defer"),
  permissionDecisionReason: text,
  updatedInput: object,
  additionalContext: text,
  updatedToolOutput: z.unknown(),
  updatedMCPToolOutput: z.unknown(),
  decision: object,
  retry: z.boolean(),
  watchPaths: paths,
  initialUserMessage: z.string(),
  worktreePath: z.string(),
  displayContent: z.string(),
};

const permission = {
  behavior: word("allow", "deny"),
  updatedInput: object,
  updatedPermissions: z.array(z.unknown()),
  message: text,
  interrupt: z.boolean(),
};

/** What is left of an output that was read: nothing in it is wrong. */
export interface Output extends Fields<Omit<typeof common, "hookSpecificOutput">> {
  /** What is said to the event; nothing where that is nothing. */
  readonly specific: Omit<Fields<typeof specific>, "decision"> & { readonly permission?: Fields<typeof permission> };
}

/** Fields that were read. */
export type Fields<S extends Shape> = { readonly [K in keyof S]?: z.output<S[K]> };
type Shape = Readonly<Record<string, z.ZodType>>;

/** Where a hook that goes on by itself says what it will come to: for hooks that are processes. */
export const going: unique symbol = Symbol("going");

/** The answer of a hook that goes on by itself. */
export interface GoingOn {
  /** It does. */
  readonly async: true;
  /** What it comes to, and how it is ended. */
  readonly [going]: Work;
}

/** Whether a hook goes on by itself, and its answer will come. */
export function goesOn(returned: unknown): returned is GoingOn {
  return typeof returned === "object" && returned !== null && going in returned;
}

/** Reads what a hook of `event` returned, and what of it is wrong; nothing where the hook goes on by itself. */
export function read(
  returned: unknown,
  event: HookEvent,
): { readonly output?: Output; readonly wrong: readonly string[] } {
  if (returned === undefined || returned === null) return { wrong: [] };
  const whole = object.safeParse(returned);
  if (!whole.success) return { wrong: ["it is no object"] };
  if (whole.data.async === true) return { wrong: [] };
  const wrong: string[] = [];
  const { hookSpecificOutput, ...rest } = fields(common, whole.data, wrong);
  for (const name of Object.keys(specific)) {
    if (!(name in common) && name in whole.data) wrong.push(`${name} belongs in hookSpecificOutput`);
  }
  return {
    output: { ...rest, specific: hookSpecificOutput ? specifics(hookSpecificOutput, event, wrong) : {} },
    wrong,
  };
}

function specifics(given: Record<string, unknown>, event: HookEvent, wrong: string[]): Output["specific"] {
  if (given.hookEventName !== event) {
    wrong.push(
      given.hookEventName === undefined
        ? "hookSpecificOutput has no hookEventName"
        : "hookSpecificOutput is for another event",
    );
    return {};
  }
  const { decision, ...rest } = fields(specific, given, wrong);
  return decision ? { ...rest, permission: fields(permission, decision, wrong) } : rest;
}

/** Reads what is said in a person's place; nothing where that is nothing. */
export function readPermission(given: unknown): Output["specific"]["permission"] {
  const parsed = object.safeParse(given);
  const answer = parsed.success ? fields(permission, parsed.data, []) : {};
  return answer.behavior && answer;
}

/** The fields of `shape` that are there and right. What is null is not there. */
function fields<S extends Shape>(shape: S, given: Readonly<Record<string, unknown>>, wrong: string[]): Fields<S> {
  const read: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(shape)) {
    if (given[name] === undefined || given[name] === null) continue;
    const parsed = schema.safeParse(given[name]);
    if (parsed.success) read[name] = parsed.data;
    else wrong.push(`${name} (${describeIssues(parsed.error.issues)})`);
  }
  return read as Fields<S>; // each one has been read by its own schema
}
