/**
 * What a command has said by its exit code and its output, as a hook says it.
 *
 * @module
 */
import * as z from "zod";
import { lines } from "../claude_hooks/answers.ts";
import type { HookEvent } from "../claude_hooks/input.ts";
import type { Exited } from "./process.ts";

/** Events at which exit code 2 blocks, or is told to the model. */
const blockable: readonly HookEvent[] = [
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

const object = z.looseObject({});
const maybe = z.string().optional().catch(undefined);
/** What of an object says that something is blocked, and why. */
const blocking = z.object({
  decision: maybe,
  reason: maybe,
  systemMessage: maybe,
  hookSpecificOutput: z.looseObject({
    permissionDecision: maybe,
    permissionDecisionReason: maybe,
    additionalContext: maybe,
  }).optional().catch(undefined),
});

/**
 * What `command` has said. Exit code 2 blocks, whatever else it says; with any other, JSON says what it says. Throws where it failed, which is every other
 * code but 0, and JSON that is none.
 */
export function saidBy({ code, stdout, stderr }: Exited, event: HookEvent, command: string): unknown {
  const written = stdout.trim();
  const json = jsonIn(written, event);
  const said = objectIn(json);
  if (code === 2) return blocked(event, said, stderr.trim());
  if (said) return said;
  const failed = (why: string) => new Error(`Cannot use what the command said: ${why} (${command})`);
  if (json !== "" && json === written) throw failed("it looks like JSON, and is none");
  if (code !== 0) throw failed(`exit code ${code}. ${stderr.trim()}`);
  if (written === "") return undefined;
  if (event === "WorktreeCreate") return about(event, { worktreePath: written.slice(written.lastIndexOf("\n") + 1) });
  return telling.includes(event) ? about(event, { additionalContext: written }) : undefined;
}

/** What may be JSON in what was written: all of it, or, where text is for nobody, what stands among lines that are none. */
export function jsonIn(written: string, event?: HookEvent): string {
  const [json = ""] = written.match(event && telling.includes(event) ? /^\{[^]*\}$/ : /^\{[^]*\}$/m) ?? [];
  return json;
}

/** The object that a text is the JSON of; nothing where it is none. */
export function objectIn(text: string): object | undefined {
  try {
    return text === "" ? undefined : object.parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What exit code 2 means, beside what the JSON says: its reason where it blocks, or what was written for people. */
function blocked(event: HookEvent, said: object | undefined, stderr: string): unknown {
  const { decision, reason, systemMessage, hookSpecificOutput: specific } = blocking.parse(said ?? {});
  const given = specific?.permissionDecisionReason ?? reason;
  const blocks = decision === "block" || specific?.permissionDecision === "deny";
  const why = (blocks ? given : undefined) ?? (stderr || given);
  if (blockable.includes(event)) {
    return {
      ...said,
      decision: "block",
      reason: why,
      ...(specific && {
        hookSpecificOutput: { ...specific, permissionDecision: "deny", permissionDecisionReason: why },
      }),
    };
  }
  if (event !== "PostToolUseFailure") return { ...said, systemMessage: lines([systemMessage, why]) };
  return { ...said, ...about(event, { ...specific, additionalContext: lines([specific?.additionalContext, why]) }) };
}

/** What is said to one event. */
export function about(hookEventName: HookEvent, said: object): object {
  return { hookSpecificOutput: { hookEventName, ...said } };
}
