/**
 * The vendors' own clients, which read the streams of the corpus.
 *
 * @module
 */
import type { FinishReason } from "@jizai/jizai";
// @ts-types="../../support/vendors/anthropic.d.ts"
import Anthropic from "npm:@anthropic-ai/sdk@1.12.0";
// @ts-types="../../support/vendors/google_genai.d.ts"
import { GoogleGenAI } from "npm:@google/genai@3.1.0/web";
import OpenAI from "npm:openai@7.57.0";
import type { Content } from "./case.ts";

/** Reads a stream that a server on this machine serves, with a vendor's client. */
export type Client = (baseURL: string) => Promise<Content>;

const apiKey = "sk-0123456789";
const content = "Hi";
const options = { apiKey, maxRetries: 0 };

function mapped(reason: unknown, reasons: Readonly<Record<string, FinishReason>>): FinishReason {
  return reasons[String(reason)] ?? "other";
}

/** OpenAI's client for chat completions. */
export async function openaiChat(baseURL: string): Promise<Content> {
  const client = new OpenAI({ ...options, baseURL });
  const runner = client.chat.completions.stream({ model: "m", messages: [{ role: "user", content }] });
  const { choices: [choice] } = await runner.finalChatCompletion();
  const { message, finish_reason } = choice!;
  const calls = (message.tool_calls ?? []).flatMap((call) =>
    call.type === "function" ? [[call.function.name, JSON.parse(call.function.arguments)] as const] : []
  );
  const reason = mapped(finish_reason, {
    stop: "stop",
    tool_calls: "calls",
    length: "length",
    content_filter: "filter",
  });
  const finish = reason === "stop" ? message.refusal ? "refusal" : calls.length > 0 ? "calls" : "stop" : reason;
  return { text: `${message.content ?? ""}${message.refusal ?? ""}`, calls, finish };
}

/** OpenAI's client for the Responses API. */
export async function openaiResponse(baseURL: string): Promise<Content> {
  const client = new OpenAI({ ...options, baseURL });
  const response = await client.responses.stream({ model: "m", input: content }).finalResponse();
  const parts = response.output.flatMap((item) => item.type === "message" ? item.content : []);
  const calls = response.output.flatMap((item) =>
    item.type === "function_call" ? [[item.name, JSON.parse(item.arguments)] as const] : []
  );
  const isRefused = parts.some(({ type }) => type === "refusal");
  const reasons = { max_output_tokens: "length", content_filter: "filter" } as const;
  const complete = isRefused ? "refusal" : calls.length > 0 ? "calls" : "stop";
  const ran = response.output.flatMap((item): [string, unknown][] => {
    if (item.type === "web_search_call") return [["web_search", null]];
    if (item.type === "file_search_call") return [["file_search", item.results]];
    if (item.type === "code_interpreter_call") return [["code_execution", item.outputs]];
    return item.type === "mcp_call" ? [[item.name, item.output]] : [];
  });
  return {
    text: parts.map((part) => part.type === "refusal" ? part.refusal : part.text).join(""),
    calls,
    ...(ran.length > 0 && { ran }),
    finish: response.status === "completed" ? complete : mapped(response.incomplete_details?.reason, reasons),
  };
}

/** Anthropic's client. */
export async function anthropicMessage(baseURL: string): Promise<Content> {
  const client = new Anthropic({ ...options, baseURL });
  const messages = [{ role: "user" as const, content }];
  const message = await client.messages.stream({ model: "m", max_tokens: 9, messages }).finalMessage();
  const names = new Map(
    message.content.map((block) => "id" in block && "name" in block ? [block.id, block.name] : ["", ""]),
  );
  const ran = message.content.flatMap((block) =>
    "tool_use_id" in block ? [[names.get(block.tool_use_id) ?? "", block.content] as const] : []
  );
  return {
    ...(ran.length > 0 && { ran }),
    text: message.content.map((block) => block.type === "text" ? block.text : "").join(""),
    calls: message.content.flatMap((block) => block.type === "tool_use" ? [[block.name, block.input] as const] : []),
    finish: mapped(message.stop_reason, {
      end_turn: "stop",
      stop_sequence: "stop",
      tool_use: "calls",
      max_tokens: "length",
      refusal: "refusal",
    }),
  };
}

/** Google's client. */
export async function googleContent(baseUrl: string): Promise<Content> {
  const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
  let text = "";
  let reason: string | undefined;
  const calls: [string, unknown][] = [];
  const ran: [string, unknown][] = [];
  for await (const chunk of await client.models.generateContentStream({ model: "m", contents: content })) {
    const [candidate] = chunk.candidates ?? [];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.functionCall) calls.push([part.functionCall.name ?? "", part.functionCall.args ?? {}]);
      else if (part.codeExecutionResult) ran.push(["code_execution", part.codeExecutionResult.output]);
      else if (!part.thought) text += part.text ?? "";
    }
    const { webSearchQueries: queries = [], groundingChunks } = candidate?.groundingMetadata ?? {};
    if (queries.length > 0) ran.push(["web_search", groundingChunks]);
    const { urlMetadata } = candidate?.urlContextMetadata ?? {};
    if (urlMetadata) ran.push(["url_context", urlMetadata]);
    reason = candidate?.finishReason ?? (chunk.promptFeedback?.blockReason && "SAFETY") ?? reason;
  }
  const finish = mapped(reason, { STOP: "stop", MAX_TOKENS: "length", SAFETY: "filter" });
  return {
    text,
    calls,
    finish: finish === "stop" && calls.length > 0 ? "calls" : finish,
    ...(ran.length > 0 && { ran }),
  };
}
