/**
 * What a command has said by its exit code and its output, as a hook says it.
 *
 * @module
 */
import * as z from "zod";
import type { HookEvent } from "../claude_hooks/input.ts";
import type { Exited } from "./process.ts";

/** Events at which exit code 2 blocks, or is told to the model. */
const blocking: readonly HookEvent[] = [
  "PreToolUse",
  "PostToolUse",
  "PostToolBatch",
  "PermissionRequest",
  "UserPromptSubmit",
  "UserPromptExpansion",
  "Stop",
  "SubagentStop",
  "PreCompact",
];
/** Events at which what is written, and is no JSON, is for the model. */
const telling: readonly HookEvent[] = ["UserPromptSubmit", "UserPromptExpansion", "SessionStart", "PostModelSwitch"];

const reasons = z.object({
  reason: z.string().optional(),
  hookSpecificOutput: z.object({ permissionDecisionReason: z.string().optional() }).optional(),
}).catch({});

/**
 * What a command has said. Exit code 2 blocks, whatever else it says; any other, with JSON, says what the JSON says. Throws where it failed, which is
 * every other code but 0, and JSON that is none.
 */
export function saidBy({ code, stdout, stderr }: Exited, event: HookEvent): unknown {
  const written = stdout.trim();
  const isJson = written.startsWith("{") && written.endsWith("}");
  if (code === 2) return blocked(event, reasonIn(written) ?? stderr.trim());
  if (isJson) return JSON.parse(written);
  if (code !== 0) throw new Error(`Cannot use what the command said: exit code ${code}. ${stderr.trim()}`);
  if (written === "") return undefined;
  if (event === "WorktreeCreate") return about(event, { worktreePath: written.slice(written.lastIndexOf("\n") + 1) });
  return telling.includes(event) ? about(event, { additionalContext: written }) : undefined;
}

function blocked(event: HookEvent, why: string): unknown {
  if (blocking.includes(event)) return { decision: "block", ...(why && { reason: why }) };
  if (event === "PostToolUseFailure") return about(event, { additionalContext: why });
  return { systemMessage: why };
}

function reasonIn(written: string): string | undefined {
  try {
    const { reason, hookSpecificOutput } = reasons.parse(JSON.parse(written));
    return hookSpecificOutput?.permissionDecisionReason ?? reason;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What is said to one event. */
export function about(hookEventName: HookEvent, said: object): unknown {
  return { hookSpecificOutput: { hookEventName, ...said } };
}
