/**
 * What commands are told, and how they say what they say.
 *
 * @module
 */
import * as z from "zod";

/** What is said to an event; what is not said is no opinion. */
export type CommandOutput = Readonly<Record<string, unknown>>;

/** What a command is told of an event. */
export const told = z.looseObject({
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

/** What a command is told of an event. */
export type Told = z.output<typeof told>;

/** What is decided about a call. */
export function decided(
  permissionDecision: "deny" | "ask",
  permissionDecisionReason: string,
  more: object = {},
): CommandOutput {
  return specific("PreToolUse", { permissionDecision, permissionDecisionReason, ...more });
}

/** What is said to one event alone. */
export function specific(hookEventName: string, said: object): CommandOutput {
  return Object.keys(said).length === 0 ? {} : { hookSpecificOutput: { hookEventName, ...said } };
}
