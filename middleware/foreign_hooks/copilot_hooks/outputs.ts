/**
 * The outputs of hooks, as schemas.
 *
 * @module
 */
import * as z from "zod";
import { decisionInText, type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import { isObject, readFields, unknownMembers, word } from "../kit/fields.ts";
import type { SessionHooks } from "./hooks.ts";

/** The name of a hook. */
export type HookName = keyof SessionHooks;

/** The output of each hook. */
export type Outputs = {
  readonly [K in HookName]: Exclude<Awaited<ReturnType<NonNullable<SessionHooks[K]>>>, null | void>;
};

type Schemas = {
  readonly [K in HookName]: { readonly [F in keyof Outputs[K]]-?: z.core.$ZodType<Required<Outputs[K]>[F]> };
};

const text = z.string();
const flag = z.boolean();
const fields = z.record(z.string(), z.unknown());
const anything = z.unknown().refine((value) => value !== null);

const schemas: Required<Schemas> = {
  onSessionStart: { additionalContext: text, modifiedConfig: fields },
  onUserPromptSubmitted: { modifiedPrompt: text, additionalContext: text, suppressOutput: flag },
  onUserPromptTransformed: { modifiedTransformedPrompt: text },
  onPreToolUse: {
    permissionDecision: word("allow", "deny", "ask"),
    permissionDecisionReason: text,
    modifiedArgs: anything,
    additionalContext: text,
    suppressOutput: flag,
  },
  onPreMcpToolCall: { metaToUse: fields.nullable() },
  onPostToolUse: { modifiedResult: anything, additionalContext: text, suppressOutput: flag },
  onPostToolUseFailure: { additionalContext: text },
  onErrorOccurred: {
    suppressOutput: flag,
    errorHandling: word("retry", "skip", "abort"),
    retryCount: z.number().min(0),
    userNotification: text,
  },
  onAgentStop: { decision: word("block"), reason: text },
  onSessionEnd: { suppressOutput: flag, cleanupActions: z.array(z.union([text, fields])), sessionSummary: text },
};

/** The names of all hooks. */
export const hookNames = Object.keys(schemas) as readonly HookName[]; // the type of `schemas` says so

/** The hooks before a call or a prompt: there, a denial counts in whatever form. */
const guards: readonly HookName[] = [
  ...["onPreToolUse", "onPreMcpToolCall", "onUserPromptSubmitted", "onUserPromptTransformed"] as const,
];

/** Returns the decision in an output that has the form of another system, if the hook guards a call or a prompt. */
export function foreignOutput(name: HookName, given: unknown): ForeignDecision | undefined {
  if (!guards.includes(name)) return undefined;
  const isValid = (decision: unknown) => z.safeParse(schemas.onPreToolUse.permissionDecision, decision).success;
  return foreignDecision(
    given,
    (member) =>
      member === "permissionDecision" && name === "onPreToolUse" && isObject(given) &&
      isValid(given.permissionDecision),
  );
}

/** Returns the decision in a text that is no output, if the hook guards a call or a prompt. */
export function foreignText(name: HookName, text: string): ForeignDecision | undefined {
  return guards.includes(name) ? decisionInText(text) : undefined;
}

/** Returns a text that names the members of an output that are unknown, and that the input of the hook does not have. */
export function unknownOutput(name: HookName, given: unknown, input: object): string | undefined {
  return unknownMembers(given, [...Object.keys(schemas[name]), ...Object.keys(input)]);
}

/** Reads the output of a hook. `onInvalid` receives one text per invalid field. */
export function readOutput<K extends HookName>(
  name: K,
  given: unknown,
  onInvalid: (problem: string) => void,
): Outputs[K] {
  if (!isObject(given)) onInvalid(`expected an object, received ${typeof given}`);
  const output = readFields<Readonly<Record<string, z.core.$ZodType>>>(
    schemas[name],
    isObject(given) ? given : {},
    (field, problem) => {
      onInvalid(`${field}: ${problem}`);
    },
  );
  return output as Outputs[K]; // each field was parsed by its own schema
}
