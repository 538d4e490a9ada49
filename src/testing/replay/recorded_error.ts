/**
 * Errors in a recording.
 *
 * @module
 */
import { ToolError } from "../../core/tool.ts";
import { End, isInterrupt, Pause } from "../../core/interrupt.ts";
import { ModelError, type ModelErrorCode } from "../../model/model.ts";
import type { Question } from "../../protocol/question.ts";

/** A thrown value: an interrupt, an error of the model or of a tool, or any other error by its name and message. */
export type RecordedError =
  | {
    readonly type: "end";
    readonly reason: string;
    readonly options: Pick<End, "as" | "rollback" | "withhold" | "tree">;
  }
  | { readonly type: "pause"; readonly questions: readonly Question[]; readonly saved?: unknown }
  | {
    readonly type: "model";
    readonly message: string;
    readonly options: {
      readonly recoverable: boolean;
      readonly overflow: boolean;
      readonly code: ModelErrorCode;
      readonly retryAfter?: number;
      readonly status?: number;
    };
  }
  | { readonly type: "tool"; readonly message: string }
  | { readonly type: "dom"; readonly name: string; readonly message: string }
  | { readonly type: "other"; readonly name: string; readonly message: string };

/** Describes a thrown value. */
export function recordError(error: unknown): RecordedError {
  if (error instanceof End) {
    const { reason, as, rollback, withhold, tree } = error;
    return { type: "end", reason, options: { as, rollback, withhold, tree } };
  }
  if (error instanceof Pause) {
    return { type: "pause", questions: error.questions, ...(error.saved !== undefined && { saved: error.saved }) };
  }
  if (error instanceof ModelError) {
    const { message, recoverable, overflow, code, retryAfter, status } = error;
    const more = { ...(retryAfter !== undefined && { retryAfter }), ...(status !== undefined && { status }) };
    return { type: "model", message, options: { recoverable, overflow, code, ...more } };
  }
  if (error instanceof ToolError) return { type: "tool", message: error.message };
  if (error instanceof DOMException) return { type: "dom", name: error.name, message: error.message };
  return error instanceof Error && !isInterrupt(error)
    ? { type: "other", name: error.name, message: error.message }
    : { type: "other", name: "Error", message: String(error) };
}

/** Returns an error like the recorded one. */
export function errorOf(recorded: RecordedError): Error {
  switch (recorded.type) {
    case "end":
      return new End(recorded.reason, recorded.options);
    case "pause":
      return new Pause(recorded.questions, recorded.saved);
    case "model":
      return new ModelError(recorded.message, recorded.options);
    case "tool":
      return new ToolError(recorded.message);
    case "dom":
      return new DOMException(recorded.message, recorded.name);
    case "other":
      return Object.assign(new Error(recorded.message), { name: recorded.name });
  }
}
