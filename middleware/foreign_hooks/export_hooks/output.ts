/**
 * The inputs and outputs of commands.
 *
 * @module
 */
import * as z from "zod";

/** The output of a command. An empty object means no opinion. */
export type CommandOutput = Readonly<Record<string, unknown>>;

/** The schema of the input of a command. */
export const commandInput = z.looseObject({
  hook_event_name: z.string(),
  session_id: z.string().default(""),
  prompt_id: z.string().optional(),
  tool_name: z.string().default(""),
  tool_input: z.unknown().optional(),
  tool_use_id: z.string().default(""),
  tool_response: z.unknown().optional(),
  error: z.string().default(""),
  prompt: z.string().default(""),
  source: z.string().default("startup"),
  stop_hook_active: z.boolean().default(false),
  last_assistant_message: z.string().default(""),
});

/** The input of a command. */
export type CommandInput = z.output<typeof commandInput>;

/** Returns the output of a decision about a call. */
export function decided(
  permissionDecision: "deny" | "ask",
  permissionDecisionReason: string,
  more: object = {},
): CommandOutput {
  return specific("PreToolUse", { permissionDecision, permissionDecisionReason, ...more });
}

/** Returns an output with fields of one event. */
export function specific(hookEventName: string, fields: object): CommandOutput {
  return Object.keys(fields).length === 0 ? {} : { hookSpecificOutput: { hookEventName, ...fields } };
}
