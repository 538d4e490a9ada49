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
  const { said, broken } = readIn(written, event);
  if (code === 2) return blocked(event, said, stderr.trim());
  if (said) return said;
  if (broken) throw failure(broken, command);
  if (code !== 0) throw failure(`exit code ${code}. ${stderr.trim()}`, command);
  if (written === "") return undefined;
  if (event === "WorktreeCreate") return about(event, { worktreePath: written.slice(written.lastIndexOf("\n") + 1) });
  return telling.includes(event) ? about(event, { additionalContext: written }) : undefined;
}

/** The error for a command that failed, and why. */
export function failure(why: string, command: string): Error {
  return new Error(`Cannot use what the command said: ${why} (${command})`);
}

/** What was written, read. */
export interface Read {
  /** The object that it is the JSON of, or, where text is for nobody, that stands among lines that are none. */
  readonly said?: object;
  /** What is wrong with it, where all of it looks like JSON. */
  readonly broken?: string;
}

/** Reads what was written at an event. */
export function readIn(written: string, event?: HookEvent): Read {
  const [json] = written.match(event && telling.includes(event) ? /^\{[^]*\}$/ : /^\{[^]*\}$/m) ?? [];
  if (json === undefined) return {};
  try {
    return { said: object.parse(JSON.parse(json)) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return json === written ? { broken: "it looks like JSON, and is none" } : {};
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
