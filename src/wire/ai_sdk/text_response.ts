/**
 * Responses of plain text, whose client sees a run that did not finish as an error: by the status, or by a broken stream.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { failedResponse } from "../failed_response.ts";
import { finishOfRun } from "../finish_reason.ts";

/** The end of a run without an answer, with a message for the person. */
export interface TextFailure {
  readonly end: Event;
  readonly message: string;
}

/** Returns the failure that an event means for a client that waits for an answer. */
export function textFailure(end: Event): TextFailure | undefined {
  switch (end.type) {
    case "run.failed":
      return { end, message: end.message };
    case "run.aborted":
      return { end, message: `The run was stopped: ${end.reason}` };
    case "run.paused":
      return { end, message: "The run waits for an answer of a person." };
    case "run.finished": {
      if (end.status === "cancelled") return { end, message: end.reason ?? "The prompt was refused." };
      const isWhole = end.output !== undefined || /^(stop|calls|other)$/.test(finishOfRun(end, end.finish ?? "other"));
      return isWhole ? undefined : { end, message: `The answer is not complete: ${end.reason ?? end.finish}` };
    }
    default:
      return undefined;
  }
}

/**
 * Sends a response once its first text is there. If the run has failed before, the response is an error with a status. If it fails later, the stream breaks.
 * `failure` returns the failure of the run, once it has ended. The text is cancelled if `signal` aborts before the response is sent.
 */
export async function sendText(
  response: Response,
  signal: AbortSignal,
  failure: () => TextFailure | undefined,
): Promise<Response> {
  const reader = (response.body ?? new Blob().stream()).getReader();
  const leave = () => void reader.cancel(signal.reason); // never rejects: the server's stream has no other source
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  const first = await reader.read();
  signal.removeEventListener("abort", leave);
  const failed = failure();
  if (first.done && failed) return errorResponse(failed);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (first.value) controller.enqueue(first.value);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      const failed = failure();
      if (failed) controller.error(new Error(failed.message));
      else controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

function codeOf(end: Event): string {
  if (end.type !== "run.finished") return end.type.slice("run.".length);
  return end.status === "done" ? end.finish ?? "other" : end.status;
}

function errorResponse({ end, message }: TextFailure): Response {
  const { code, error: id } = end.type === "run.failed" ? end : { code: codeOf(end), error: undefined };
  const { status, body, retryAfter } = failedResponse(end, { error: { code, message, id } });
  const wait = retryAfter === undefined ? undefined : { "retry-after": String(Math.ceil(retryAfter / 1000)) };
  return Response.json(body, { status, ...(wait && { headers: wait }) });
}
