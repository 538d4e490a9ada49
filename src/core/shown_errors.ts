/**
 * Shown errors: the parts of an error that clients and the model see. A client sees the code of a `ModelError` and when to try again, the model the message of a
 * `ToolError`. Nothing internal is shown: the whole error goes to `onError` (`Events.report` in `events.ts`).
 *
 * @module
 */
import { failed, result } from "./hook_answers.ts";
import { ToolError } from "./tool.ts";
import { ModelError } from "../model/model.ts";
import type { FailureCode } from "../protocol/event.ts";
import type { ToolResult } from "../protocol/message.ts";

/** Returns the facts about a failure that clients may know. */
export function failureFacts(error: unknown): { readonly code: FailureCode; readonly retryAfter?: number } {
  try {
    const { code, retryAfter } = error instanceof ModelError ? error : { code: "internal" } as const;
    return { code, ...(retryAfter !== undefined && { retryAfter }) };
  } catch {
    return { code: "internal" } as const; // a getter has thrown
  }
}

/** Returns the result that the model reads of an error: the message of a `ToolError`, and nothing internal. */
export function resultOfError(name: string, error: unknown): ToolResult {
  if (error instanceof ToolError) return failed(error.message);
  return error instanceof DOMException && error.name === "TimeoutError"
    ? result("timeout", `${name} did not finish in time.`)
    : failed(`${name} failed.`);
}

/** Returns a thrown value, or an error in its place if hooks and receivers of errors could not read it. */
export function readable(thrown: unknown): unknown {
  return isReadable(thrown)
    ? thrown
    : new TypeError("Cannot read what the tool threw: it is a proxy, or an error without a name or a message as text");
}

function isReadable(thrown: unknown): boolean {
  try {
    const { name, message } = Object(thrown);
    const isText = !(thrown instanceof Error) || (typeof name === "string" && typeof message === "string");
    return isText && !("~unreadable" in Object(thrown)); // asks a proxy too
  } catch {
    return false;
  }
}
