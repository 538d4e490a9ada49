/**
 * OpenAI's Responses API: its wire, its requests, and its events. `response_items.ts` has the items.
 *
 * @module
 */
import { builtInEvents } from "../../model/openai_responses/built_in_tools.ts";
import type { FinishReason } from "../../protocol/event.ts";
import { noUsage, textOf, type Usage, usageSince, user } from "../../protocol/message.ts";
import type { AddedPart, AnswerPart, Json } from "../../protocol/part.ts";
import type { Question } from "../../protocol/question.ts";
import {
  array,
  boolean,
  expectNames,
  id,
  invalid,
  json,
  jsonObject,
  lazy,
  object,
  oneOf,
  type Shape,
  string,
} from "../../protocol/shape.ts";
import { isForClient, toolName } from "../client_tool.ts";
import { failedResponse } from "../failed_response.ts";
import { finishOfRun, incompleteReasons, nativeFinish } from "../finish_reason.ts";
import { collectJson, replaceJson } from "../json_answer.ts";
import {
  answerFormat,
  callAnswer,
  callPart,
  chatInputOf,
  content,
  contentPart,
  type Conversation,
  declaredTools,
  decodeCallId,
  encodeCallId,
  type Entry,
  nullish,
  refusalParts,
  unsupported,
} from "./conversation.ts";
import { jsonHeaders as headers, type OpenaiOptions } from "./models.ts";
import { itemEncoder } from "./response_items.ts";
import { encodeError, type EndEvent, errorOf, refusalIn, responseName } from "./run_error.ts";
import {
  type EventEncoder,
  isForm,
  type JsonResponse,
  type ParsedRequest,
  questionId,
  type Reply,
  type ResponseCollector,
  tableEncoder,
  type Wire,
  type WireRequest,
} from "../wire.ts";

// Items that the client sends back, as parts.

type Item = Readonly<Record<string, Json>>;

/**
 * Returns the parts of an item other than a message, a call or a result. The note of a part is the item, of which the server leaves out all that the parts do
 * not say: it sends no items of a client to a provider.
 */
function itemParts(item: Item): readonly AnswerPart[] {
  if (item.type === "mcp_approval_request" && decodeCallId(`${item.id}`)) return []; // this server knows its own questions
  const note = { type: "reasoning", text: "", meta: { item } } as const;
  if (item.type === "reasoning") return [{ ...note, text: textsOf(item.content) || textsOf(item.summary) }];
  return builtInEvents({}, item)?.map(({ part }) => part) ?? [note];
}

function textsOf(parts: Json | undefined): string {
  const texts = (Array.isArray(parts) ? parts : []).map((part) => Object(part).text);
  return texts.filter((text) => typeof text === "string").join("");
}

// Requests of the Responses API.

const functionTool = /* @__PURE__ */ lazy(() =>
  object({
    type: oneOf("function"),
    name: toolName,
    description: nullish(string),
    parameters: nullish(jsonObject),
  })
);

const request = /* @__PURE__ */ lazy(() =>
  object({
    input: json,
    instructions: nullish(string),
    previous_response_id: nullish(id),
    tools: nullish(array(functionTool)),
    stream: nullish(boolean),
    tool_choice: nullish(oneOf("auto", "none")),
    text: nullish(object({ format: answerFormat() })),
    parallel_tool_calls: unsupported(true),
    background: unsupported(false),
    prompt: unsupported(),
    conversation: unsupported(),
  })
);

/** Parses a request. */
function responsesRequest(body: unknown): { readonly conversation: Conversation; readonly stream: boolean } {
  const { input, instructions, previous_response_id: previous, tools, tool_choice, text, stream = false } = request(
    body,
    "",
  );
  const session = previous && (decodeCallId(previous.slice("resp_".length))?.session ?? previous);
  const entries = typeof input === "string" ? [user(input)] : array(jsonObject)(input, "input").flatMap(entriesOf);
  const system = session === undefined && instructions !== undefined ? [user(instructions, "system")] : [];
  return {
    stream,
    conversation: {
      field: "input",
      entries: [...system, ...entries],
      session,
      mustExist: previous !== undefined,
      tools: declaredTools(tool_choice, tools),
      answerFormat: text?.format,
    },
  };
}

const answerPart: Shape<AnswerPart> = (value, path) => {
  const { refusal } = jsonObject(value, path);
  return typeof refusal === "string" ? { type: "refusal", text: refusal } : contentPart(value, path);
};

/** Returns the parts of an answer: its texts and files, and then its refusal. */
function answerParts(value: Json | undefined, path: string): readonly AnswerPart[] {
  const parts = typeof value === "string" ? user(value).parts : array(answerPart)(value, path);
  const refusal = parts.map((part) => part.type === "refusal" ? part.text : "").join("");
  return [...parts.filter(({ type }) => type !== "refusal"), ...refusalParts(refusal, textOf({ parts }))];
}

/** Returns the entry of an item. */
function entriesOf(item: Readonly<Record<string, Json>>, index: number): Entry[] {
  const path = `input.${index}`;
  const field = (name: string) => string(item[name], `${path}.${name}`);
  const idIn = (name: string) => id(item[name], `${path}.${name}`);
  const parts = (name: string) => content(item[name], `${path}.${name}`);
  switch (item.type === undefined ? "message" : field("type")) {
    case "item_reference": {
      const missing = invalid(path, "the item in place of an item_reference, as clients send it with `store: false`");
      return [{ role: "assistant", parts: [], missing }];
    }
    case "message": {
      const role = field("role");
      if (role === "assistant") return [{ role, parts: answerParts(item.content, `${path}.content`) }];
      return [{ role: "user", parts: parts("content"), ...(role !== "user" && { from: role }) }];
    }
    case "function_call":
      return [{ role: "assistant", parts: [callPart(idIn("call_id"), field("name"), field("arguments"))] }];
    case "function_call_output":
      return [callAnswer(idIn("call_id"), { type: "reply", text: textOf({ parts: parts("output") }) })];
    case "mcp_approval_response": {
      const approve = boolean(item.approve, `${path}.approve`);
      const reason = typeof item.reason === "string" ? { reason: item.reason } : {};
      return [callAnswer(idIn("approval_request_id"), approve ? { type: "approve" } : { type: "deny", ...reason })];
    }
    default: {
      if (typeof item.id === "string") idIn("id");
      const parts = itemParts(item);
      return parts.length > 0 ? [{ role: "assistant", parts }] : [];
    }
  }
}

// Events of a run as events of the Responses API.

/** Creates the encoder of one response of the agent `model`; `onEnd` receives the complete response. */
function responseEncoder(model: string, onEnd: (response: JsonResponse) => void = () => {}): EventEncoder {
  let idPrefix = "";
  let run = "";
  let session = "";
  let head = {};
  let turn: number | undefined;
  let finish: FinishReason = "other";
  let before = noUsage;
  const items = itemEncoder(() => idPrefix);

  function snapshot(status: string, more: object = {}): object {
    return { ...head, status, output: items.output, ...more };
  }

  function ask(question: Question, pausedAt: number): string {
    const { callId, tool: name, input, questions } = question;
    if (name === undefined) return items.wholeText(questions.join("\n"));
    const call_id = encodeCallId({ session, call: questionId(callId, { run, pausedAt }) });
    const call = { name, arguments: JSON.stringify(input) };
    const asked = isForm(question) ? items.wholeText(questions.join("\n")) : ""; // the call does not tell it
    return asked + items.add(
      isForClient(question)
        ? { id: `fc_${call_id}`, type: "function_call", call_id, ...call }
        : { id: call_id, type: "mcp_approval_request", server_label: model, ...call },
    );
  }

  function end(event: EndEvent, id: number): string {
    let frames = event.type === "run.finished" ? items.finish(event.text) : "";
    frames += refusalIn(event).map(items.part).join("");
    frames += items.close();
    if (event.type === "run.paused") frames += event.questions.map((question) => ask(question, id)).join("");
    const error = errorOf(event);
    const reason = event.type === "run.finished" ? incompleteReasons[finishOfRun(event, finish)] : undefined;
    const status = error ? "failed" : reason ? "incomplete" : "completed";
    const incomplete_details = reason && { reason };
    const native = event.type === "run.finished" ? nativeFinish(event) : {};
    const response = snapshot(status, {
      error,
      incomplete_details,
      ...native,
      usage: usageOf(usageSince(event.usage, before)),
    });
    onEnd(error ? failedResponse(event, { error }) : { status: 200, body: response });
    return frames + items.frame(status, { response });
  }

  const part = ({ content }: { readonly content: AddedPart }) => items.part(content);

  return tableEncoder({
    "text.delta": ({ text }) => items.delta("output_text", text),
    "reasoning.delta": ({ text }) => items.delta("reasoning_text", text),
    "part.added": part,
    "provider_tool.started": part,
    "provider_tool.finished": part,
    "run.started"(event, number) {
      if (idPrefix !== "") return "";
      ({ run, session, usage: before = noUsage } = event);
      idPrefix = responseName(event, number);
      const id = `resp_${encodeCallId({ session, call: idPrefix })}`;
      head = { id, object: "response", created_at: Math.floor(Date.now() / 1_000), model };
      return items.frame("created", { response: snapshot("in_progress") });
    },
    "turn.started"() {
      finish = "other"; // a hook may answer the turn without the model
      return "";
    },
    "model.started"(event) {
      const discarded = event.turn === turn ? items.discard() : ""; // asked again, because the process that asked it first died
      turn = event.turn;
      items.mark();
      return discarded;
    },
    "model.reset": items.discard,
    "model.finished"(event) {
      finish = event.finish;
      const status = incompleteReasons[finish] ? "incomplete" : "completed";
      return event.text === undefined ? items.close(status) : items.replaceText(event.text, status);
    },
    "run.paused": end,
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}

function usageOf({ input, output, cached, cacheWrite, reasoning }: Required<Usage>): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

// The wire: the route of responses, from its request to its response.

/**
 * Serves clients of OpenAI's Responses API. The agent answers, whatever model the request names.
 *
 * - `POST /v1/responses`, streamed or not. With a `previous_response_id` the session of that response continues from its present state; without one the
 *   client holds the conversation.
 *
 * The server keeps no items. A client that holds the conversation sends them with `store: false`, as the AI SDK does with the provider option of this name; an
 * `item_reference` is accepted only in a request that continues a session, by a `previous_response_id`, the URL or the results of calls.
 *
 * The agent's own tools run on the server, and the client does not see them. The client runs the tools that its request declares: such a call is returned as
 * a function call, whose id contains the session, and the run continues when a request brings the result. A question about a call is returned as an approval
 * request, in the format of a call to an MCP server. On a server with `resumeTokens` no call can be answered, because these requests have no place for the
 * token.
 *
 * The usage of a response that resumes a run counts only the tokens since then.
 *
 * With a `text.format` for JSON, only the JSON answer is sent. The agent's own `output` schema comes first; without one, the request's schema goes to the
 * model, and an answer that is not JSON is asked for again. Other hints to the model, such as `temperature`, are ignored, because the agent has its own.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { responses } from "@jizai/jizai/wire/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [responses()] });
 *
 * const response = await app.request("/v1/responses", {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "agent", input: "Hi" }),
 * });
 * const { output } = await response.json();
 * assertEquals(output[0].content[0].text, "Hello!");
 * ```
 */
export function responses(options: OpenaiOptions = {}): Wire {
  expectNames("Cannot create responses()", options, ["path"]);
  const { path = "/v1" } = options;
  return {
    routes: (agent) => [
      { method: "POST", path: `${path}/responses`, parse: (request) => parse(agent, request), encodeError },
    ],
  };
}

function parse(agent: string, { body, session }: WireRequest): ParsedRequest {
  const { conversation, stream } = responsesRequest(body);
  const encoder = () => responseEncoder(agent);
  const collector = () => responseCollector(agent);
  const isJson = conversation.answerFormat !== undefined;
  const reply: Reply = stream
    ? { type: "stream", encoder: isJson ? () => replaceJson(encoder()) : encoder }
    : { type: "json", headers, collector: isJson ? () => collectJson(collector()) : collector };
  return { type: "chat", ...chatInputOf({ ...conversation, session: session ?? conversation.session }), reply };
}

function responseCollector(agent: string): ResponseCollector {
  let response: JsonResponse | undefined;
  const encode = responseEncoder(agent, (complete) => response = complete);
  return (event, id) => {
    encode(event, id);
    return response;
  };
}
