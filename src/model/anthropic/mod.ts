/**
 * Adapter for Anthropic's messages API: its options, and the responses that it continues.
 *
 * @module
 */
import { defers, requestFields } from "./request.ts";
import { type MessageParser, responseParser } from "./response_parser.ts";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { provider, type ProviderOptions, requestBody, streamResponse } from "../provider.ts";
import { joinFields, type SplitRequest, splitTools } from "../provider_tools.ts";
import { checkOptions, optionValue, strictSchema } from "../request.ts";
import type { ContextEdit } from "../../protocol/event.ts";
import { addUsage, noUsage } from "../../protocol/message.ts";
import type { AnswerPart } from "../../protocol/part.ts";
import { expectNames, type UnknownObject } from "../../protocol/shape.ts";
export type { ProviderOptions } from "../provider.ts";

// Converts the options of requests to fields of the messages API.

/** The levels of effort, each with the fields that set it. */
const efforts: Readonly<Record<string, { readonly effort?: string; readonly thinking?: UnknownObject }>> = {
  none: { thinking: { type: "disabled" } },
  low: { effort: "low" },
  medium: { effort: "medium" },
  high: { effort: "high" },
  xhigh: { effort: "xhigh" },
  max: { effort: "max" },
};

/** Returns the fields of the options. */
function optionFields(request: ModelRequest, model: string): UnknownObject {
  checkOptions(request, { model, api: "the messages API", unsupported: ["seed", "logprobs"] });
  const { output, stop, effort: level } = request.options;
  const { effort, thinking } = level ? optionValue(model, "effort", level, efforts) : {};
  const schema = strictSchema(output);
  const format = schema?.type === "object" && { format: { type: "json_schema", schema } };
  return {
    ...((format || effort) && { output_config: { ...format, ...(effort && { effort }) } }),
    thinking,
    stop_sequences: stop,
    tool_choice: toolChoiceOf(request),
  };
}

/** The API sets parallel calls together with the choice of tools. */
function toolChoiceOf({ tools, options: { toolChoice, parallelCalls } }: ModelRequest): UnknownObject | undefined {
  if (tools.length === 0 || (toolChoice === undefined && parallelCalls === undefined)) return undefined;
  const alone = parallelCalls === undefined ? {} : { disable_parallel_tool_use: !parallelCalls };
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.tool, ...alone };
  if (toolChoice === "none") return { type: "none" };
  return { type: toolChoice === "required" ? "any" : "auto", ...alone };
}

/** The cache control of a request, or none. A request overrides the adapter's option. */
function cacheControl(
  request: ModelRequest,
  model: string,
  option: "5m" | "1h" | false,
): UnknownObject {
  const { cache } = request.options;
  const ttl = cache ? optionValue(model, "cache", cache, { none: false, short: "5m", long: "1h" } as const) : option;
  return ttl === false ? {} : { cache_control: { type: "ephemeral", ...(ttl === "1h" && { ttl }) } };
}

// Continues responses that the provider pauses while it runs its own tools.

/** Sends a request and parses its response. */
type Send = (request: ModelRequest, parser: MessageParser) => AsyncIterable<readonly ModelEvent[]>;

/** Sends a request, and sends it again together with the response so far whenever the provider pauses. */
async function* continuePaused(
  request: ModelRequest,
  model: string,
  send: Send,
): AsyncGenerator<readonly ModelEvent[]> {
  const parts: AnswerPart[] = [];
  let usage = noUsage;
  const edits: ContextEdit[] = [];
  for (let isPaused = true; isPaused;) {
    isPaused = false;
    const parser = responseParser(model);
    const messages = parts.length === 0
      ? request.messages
      : [...request.messages, { role: "assistant", parts } as const];
    for await (const events of send({ ...request, messages }, parser)) {
      const last = events.at(-1);
      for (const event of events) append(parts, event);
      if (last?.type !== "finish") yield events;
      else {
        usage = addUsage(usage, last.usage ?? noUsage);
        isPaused = parser.isPaused();
        edits.push(...last.edits ?? []);
        const finish = { ...last, usage, ...(edits.length > 0 && { edits }) };
        yield [...events.slice(0, -1), ...(isPaused ? [] : [finish])];
      }
    }
  }
}

/** Appends an event to the parts of a response. The provider does not pause within a call. */
function append(parts: AnswerPart[], event: ModelEvent): void {
  if (event.type === "part") parts.push(event.part);
  if (event.type !== "text" && event.type !== "reasoning") return;
  const last = parts.at(-1);
  if (last?.type === event.type && !("meta" in last)) {
    parts.splice(-1, 1, { ...last, ...event, text: last.text + event.text });
  } else parts.push(event);
}

// The adapter: a model behind Anthropic's Messages API.

/** The parts that the provider clears from the conversation before the model reads it. Models read a notice in place of a result. */
export interface AnthropicClearing {
  /** Clears the results of the oldest calls. `{}` uses the provider's defaults. Default: none is cleared. */
  readonly toolResults?: {
    /** The tokens of a request at which results are cleared. Default: the provider's, 100,000. */
    readonly at?: number;
    /** The number of the latest calls whose results are kept. Default: the provider's, 3. */
    readonly keep?: number;
    /** The tokens that are cleared at least; otherwise nothing is, since the provider's cache is lost each time. Default: any number. */
    readonly atLeast?: number;
    /** The names of tools whose results are kept. Default: none. */
    readonly exclude?: readonly string[];
    /** Whether the inputs of the calls are cleared too: all, or those of these tools. Default: false. */
    readonly inputs?: boolean | readonly string[];
  };
  /** The number of the latest turns whose reasoning is kept. Default: the provider's, which depends on the model. */
  readonly reasoning?: number | "all";
}

/** When the provider replaces the conversation so far by a summary. */
export interface AnthropicCompaction {
  /** The tokens of a request at which it does so, at least 50,000. Default: the provider's, 150,000. */
  readonly at?: number;
  /** The instructions for the summary, in place of the provider's. */
  readonly instructions?: string;
}

/** Returns the edits of the conversation that a request asks for, in the order that the API requires, and the betas that they belong to. */
function editsOf(clear: AnthropicClearing = {}, compaction?: AnthropicCompaction) {
  const subject = "Cannot create anthropic()";
  const { toolResults, reasoning } = clear;
  expectNames(subject, clear, ["toolResults", "reasoning"]);
  expectNames(subject, toolResults ?? {}, ["at", "keep", "atLeast", "exclude", "inputs"]);
  expectNames(subject, compaction ?? {}, ["at", "instructions"]);
  const amount = (type: string, value: number | undefined) => value === undefined ? undefined : { type, value };
  const edits = [
    reasoning !== undefined && {
      type: "clear_thinking_20251015",
      keep: reasoning === "all" ? reasoning : amount("thinking_turns", reasoning),
    },
    toolResults && {
      type: "clear_tool_uses_20250919",
      trigger: amount("input_tokens", toolResults.at),
      keep: amount("tool_uses", toolResults.keep),
      clear_at_least: amount("input_tokens", toolResults.atLeast),
      exclude_tools: toolResults.exclude,
      clear_tool_inputs: toolResults.inputs,
    },
    compaction && {
      type: "compact_20260112",
      trigger: amount("input_tokens", compaction.at),
      instructions: compaction.instructions,
    },
  ].filter(Boolean);
  return {
    fields: edits.length === 0 ? {} : { context_management: { edits } },
    betas: [
      ...(toolResults || reasoning !== undefined ? ["context-management-2025-06-27"] : []),
      ...(compaction ? ["compact-2026-01-12"] : []),
    ],
  };
}

/** Options of `anthropic()`. */
export interface AnthropicOptions extends ProviderOptions {
  /** Maximum number of tokens in a response, if the request sets none. Default: 32,000. */
  readonly maxTokens?: number;
  /** The time for which the provider caches the tools, the instructions and the conversation so far; `false` turns it off. Default: "5m". */
  readonly cache?: "5m" | "1h" | false;
  /** The parts that the provider clears from the conversation before the model reads it. `model.finished` reports them, as `edits`. Default: the provider's. */
  readonly clear?: AnthropicClearing;
  /** Lets the provider replace the conversation so far by a summary. `model.finished` reports it, as `edits`. Default: it does not. */
  readonly compaction?: AnthropicCompaction;
}

/**
 * Creates a model that is reached over Anthropic's messages API: Anthropic's own, or one behind a compatible API at `baseURL`.
 *
 * - Reasoning is stored with its signature and sent back unchanged. `options: { thinking: { ... } }` requests it from models that do not reason by default.
 * - Images and PDFs are sent, also in the results of tools.
 * - The tools, the instructions and the conversation are cached by the provider unless `cache` turns it off.
 * - Calls and results of tools that the provider runs, and citations, are kept with the conversation and sent back to the same model. A response that the provider pauses is continued.
 * - On request, the provider clears old results and old reasoning (`clear`), or replaces the conversation so far by a summary (`compaction`). The transcript
 *   keeps all of it, and the summary goes back to the same model.
 * - `output` becomes `output_config` if its schema fits the subset that the provider enforces.
 * - A rejected request or a cut stream throws a `ModelError`, which states whether and when to retry.
 * - `src/model/README.md` lists the servers whose forms it was tried in, and what is not supported.
 *
 * Throws a `TypeError` if `baseURL` is not an http(s) address, or if the key or a header contains an invalid character.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { anthropic } from "@jizai/jizai/model/anthropic";
 * import { assertEquals } from "@std/assert";
 *
 * const events = [
 *   { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
 *   { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello!" } },
 *   { type: "content_block_stop", index: 0 },
 *   { type: "message_delta", delta: { stop_reason: "end_turn" } },
 * ];
 * const model = anthropic({
 *   model: "claude-sonnet-5-5",
 *   apiKey: "sk-ant-...",
 *   fetch: () => new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")), // leave it out to reach Anthropic
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function anthropic({ cache = "5m", clear, compaction, ...options }: AnthropicOptions): Model {
  const { model, apiKey, maxTokens = 32_000, temperature } = options;
  const server = provider(options, {
    name: "anthropic",
    options: ["cache", "clear", "compaction"],
    base: "https://api.anthropic.com",
    path: "/v1/messages",
    adapterHeaders: { "anthropic-version": "2023-06-01", ...(apiKey && { "x-api-key": apiKey }) },
  });

  const { fields: contextFields, betas } = editsOf(clear, compaction);
  for (const beta of betas) server.headers.append("anthropic-beta", beta);

  function send({ request, builtIn, fields: more, headers }: SplitRequest, parser: MessageParser, signal: AbortSignal) {
    const fields = {
      ...requestFields(request, model, cacheControl(request, model, cache), builtIn),
      ...optionFields(request, model),
      ...contextFields,
      max_tokens: request.options.maxTokens ?? maxTokens,
      temperature: request.options.temperature ?? temperature,
    };
    const body = requestBody(joinFields(fields, more), options.options, request.options.provider);
    return streamResponse({ ...server, headers }, body, parser, signal);
  }

  return {
    id: model,
    server: server.origin,
    defers: defers(model),
    stream(request, { signal }) {
      const split = splitTools(request, "anthropic", model, server.headers);
      const isSearched = defers(model) && split.request.tools.some(({ deferred }) => deferred);
      if (isSearched || split.builtIn.length > 0) {
        return continuePaused(split.request, model, (request, parser) => send({ ...split, request }, parser, signal));
      }
      return send(split, responseParser(model), signal);
    },
  };
}
