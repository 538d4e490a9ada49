/**
 * The results of a batch: one for each call, whatever cut the batch short, and the failures that end the run.
 *
 * @module
 */
import type { AssistantMessage, CallResult, Message, ToolResult } from "../../protocol/message.ts";
import { isInterrupt, Pause } from "../hooks/interrupt.ts";
import type { OpenCall } from "./call.ts";
import { bounded, interrupted, notRun, stopped, withheld } from "./outcome.ts";
import { decideOnError } from "../run/failure.ts";
import type { CallRecord, ReviewedResult } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { contextMessages } from "../run/transcript.ts";

/** The reason why no call of a batch may run. */
export interface Cut {
  readonly reason: string;
  readonly pause?: Pause;
}

/** Returns the reason why no further call may run, as far as this call shows. */
export function cutOf(
  { scope: { engine: { exit: { current: exit }, control } }, failures }: OpenCall,
): Cut | undefined {
  const pause = failures.find((error) => error instanceof Pause);
  if (pause) return { reason: "the run was paused", pause };
  if (exit && exit.status !== "aborted" && exit.status !== "deadline") {
    return { reason: exit.reason ?? "the run was ended" };
  }
  if (exit || control.aborted) return { reason: "the run was stopped" };
  return failures.every(isInterrupt) ? undefined : { reason: "a hook failed" };
}

/** Returns the reason why a call did not run, for the model. */
export function reasonOf(call: OpenCall, cut = cutOf(call)): string {
  return cut?.reason ?? "the run was ended";
}

/** Returns the result of a call. It is never a result that a hook failed to review. */
export function resultOfCall(call: OpenCall, cut?: Cut): ToolResult {
  const { result, failures, decision, raw, waiting, record: { state }, scope: { engine } } = call;
  if (result && !waiting) return result;
  const reason = reasonOf(call, cut);
  if (waiting) return raw && raw !== stopped ? withheld("the run was ended") : notRun(reason);
  const threw = !engine.control.aborted && !failures.every(isInterrupt);
  if (threw || raw || decision?.type === "answer" || state === "ran") return withheld(reason);
  return state === "running" ? interrupted : notRun(reason);
}

/** Returns the result of a call as the transcript keeps it. */
export function keptResult(
  { record: { call: { id, name } }, note, scope: { engine } }: OpenCall,
  given: ToolResult,
): ReviewedResult {
  const { status, parts, context = [], artifacts, handled } = given;
  const texts = note === undefined ? context : [...context, note];
  return {
    callId: id,
    name,
    status,
    parts: bounded(parts, engine.limits.output),
    ...(artifacts && { artifacts }),
    ...(handled && status === "ok" && { handled }),
    ...(texts.length > 0 && { context: texts }),
    ...(given.rewritten && given.input !== undefined && { rewritten: { input: given.input } }),
  };
}

/** Emits the result of a call. */
export function announceResult(call: OpenCall, { person, silent }: ToolResult, kept: ReviewedResult): void {
  const { scope: { engine, emit }, place: { turn }, failures } = call;
  try {
    call.announce();
    const result = { ...withoutAdditions(kept), ...(silent && { parts: [] }) };
    engine.events.announce(emit, { type: "tool.finished", turn, call: kept.callId, result });
    if (person !== undefined && !silent) emit({ type: "notice", text: person });
  } catch (error) {
    failures.push(error);
  }
}

/** Returns the messages of a batch: the message with the calls, one result per call, and the context that they add. */
export function batchMessages(
  message: AssistantMessage,
  records: readonly CallRecord[],
  replacement?: ToolResult,
): readonly Message[] {
  const context: string[] = [];
  const inputs = new Map<string, unknown>();
  const results = records.map((record): CallResult => {
    const { call: { id, name } } = record;
    if (record.state !== "done" || replacement) {
      const { status, parts } = replacement ?? stopped;
      return { callId: id, name, status, parts };
    }
    const { result: reviewed } = record;
    if (reviewed.context) context.push(...reviewed.context);
    if (reviewed.rewritten) inputs.set(id, reviewed.rewritten.input);
    return withoutAdditions(reviewed);
  });
  return [replaceInputs(message, inputs), { role: "tool", results }, ...contextMessages(context, "context")];
}

/** Returns a result without what is beside it for the model. */
function withoutAdditions(reviewed: ReviewedResult): CallResult {
  if (!reviewed.context && !reviewed.rewritten) return reviewed;
  const { context: _, rewritten: __, ...result } = reviewed;
  return result;
}

/** Returns the message with other inputs of calls, by call id. */
function replaceInputs(message: AssistantMessage, inputs: ReadonlyMap<string, unknown>): AssistantMessage {
  if (inputs.size === 0) return message;
  const parts = message.parts.map((part) =>
    part.type === "call" && inputs.has(part.id) ? { ...part, input: inputs.get(part.id) } : part
  );
  return { ...message, parts };
}

/** Runs the `error` hooks for hooks that failed. Returns the failures that end the run. */
export async function fatalErrors(scope: StepScope, calls: readonly OpenCall[]): Promise<readonly unknown[]> {
  const { engine } = scope;
  const fatal: unknown[] = [];
  for (const call of calls) {
    for (const error of call.failures) {
      if (!call.waiting) {
        const isKnown = isInterrupt(error) || engine.control.aborted || engine.seenErrors.includes(error);
        const failure = { error, source: "tool", recoverable: false, attempt: 1, call: call.record.call } as const;
        if (isKnown || (await decideOnError(scope, failure)).type === "abort") fatal.push(error);
      } else if (!isInterrupt(error)) {
        engine.events.warn("hook.failed", "A hook failed while its call waited.", { point: "tool", error });
      }
    }
  }
  const others = engine.control.aborted ? [] : fatal.slice(1); // the result of the run reports the first
  for (const error of others) if (!isInterrupt(error)) engine.events.report(error);
  return fatal;
}
