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
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param: field ?? null, code, id } };
}

/** Why there is no answer, where there is none. */
export function errorOf(
  last: Last,
): { readonly message: string; readonly type: string; readonly code: string } | undefined {
  if (last.type === "run.failed") return { message: last.message, type: "server_error", code: last.error };
  if (last.type !== "run.aborted") return undefined;
  return { message: `The run was stopped: ${last.reason}`, type: "server_error", code: "aborted" };
}
