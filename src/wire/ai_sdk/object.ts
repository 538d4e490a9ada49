/**
 * The wire of the AI SDK's `useObject`.
 *
 * @module
 */
import { expectNames, json } from "../../protocol/shape.ts";
import { user } from "../../protocol/message.ts";
import { tableEncoder } from "../encoder.ts";
import { appendJson } from "../json_answer.ts";
import type { EventEncoder, ParsedRequest, Reply, Wire } from "../wire.ts";
import { sendText, type TextFailure, textFailure } from "./text_response.ts";

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
  const given = json(body, "");
  const prompt = typeof given === "string" ? given : JSON.stringify(given);
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
