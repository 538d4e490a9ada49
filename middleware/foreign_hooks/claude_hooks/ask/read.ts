/**
 * Reading the outputs of hooks.
 *
 * @module
 */
import * as z from "zod";
import { type Fields, isObject, readFields } from "../../kit/fields.ts";
import type { HookEvent } from "../config/input.ts";
import type { Work } from "./background.ts";

const object = z.looseObject({});
const anything = z.unknown().refine((value) => value !== null);
const text = z.string().transform((text) => text.length > 10_000 ? `${text.slice(0, 10_000).toWellFormed()}…` : text);
/** Accepts one of `words`, or its older name. */
const decisionWord = <const T extends string>(...words: readonly T[]) =>
  z.preprocess((given) => given === "approve" ? "allow" : given === "block" ? "deny" : given, z.enum(words));

const common = {
  continue: z.boolean(),
  stopReason: text,
  suppressOutput: z.boolean(),
  systemMessage: text,
  decision: decisionWord("allow", "deny", "ask"),
  reason: text,
  hookSpecificOutput: object,
};

const specific = {
  permissionDecision: decisionWord("allow", "deny", "ask", "defer"),
  permissionDecisionReason: text,
  updatedInput: object,
  additionalContext: text,
  updatedToolOutput: anything,
  updatedMCPToolOutput: anything,
  decision: object,
  retry: z.boolean(),
  watchPaths: z.array(z.string()),
  initialUserMessage: z.string(),
  worktreePath: z.string(),
  displayContent: z.string(),
};

const permission = {
  behavior: decisionWord("allow", "deny"),
  updatedInput: object,
  updatedPermissions: z.array(z.unknown()),
  message: text,
  interrupt: z.boolean(),
};

/** The parsed answer of a hook in place of a person. */
export type Permission = Fields<typeof permission>;

/** The valid fields of an output. */
export interface Output extends Fields<Omit<typeof common, "hookSpecificOutput">> {
  /** The fields of the event. */
  readonly specific: Omit<Fields<typeof specific>, "decision"> & { readonly permission?: Permission };
}

/** The key of the result of a hook that continues in the background and will answer later: a process. */
export const laterAnswer: unique symbol = Symbol("later answer");

/** The answer of a hook that continues in the background. */
export interface BackgroundAnswer {
  readonly async: true;
  readonly [laterAnswer]: Work;
}

/** Returns the work of a hook that continues in the background and will answer later. */
export function backgroundWork(returned: unknown): Work | undefined {
  const isLater = typeof returned === "object" && returned !== null && laterAnswer in returned;
  return isLater ? (returned as BackgroundAnswer)[laterAnswer] : undefined; // only command handlers know the symbol
}

/** A parsed output, and the names of its invalid parts. */
export interface ReadOutput {
  readonly output?: Output;
  readonly invalid: readonly string[];
}

/** Reads the output of a hook of `event`. With `voidsInvalid`, an invalid field leaves only a deny. A hook in the background has no output. */
export function readOutput(returned: unknown, event: HookEvent, voidsInvalid: boolean): ReadOutput {
  if (returned === undefined || returned === null) return { invalid: [] };
  if (!isObject(returned)) return { invalid: ["it is no object"] };
  if (returned.async === true) return { invalid: [] };
  const invalid: string[] = [];
  const onInvalid = (name: string, problem: string) => invalid.push(`${name} (${problem})`);
  const { hookSpecificOutput, ...rest } = readFields(common, returned, onInvalid);
  const fields = hookSpecificOutput ? specificFields(hookSpecificOutput, event, invalid, onInvalid) : {};
  const output = { ...rest, specific: fields };
  const isVoid = voidsInvalid && invalid.length > 0;
  for (const name of Object.keys(specific)) {
    if (!(name in common) && name in returned) invalid.push(`${name} belongs in hookSpecificOutput`);
  }
  return { output: isVoid ? denyIn(output) : output, invalid };
}

function specificFields(
  given: Readonly<Record<string, unknown>>,
  event: HookEvent,
  invalid: string[],
  onInvalid: (name: string, problem: string) => void,
): Output["specific"] {
  const { hookEventName: name } = given;
  if (name !== event) {
    invalid.push(`hookSpecificOutput ${name === undefined ? "has no hookEventName" : "is for another event"}`);
    return {};
  }
  const { decision, ...rest } = readFields(specific, given, onInvalid);
  return decision ? { ...rest, permission: readFields(permission, decision, onInvalid) } : rest;
}

/** Returns the deny in an output, without anything else. */
function denyIn({ decision, reason, specific }: Output): Output {
  const { permissionDecision, permissionDecisionReason, permission } = specific;
  const because = <K extends string>(key: K, text: string | undefined) => text === undefined ? {} : { [key]: text };
  return {
    ...(decision === "deny" && { decision, ...because("reason", reason) }),
    specific: {
      ...(permissionDecision === "deny" &&
        { permissionDecision, ...because("permissionDecisionReason", permissionDecisionReason) }),
      ...(permission?.behavior === "deny" && { permission }),
    },
  };
}

/** Reads an answer in place of a person; undefined without a decision. */
export function readPermission(given: unknown): Permission | undefined {
  const answer = isObject(given) ? readFields(permission, given, () => {}) : {};
  return answer.behavior && answer;
}
