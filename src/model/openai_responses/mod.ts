/**
 * Adapter for OpenAI's Responses API, with the body of its requests.
 *
 * @module
 */
import type { Model, ModelRequest, ToolDefinition } from "../model.ts";
import { streamBackground } from "./background.ts";
import { approvalItem, builtInItem } from "./built_in_tools.ts";
import { responseParser } from "./response_parser.ts";
import { provider, type ProviderOptions, requestBody, streamResponse } from "../provider.ts";
import { readNote } from "../provider_note.ts";
import { joinFields, providerNotice, splitTools } from "../provider_tools.ts";
import {
  callInput,
  checkOptions,
  fileNotice,
  generatedFileNotice,
  optionValue,
  strictSchema,
  toolSchema,
} from "../request.ts";
import { type CallResult, type Message, providerResultOf, textOf } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import { expectNames, isObject, type UnknownObject } from "../../protocol/shape.ts";
export type { ProviderOptions } from "../provider.ts";

// Converts the options of requests to fields of the Responses API.

/** Returns the fields of the options. `summary` requests summaries of the reasoning. */
function optionFields(request: ModelRequest, model: string, summary: string | undefined): UnknownObject {
  checkOptions(request, { model, api: "the Responses API", unsupported: ["stop", "seed"] });
  const { toolChoice, parallelCalls, effort, cache, logprobs } = request.options;
  return {
    ...((effort ?? summary) && { reasoning: { effort, summary } }),
    ...(cache && optionValue(model, "cache", cache, cacheFields)),
    tool_choice: typeof toolChoice === "object" ? { type: "function", name: toolChoice.tool } : toolChoice,
    parallel_tool_calls: parallelCalls,
    top_logprobs: logprobs,
  };
}

/** OpenAI caches for minutes by default, and has no option to turn that off. */
const cacheFields = { short: {}, long: { prompt_cache_retention: "24h" } };

// Converts requests to the body of the Responses API.

/** Whether the provider searches the deferred tools of a model: it does for those since GPT 5.4, without the nano ones. */
function defers(model: string): boolean {
  return /^gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!.*nano)/.test(model);
}

/** Whether an entry among the tools, or an item, is of the search of deferred tools. */
function isSearch({ type }: UnknownObject): boolean {
  return /^tool_search(_call|_output)?$/.test(String(type));
}

/** Returns the fields of a request. `builtIn` are the tools that the provider runs. */
function requestFields(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  builtIn: readonly UnknownObject[],
): UnknownObject {
  const clientTools = tools.map((tool) => toolFields(tool, defers(model)));
  const isSearched = clientTools.some((tool) => tool.defer_loading) && !builtIn.some(isSearch);
  const allTools = [...builtIn, ...(isSearched ? [{ type: "tool_search" }] : []), ...clientTools];
  return {
    model,
    ...(instructions !== "" && { instructions }),
    input: inputOf(messages, model, allTools.some(isSearch)),
    ...(allTools.length > 0 && { tools: allTools }),
    ...(options.output?.type === "object" && { text: { format: formatOf(options.output) } }),
    stream: true,
    // the conversation is sent with every request, and so is the reasoning, which the provider encrypts
    store: false,
    ...(!/^(ft:)?(gpt-[34]|chatgpt)/.test(model) && { include: ["reasoning.encrypted_content"] }),
  };
}

function toolFields(tool: ToolDefinition, canDefer: boolean): UnknownObject {
  const { name, description, deferred } = tool;
  const more = canDefer && deferred ? { defer_loading: true } : {};
  return { type: "function", name, description, parameters: toolSchema(tool), strict: false, ...more };
}

function formatOf(schema: UnknownObject): UnknownObject {
  const exact = strictSchema(schema);
  return {
    type: "json_schema",
    name: "output",
    strict: exact !== undefined,
    schema: exact ?? toolSchema({ schema }),
  };
}

/** Converts the conversation. Searches of tools are left out if the request has no deferred tools. */
function inputOf(messages: readonly Message[], model: string, canSearch: boolean): readonly UnknownObject[] {
  const isSent = (part: AnswerPart) => canSearch || !isSearch(Object(readNote(part, model).item));
  /** The provider's ids of its questions, by the ids of the calls that they became. */
  const questions = new Map<string, string>();
  return sinceCompaction(messages.flatMap((message): readonly UnknownObject[] => {
    switch (message.role) {
      case "user":
        return [{ role: "user", content: contentOf(message.parts) }];
      case "assistant":
        return assistantItems(message.parts.filter(isSent), model, questions);
      case "tool":
        return message.results.map((result) => {
          const question = questions.get(result.callId);
          return question === undefined ? resultItem(result) : approvalItem(question, result);
        });
    }
  }));
}

/** Leaves out the items that the last compaction replaces. All are kept if one of them is a call whose answer follows it. */
function sinceCompaction(items: readonly UnknownObject[]): readonly UnknownObject[] {
  const at = items.findLastIndex(({ type }) => type === "compaction");
  if (at <= 0) return items;
  const rest = items.slice(at);
  const calls = new Set(rest.flatMap(({ type, call_id, id }) => type === "function_call" ? [call_id] : [id]));
  const isWhole = rest.every(({ type, call_id, approval_request_id: question }) =>
    type === "function_call_output" ? calls.has(call_id) : question === undefined || calls.has(question)
  );
  return isWhole ? rest : items;
}

/** Converts what the model wrote. The API rejects a reasoning item that nothing follows. */
function assistantItems(
  parts: readonly AnswerPart[],
  model: string,
  questions: Map<string, string>,
): readonly UnknownObject[] {
  const items: UnknownObject[] = [];
  let phase: unknown;
  const notes = parts.map((part) => readNote(part, model));
  for (const part of parts) {
    if (part.type === "call") {
      const { id, name } = part;
      const last = items.at(-1);
      if (last?.type === "mcp_approval_request") questions.set(id, String(last.id));
      else {
        const more = Object(notes.find(({ callId }) => callId === id)?.more);
        items.push({ type: "function_call", call_id: id, name, arguments: JSON.stringify(callInput(part)), ...more });
      }
    } else if (part.type === "provider_call") {
      items.push(builtInItem(readNote(part, model), providerResultOf(part, parts)) ?? noticeItem(part));
    } else if (part.type === "provider_result") {
      const call = parts.find((each) => each.type === "provider_call" && each.callId === part.callId);
      if (!call || !readNote(call, model).item) items.push(noticeItem(part));
    } else if (part.type === "text") {
      if (part.text !== "") {
        items.push({ role: "assistant", content: part.text, ...(phase !== undefined && { phase }) });
      }
      phase = undefined;
    } else if (part.type === "refusal") {
      const refused = { role: "assistant", content: [{ type: "refusal", refusal: part.text }] };
      if (part.text !== "" && items.at(-1)?.content === part.text) items.splice(-1, 1, refused);
    } else if (part.type === "media") {
      const { item } = readNote(part, model);
      items.push(
        isObject(item) ? { ...item, result: part.data } : { role: "assistant", content: generatedFileNotice(part) },
      );
    } else if (part.type === "reasoning") {
      const note = readNote(part, model);
      phase = note.phase;
      if (isObject(note.item)) items.push(note.item);
    }
  }
  const last = items.findLastIndex(({ type }) => type !== "reasoning");
  return items.slice(0, last + 1);
}

function noticeItem(part: ProviderCallPart | ProviderResultPart): UnknownObject {
  return { role: "assistant", content: providerNotice(part) };
}

function resultItem({ callId, parts }: CallResult): UnknownObject {
  const output = parts.some(({ type }) => type === "media") ? parts.map(partFields) : textOf({ parts });
  return { type: "function_call_output", call_id: callId, output };
}

/** Keeps a single text as a string. */
function contentOf(parts: readonly ContentPart[]): string | readonly UnknownObject[] {
  return parts.length > 1 || parts[0]?.type === "media" ? parts.map(partFields) : textOf({ parts });
}

function partFields(part: ContentPart): UnknownObject {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const { mediaType, data, url } = part;
  const dataUrl = `data:${mediaType};base64,${data}`;
  if (mediaType.startsWith("image/")) return { type: "input_image", image_url: url ?? dataUrl, detail: "auto" };
  if (mediaType !== "application/pdf") return { type: "input_text", text: fileNotice(part) };
  return url === undefined
    ? { type: "input_file", filename: "file.pdf", file_data: dataUrl }
    : { type: "input_file", file_url: url };
}

// The adapter: a model behind OpenAI's Responses API.

/** Options of `openaiResponses()`. */
export interface OpenAIResponsesOptions extends ProviderOptions {
  /** Requests summaries of the reasoning, which are streamed as reasoning. Default: none. */
  readonly summary?: "auto" | "concise" | "detailed";
  /**
   * Whether OpenAI goes on with a response if the connection is lost, so that a new connection receives the rest. OpenAI keeps such a response for about ten
   * minutes. If the request is aborted, it is cancelled. Default: false.
   */
  readonly background?: boolean;
  /** Lets OpenAI replace the conversation so far by a summary from `at` tokens on. `model.finished` reports it, as `edits`. Default: it does not. */
  readonly compaction?: { readonly at?: number };
}

/**
 * Creates a model that is reached over OpenAI's Responses API, or over a compatible API at `baseURL`.
 *
 * - The provider stores nothing (`store: false`). Reasoning items, encrypted by the provider, and the items of tools that it runs are kept with the
 *   conversation and sent back to the same model. It asks before it calls a remote MCP server if the agent has guards.
 * - Images and PDFs are sent, also in the results of tools.
 * - With `background`, a response survives a lost connection. With `compaction`, OpenAI summarizes a long conversation; the summary, which only OpenAI can
 *   read, is kept with the conversation and sent back to the same model.
 * - A refusal is streamed as text and ends with the finish reason `refusal`.
 * - A rejected request, a failed response or a cut stream throws a `ModelError`, which states whether and when to retry.
 * - `src/model/README.md` lists the servers whose forms it was tried in, and what is not supported.
 *
 * Throws a `TypeError` if `baseURL` is not an http(s) address, or if the key or a header contains an invalid character.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { openaiResponses } from "@jizai/jizai/model/openai_responses";
 * import { assertEquals } from "@std/assert";
 *
 * const events = [
 *   { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1", content: [] } },
 *   { type: "response.output_text.delta", output_index: 0, delta: "Hello!" },
 *   { type: "response.output_item.done", output_index: 0, item: { type: "message", id: "msg_1" } },
 *   { type: "response.completed", response: { usage: { input_tokens: 9, output_tokens: 2 } } },
 * ];
 * const model = openaiResponses({
 *   model: "gpt-6.1-terra",
 *   apiKey: "sk-...",
 *   fetch: () => new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")), // leave it out to reach OpenAI
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function openaiResponses({ summary, background, compaction, ...options }: OpenAIResponsesOptions): Model {
  const { model, apiKey, maxTokens, temperature } = options;
  expectNames("Cannot create openaiResponses()", compaction ?? {}, ["at"]);
  const server = provider(options, {
    name: "openaiResponses",
    provider: "openai",
    options: ["summary", "background", "compaction"],
    base: "https://api.openai.com/v1",
    path: "/responses",
    adapterHeaders: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
  });
  return {
    id: model,
    server: server.origin,
    asks: ["mcp"],
    defers: defers(model),
    stream(request, { signal }) {
      const split = splitTools(request, "openai_responses", model, server.headers);
      const fields = {
        ...requestFields(split.request, model, split.builtIn),
        ...optionFields(split.request, model, summary),
        temperature: request.options.temperature ?? temperature,
        max_output_tokens: request.options.maxTokens ?? maxTokens,
        ...(compaction && { context_management: [{ type: "compaction", compact_threshold: compaction.at }] }),
        ...(background && { background }),
      };
      const include = request.options.logprobs === undefined ? {} : { include: ["message.output_text.logprobs"] };
      const body = requestBody(
        joinFields(joinFields(fields, split.fields), include),
        options.options,
        request.options.provider,
      );
      const stream = background ? streamBackground : streamResponse;
      return stream({ ...server, headers: split.headers }, body, responseParser(model, server.errors), signal);
    },
  };
}
