/**
 * How a run has ended, in OpenAI's words, which are the same in both of its dialects.
 *
 * @module
 */
import type { Refused } from "../wire.ts";
import type { Event } from "../../protocol/event.ts";

/** The last event of a response. */
export type Last = Extract<Event, { readonly type: "run.finished" | "run.paused" | "run.failed" | "run.aborted" }>;

/** Why a request is not served. */
export function refuse({ status, code, message, field, id }: Refused): object {
  const type = status < 500 ? "invalid_request_error" : undefined;
  return { error: { ...errorWith(message, code, type), param: field ?? null, id } };
}

/** Why there is no answer, where there is none. */
export function errorOf(last: Last): object | undefined {
  if (last.type === "run.failed") return errorWith(last.message, last.error);
  return last.type === "run.aborted" ? errorWith(`The run was stopped: ${last.reason}`, "aborted") : undefined;
}

function errorWith(message: string, code: string, type = "server_error"): object {
  return { message, type, code };
}
