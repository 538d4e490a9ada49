/**
 * What the calls of a batch come to: one result for each, whatever cut it short.
 *
 * @module
 */
import {
  type AssistantMessage,
  type CallResult,
  callsOf,
  type ContentPart,
  type ToolResult,
} from "../protocol/message.ts";
import type { PendingResult } from "../protocol/session.ts";
import { failed } from "./answers.ts";
import type { Entry } from "./entry.ts";
import { isInterrupt, Pause } from "./interrupt.ts";
import type { Live } from "./live.ts";
import { interrupted, stopped } from "./perform.ts";
import { result } from "./result.ts";
import { contextMessages } from "./transcript.ts";

/** Why nothing of a batch may run. */
export interface Cut {
  readonly reason: string;
  readonly pause?: Pause;
}

/** Why nothing more may run, as far as this call shows. */
export function cutBy(entry: Entry): Cut | undefined {
  const { live, failures } = entry;
  const pause = pauseOf(entry);
  if (pause) return { reason: "the run was paused", pause };
  if (live.ended) return { reason: live.ended.reason };
  if (live.aborted) return { reason: "the run was stopped" };
  return failures.every(isInterrupt) ? undefined : { reason: "a hook failed" };
}

/** The pause that a hook of this call threw. */
export function pauseOf({ failures }: Entry): Pause | undefined {
  return failures.find((error) => error instanceof Pause);
}

/** What a call came to: never a result that a hook failed to review. */
export function resultOf(entry: Entry, cut: Cut | undefined = cutBy(entry)): ToolResult {
  const { result, failures, step, raw, waiting, live } = entry;
  if (waiting) return raw && raw !== stopped ? withheld() : notRun(cut);
  if (result) return result;
  const threw = !live.aborted && !failures.every(isInterrupt);
  return threw || raw || step?.type === "answer" ? withheld(cut) : notRun(cut);
}

const ended: Cut = { reason: "the run was ended" };

/** What a call comes to whose result nobody is shown. */
export function withheld({ reason }: Pick<Cut, "reason"> = ended): ToolResult {
  return failed(`Withheld: ${reason}.`);
}

/** What a call comes to that may not run. */
export function notRun({ reason } = ended): ToolResult {
  return result("aborted", `Not run: ${reason}.`);
}

/** Texts cut to `limit` characters, after every hook has seen them whole. */
export function bounded(parts: readonly ContentPart[], limit: number): readonly ContentPart[] {
  let left = limit;
  return parts.map((part) => {
    if (part.type !== "text") return part;
    const { length } = part.text;
    const fits = length <= left;
    const kept = part.text.slice(0, left);
    const text = fits ? part.text : `${kept.toWellFormed()}\n[cut: ${left} of ${length} characters]`;
    left = Math.max(0, left - length);
    return fits ? part : { ...part, text };
  });
}

/** Adds the message and its results to the transcript, and after them what they say beside. */
export function commit(
  live: Live,
  message: AssistantMessage,
  answered: ReadonlyMap<string, PendingResult>,
  rest: ToolResult = stopped,
): readonly CallResult[] {
  live.unfinished = undefined;
  live.batch = undefined;
  live.answered = live.answered.filter(({ answer }) => answer.callId === undefined);
  const context: string[] = [];
  const results = callsOf(message).map(({ id, name }): CallResult => {
    const { context: said = [], ...result } = answered.get(id) ?? { status: rest.status, parts: rest.parts };
    context.push(...said);
    return { ...result, callId: id, name };
  });
  const cut = new Set(results.flatMap(({ callId, status }) => status === "aborted" ? [callId] : []));
  live.open = live.open.filter(({ id }) => cut.has(id));
  live.transcript.push(message, { role: "tool", results }, ...contextMessages(context, "context"));
  return results;
}

/** Adds a batch that a pause left open and nobody goes on with; `rest` is what its open calls come to that were not let run. */
export function leaveBatch(live: Live, rest: ToolResult = stopped): void {
  const { batch } = live.pending ?? {};
  live.pending = undefined;
  if (!batch) return;
  const { message, results, started = [] } = batch;
  const { status, parts } = interrupted;
  const answered = new Map<string, PendingResult>();
  for (const { callId, tool: name } of started) answered.set(callId, { callId, name, status, parts });
  for (const result of results) answered.set(result.callId, result);
  commit(live, message, answered, rest);
}
