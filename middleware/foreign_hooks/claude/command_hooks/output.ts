/**
 * The outputs of commands and of other handlers in files, as outputs of hooks.
 *
 * @module
 */
import * as z from "zod";
import type { Dialect } from "../dialect.ts";
import { events, guardsCall, type HookEvent } from "../events.ts";
import { joinLines } from "../../kit/answers.ts";
import { decisionInText, type ForeignDecision, foreignDecision } from "../../kit/denial.ts";
import { commandError, type Exited, readJson } from "../../kit/process.ts";

type Fields = Readonly<Record<string, unknown>>;

const maybe = z.string().optional().catch(undefined);
/** The fields that block, and their reasons. */
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

/** A handler whose output is read. */
export interface Speaker {
  readonly event: HookEvent;
  readonly dialect: Dialect;
  /** The command, or the address, for errors. */
  readonly name: string;
}

/**
 * Returns the output of a command that has exited. Exit code 2 blocks at events that can be blocked, and a denial in the output in any form, also amid other
 * text. Throws if the command failed: for every other code except 0, and for invalid JSON.
 */
export function outputOf({ code, stdout, stderr }: Exited, { event, dialect, name }: Speaker): unknown {
  const written = stdout.trim();
  const { json, broken } = readJson(written, dialect.wholeOutput || events[event].plainText === true, dialect);
  const denial = guardsCall(event) ? denialIn(written, event) : undefined;
  const isInJson = denial !== undefined && json !== undefined && denialOf(event, json) !== undefined;
  if (code === 2 && dialect.ignoresExit2.includes(event)) return denial && blocked(denial);
  if (code === 2) return blockedOutput(event, json, stderr.trim());
  if (denial && !isInJson) return blocked(denial);
  if (json && (code === 0 || !dialect.wholeOutput || isInJson || denies(json))) return json;
  if (broken) throw commandError(broken, name);
  if (code !== 0) throw commandError(`exit code ${code}. ${stderr.trim()}`, name);
  if (json || written === "") return json;
  if (event === "WorktreeCreate") {
    return specificOutput(event, { worktreePath: written.slice(written.lastIndexOf("\n") + 1) });
  }
  return events[event].plainText ? specificOutput(event, { additionalContext: written }) : undefined;
}

/** Finds a denial in the output of a guard. At events with plain text, an output is no text only if it begins as JSON does. */
function denialIn(written: string, event: HookEvent): ForeignDecision | undefined {
  if (events[event].plainText && !/^[[{"]/.test(written)) return undefined;
  const found = decisionInText(written);
  return found?.type === "deny" ? found : undefined;
}

/** Returns the output for a denial, in any form, in the answer of a handler that failed; undefined without one, and at events that guard nothing. */
export function denialOf(event: HookEvent, answer: unknown): Fields | undefined {
  const found = guardsCall(event) ? foreignDecision(answer) : undefined;
  return found?.type === "deny" ? blocked(found) : undefined;
}

function blocked({ reason }: ForeignDecision): Fields {
  return { decision: "block", ...(reason !== undefined && { reason }) };
}

function denies(json: Fields): boolean {
  const { decision, hookSpecificOutput: specific } = blocking.parse(json);
  return decision === "block" || specific?.permissionDecision === "deny";
}

/** Returns the output of a command with exit code 2. The reason is the one of a block in its JSON, else its standard error. */
function blockedOutput(event: HookEvent, json: Fields = {}, stderr: string): unknown {
  const { reason, systemMessage, hookSpecificOutput: specific } = blocking.parse(json);
  const reasonText = specific?.permissionDecisionReason ?? reason;
  const why = (denies(json) ? reasonText : undefined) ?? (stderr || reasonText);
  const { exit2 } = events[event];
  if (exit2 === undefined) return { ...json, systemMessage: joinLines([systemMessage, why]) };
  if (exit2 === "context") {
    const additionalContext = joinLines([specific?.additionalContext, why]);
    return { ...json, ...specificOutput(event, { ...specific, additionalContext }) };
  }
  const deny = { permissionDecision: "deny", permissionDecisionReason: why };
  return {
    ...json,
    decision: "block",
    reason: why,
    ...(specific && { hookSpecificOutput: { ...specific, ...deny } }),
  };
}

/** Returns an output with fields of one event. */
export function specificOutput(hookEventName: HookEvent, fields: Fields): Fields {
  return { hookSpecificOutput: { hookEventName, ...fields } };
}
