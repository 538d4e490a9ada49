/**
 * What hooks give back, field by field: one that is not in form is left out, and takes no other with it.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import type * as hooks from "./hooks.ts";

/** What each hook gives back. */
export interface Outputs {
  /** When a session begins. */
  readonly onSessionStart: hooks.SessionStartHookOutput;
  /** When a person has said something. */
  readonly onUserPromptSubmitted: hooks.UserPromptSubmittedHookOutput;
  /** When a prompt is about to be kept. */
  readonly onUserPromptTransformed: hooks.UserPromptTransformedHookOutput;
  /** Before a call is made. */
  readonly onPreToolUse: hooks.PreToolUseHookOutput;
  /** Before a call goes to an MCP server. */
  readonly onPreMcpToolCall: hooks.PreMcpToolCallHookOutput;
  /** After a call has succeeded. */
  readonly onPostToolUse: hooks.PostToolUseHookOutput;
  /** After a call has failed. */
  readonly onPostToolUseFailure: hooks.PostToolUseFailureHookOutput;
  /** When something has failed. */
  readonly onErrorOccurred: hooks.ErrorOccurredHookOutput;
  /** When the agent is about to stop. */
  readonly onAgentStop: hooks.AgentStopHookOutput;
  /** When a run of a session ends. */
  readonly onSessionEnd: hooks.SessionEndHookOutput;
}

/** The name of a hook. */
export type HookName = keyof Outputs;

type Forms = { readonly [K in HookName]: { readonly [F in keyof Outputs[K]]-?: z.ZodType<Required<Outputs[K]>[F]> } };

const text = z.string();
const flag = z.boolean();

const forms: Forms = {
  onSessionStart: { additionalContext: text, modifiedConfig: z.record(z.string(), z.unknown()) },
  onUserPromptSubmitted: { modifiedPrompt: text, additionalContext: text, suppressOutput: flag },
  onUserPromptTransformed: { modifiedTransformedPrompt: text },
  onPreToolUse: {
    permissionDecision: word("allow", "deny", "ask"),
    permissionDecisionReason: text,
    modifiedArgs: z.unknown(),
    additionalContext: text,
    suppressOutput: flag,
  },
  onPreMcpToolCall: { metaToUse: z.record(z.string(), z.unknown()).nullable() },
  onPostToolUse: { modifiedResult: z.unknown(), additionalContext: text, suppressOutput: flag },
  onPostToolUseFailure: { additionalContext: text },
  onErrorOccurred: {
    suppressOutput: flag,
    errorHandling: word("retry", "skip", "abort"),
    retryCount: z.number().min(0),
    userNotification: text,
  },
  onAgentStop: { decision: word("block"), reason: text },
  onSessionEnd: { suppressOutput: flag, cleanupActions: z.array(text), sessionSummary: text },
};

/** The names of all hooks. */
export const hookNames = Object.keys(forms) as readonly HookName[]; // as `Forms` says

/** One of these words, however it is capitalized. */
function word<const T extends readonly string[]>(...words: T): z.ZodType<T[number]> {
  return z.preprocess((given) => typeof given === "string" ? given.trim().toLowerCase() : given, z.enum(words));
}

/** Reads what the hook `name` gave; `complain` is told of every field that is left out. */
export function read<K extends HookName>(name: K, given: unknown, complain: (message: string) => void): Outputs[K] {
  const output: Record<string, unknown> = {};
  if (typeof given !== "object" || Array.isArray(given)) complain(`expected an object, received ${typeof given}`);
  else {
    const fields: Readonly<Record<string, unknown>> = { ...given };
    for (const [field, form] of Object.entries<z.ZodType>(forms[name])) {
      const value = fields[field];
      if (value === undefined) continue;
      const parsed = form.safeParse(value);
      if (parsed.success) output[field] = parsed.data;
      else if (value !== null) complain(`${field}: ${describeIssues(parsed.error.issues)}`);
    }
  }
  return output as Outputs[K]; // each field as its form says
}
