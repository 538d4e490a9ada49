/**
 * Responses of plain text, whose client sees a run that did not finish as an error, and the wire of `useObject`, which reads them.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { user } from "../../protocol/message.ts";
import { expectNames, json } from "../../protocol/shape.ts";
import { failedResponse, type TextFailure, textFailure } from "../failed_response.ts";
import { appendJson } from "../json_answer.ts";
import { type EventEncoder, type ParsedRequest, type Reply, tableEncoder, type Wire } from "../wire.ts";

// Responses of plain text: a failed run is an error by the status, or a broken stream.

/**
 * Sends a response once its first text is there. If the run has failed before, the response is an error with a status. If it fails later, the stream breaks.
 * `failure` returns the failure of the run, once it has ended. The text is cancelled if `signal` aborts before the response is sent.
 */
async function sendText(
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

// The wire of the AI SDK's `useObject`.

/** Options of `aiSdkObject()`. */
export interface AiSdkObjectOptions {
  /** The path of the route. Default: `/object`. */
  readonly path?: string;
}

/**
 * Serves `useObject` of the AI SDK, with the structured output of an agent that has an `output` schema.
 *
 * `POST /object` takes what the page submits, a text or other JSON, as the prompt of a new session. It streams the answer as plain text.
 *
 * Only the JSON answer is sent. If the model begins it again, the members of the second answer follow those of the first and replace them. If the run fails, is
 * stopped or refused, asks a question, or begins again an answer that cannot be replaced, the hook has an `error`: the response has an error status if no text
 * was sent yet, and otherwise its stream breaks off.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { aiSdkObject } from "@jizai/jizai/wire/ai_sdk";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const model = scripted({ text: ['{"city":', '"Kyoto"}'] });
 * const app = serve(agent({ model, output: z.object({ city: z.string() }) }), { wires: [aiSdkObject()] });
 *
 * const response = await app.request("/object", { // the request of useObject({ api: "/object", schema })
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify("Where is it sunny?"),
 * });
 * assertEquals(await response.text(), '{"city":"Kyoto"}');
 * ```
 */
export function aiSdkObject(options: AiSdkObjectOptions = {}): Wire {
  expectNames("Cannot create aiSdkObject()", options, ["path"]);
  const { path = "/object" } = options;
  return { routes: () => [{ method: "POST", path, parse: ({ body }) => parse(body) }] };
}

/** Creates the reply to one request. */
function textReply(): Reply {
  let failure: TextFailure | undefined;
  const encode = textEncoder();
  const watch: EventEncoder = (event, id) => {
    failure ??= textFailure(event);
    return failure ? "" : encode(event, id);
  };
  return {
    type: "stream",
    comments: false,
    headers: { "content-type": "text/plain; charset=utf-8" },
    encoder: () => appendJson(watch),
    respond: (response, signal) => sendText(response, signal, () => failure),
  };
}

function parse(body: unknown): ParsedRequest {
  const value = json(body, "");
  const prompt = typeof value === "string" ? value : JSON.stringify(value);
  return { type: "chat", input: () => ({ messages: [user(prompt)] }), reply: textReply() };
}

/** Creates an encoder that sends the text alone: as it is streamed, or at the end if nothing was streamed. */
function textEncoder(): EventEncoder {
  let isSent = false;
  /** The first half of a surrogate pair at the end of the text: UTF-8 has no bytes for a half. */
  let half = "";
  return tableEncoder({
    "text.delta"({ text }) {
      isSent = true;
      const all = half + text;
      half = /[\uD800-\uDBFF]$/.exec(all)?.[0] ?? "";
      return half === "" ? all : all.slice(0, -1);
    },
    "run.finished": ({ text }) => isSent ? half : text,
  });
}
