/**
 * Describes requests, calls and runs with the attributes of the semantic conventions for generative AI.
 *
 * @module
 */
import type { Attributes } from "@opentelemetry/api";
import { kindOf, type Operation, type Outcome } from "./recorder.ts";
import {
  type AbortContext,
  type AnswerPart,
  type ContentPart,
  type Event,
  type ExecuteContext,
  type FinishReason,
  type InputResult,
  type Message,
  type ModelContext,
  type ModelResponse,
  type RunResult,
  type SessionContext,
  textOf,
  type ToolResult,
  type Usage,
} from "../../../mod.ts";

// Writes messages and values as JSON for attributes, masked and with a limited length.

/** Characters of text in one attribute. */
const limit = 16_000;

/** Masks a text. */
type MaskText = (text: string) => string;

/** Masks texts, and cuts them once the limit is reached. */
interface Writer {
  readonly left: number;
  write(text: string): string;
}

function writerOf(mask: MaskText): Writer {
  let left = limit;
  return {
    get left() {
      return left;
    },
    write(text) {
      const masked = mask(text);
      const kept = masked.slice(0, left);
      left -= kept.length;
      return kept.length < masked.length ? `${kept.toWellFormed()}…` : masked;
    },
  };
}

/** Writes the latest messages that fit, each with the fields of `extra`. */
function messagesJson(messages: readonly Message[], mask: MaskText, extra: object = {}): string {
  const writer = writerOf(mask);
  const written: object[] = [];
  for (const message of messages.toReversed()) {
    if (writer.left === 0) break;
    written.push({ role: message.role, parts: partsOf(message, writer), ...extra });
  }
  return JSON.stringify(written.reverse());
}

/** Writes a text that is not part of a conversation. */
function textJson(text: string, mask: MaskText): string {
  return JSON.stringify([{ type: "text", content: writerOf(mask).write(text) }]);
}

/** Writes a value; one that JSON cannot hold is replaced by the name of the error. */
function valueJson(value: unknown, mask: MaskText): string {
  try {
    return writerOf(mask).write(JSON.stringify(value) ?? "");
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.name : typeof error}`;
  }
}

function partsOf(message: Message, writer: Writer): object[] {
  const written: object[] = [];
  const parts = message.role === "tool" ? message.results : message.parts;
  for (const part of parts) {
    if (writer.left === 0) break;
    written.push(
      "parts" in part
        ? { type: "tool_call_response", id: part.callId, response: writer.write(textOf(part)) }
        : partOf(part, writer),
    );
  }
  return written;
}

function partOf(part: AnswerPart | ContentPart, writer: Writer): object {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, content: writer.write(part.text) };
    case "call": {
      const text = JSON.stringify(part.input) ?? "";
      const written = writer.write(text);
      return {
        type: "tool_call",
        id: part.id,
        name: writer.write(part.name),
        arguments: written === text ? part.input : written,
      };
    }
    case "provider_call":
      return {
        type: "tool_call",
        id: part.callId,
        name: writer.write(part.name),
        arguments: writer.write(JSON.stringify(part.input)),
      };
    case "provider_result":
      return { type: "tool_call_response", id: part.callId, response: writer.write(JSON.stringify(part.output)) };
    case "source":
    case "refusal":
    case "logprobs":
      return { type: part.type, content: writer.write(JSON.stringify(part)) };
    case "media":
      return { type: "media", mime_type: part.mediaType };
  }
}

// Describes requests to models and calls of tools, with the attributes of the semantic conventions for generative AI.

/** The event of a completed call. */
type ToolFinished = Extract<Event, { type: "tool.finished" }>;
/** The event of a completed hook. */
type HookActed = Extract<Event, { type: "hook.acted" }>;

/** Selects optional attributes. */
export interface Details {
  /** Returns the attributes of the provider that serves a model. */
  readonly provider: (model: string) => Attributes;
  /** Masks the content, or is undefined if no content is recorded. */
  readonly content: MaskText | undefined;
}

const finishReasons: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  calls: "tool_call",
  length: "length",
  filter: "content_filter",
  refusal: "content_filter",
  empty: "stop",
  other: "other",
};

/** Describes a request to a model. */
export function chatOperation(ctx: ModelContext, { provider, content }: Details): Operation {
  const { run, turn, attempt, request: { model, messages, instructions, options } } = ctx;
  const { maxTokens, temperature, output } = options;
  return {
    name: "chat",
    target: model.id,
    labels: { "gen_ai.request.model": model.id, ...provider(model.id) },
    details: {
      "gen_ai.conversation.id": run.session,
      "jizai.turn": turn,
      "jizai.attempt": attempt,
      ...(maxTokens !== undefined && { "gen_ai.request.max_tokens": maxTokens }),
      ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
      ...(output && { "gen_ai.output.type": "json" }),
      ...(content && {
        "gen_ai.system_instructions": textJson(instructions, content),
        "gen_ai.input.messages": messagesJson(messages, content),
      }),
    },
  };
}

/** Describes the response of a model. */
export function chatOutcome({ model, finish, usage, parts }: ModelResponse, { content }: Details): Outcome {
  return {
    labels: { "gen_ai.response.model": model },
    tokens: usage,
    details: {
      "gen_ai.response.finish_reasons": [finishReasons[finish]],
      ...tokensOf(usage),
      ...(content && { "gen_ai.output.messages": answerJson(parts, finish, content) }),
    },
  };
}

/** A call, of a tool of the agent or of one that the provider runs. */
interface DescribedCall {
  readonly name: string;
  readonly callId: string;
  readonly type: "function" | "extension";
  readonly description?: string;
  readonly turn: number;
  readonly input: unknown;
}

function callOperation(
  { name, callId, type, description, turn, input }: DescribedCall,
  content: Details["content"],
): Operation {
  return {
    name: "execute_tool",
    target: name,
    labels: { "gen_ai.tool.name": name },
    details: {
      "gen_ai.tool.call.id": callId,
      "gen_ai.tool.type": type,
      ...(description !== undefined && { "gen_ai.tool.description": content?.(description) ?? description }),
      "jizai.turn": turn,
      ...(content && { "gen_ai.tool.call.arguments": valueJson(input, content) }),
    },
  };
}

function callOutcome(status: string, output: unknown, content: Details["content"]): Outcome {
  return {
    ...(content && { details: { "gen_ai.tool.call.result": valueJson(output, content) } }),
    error: status === "ok" ? undefined : status,
  };
}

/** Describes the execution of a call. */
export function toolOperation({ tool, callId, turn, input }: ExecuteContext, { content }: Details): Operation {
  const { name, description } = tool;
  return callOperation({ name, callId, type: "function", description, turn, input }, content);
}

/** Describes the result of a call. */
export function toolOutcome(result: Pick<ToolResult, "status" | "parts">, { content }: Details): Outcome {
  return callOutcome(result.status, content && textOf(result), content);
}

/** Describes a call that the provider of the model runs. */
export function providerOperation(
  { turn, content: { name, callId, input } }: Extract<Event, { type: "provider_tool.started" }>,
  { content }: Details,
): Operation {
  return callOperation({ name, callId, type: "extension", turn, input }, content);
}

/** Describes the result of a call that the provider has run. */
export function providerOutcome(
  { content: { status, output } }: Extract<Event, { type: "provider_tool.finished" }>,
  { content }: Details,
): Outcome {
  return callOutcome(status, output, content);
}

/** Describes a prompt. */
export function promptAttributes({ prompt }: Extract<Event, { type: "prompt.accepted" }>, mask: MaskText): Attributes {
  return { "gen_ai.input.messages": messagesJson([prompt], mask) };
}

/**
 * Describes a call that was not executed: it was denied or skipped, its input was invalid, or a hook answered it. A name that is not the name of a tool was
 * made up by the model, so it is content.
 */
export function unexecutedOutcome({ turn, result }: ToolFinished, isTool: boolean, details: Details): Outcome {
  const outcome = toolOutcome(result, details);
  const name = isTool ? result.name : details.content?.(result.name);
  return {
    details: {
      "gen_ai.operation.name": "execute_tool",
      ...(name !== undefined && { "gen_ai.tool.name": name }),
      "gen_ai.tool.call.id": result.callId,
      "gen_ai.tool.type": "function",
      "jizai.turn": turn,
      ...outcome.details,
    },
    error: outcome.error,
  };
}

/** Describes what a hook did. */
export function hookOutcome({ middleware, point, turn, call, did, changed, decided }: HookActed): Outcome {
  return {
    details: {
      "jizai.middleware": middleware,
      "jizai.point": point,
      "jizai.did": [...did],
      ...(turn !== undefined && { "jizai.turn": turn }),
      ...(call !== undefined && { "gen_ai.tool.call.id": call }),
      ...(changed && { "jizai.changed": [...changed] }),
      ...(decided !== undefined && { "jizai.decided": decided }),
    },
    error: did.includes("threw") ? "_OTHER" : undefined,
  };
}

/** Writes the answer of a model. */
function answerJson(parts: ModelResponse["parts"], finish: FinishReason, mask: MaskText): string {
  return messagesJson([{ role: "assistant", parts }], mask, { finish_reason: finishReasons[finish] });
}

/** Returns the attributes of tokens. */
function tokensOf({ input, output, cached, cacheWrite, reasoning }: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cached !== undefined && { "gen_ai.usage.cache_read.input_tokens": cached }),
    ...(cacheWrite !== undefined && { "gen_ai.usage.cache_creation.input_tokens": cacheWrite }),
    ...(reasoning !== undefined && { "gen_ai.usage.reasoning.output_tokens": reasoning }),
  };
}

// Describes runs with the attributes of the semantic conventions for generative AI.

/** The names of the limits of the engine and of `budget()` without a name. Any other reason for a limit is the text of a hook, so it is content. */
const limitNames = ["budget", "client-gone", "continuations", "deadline", "outputs", "recoveries", "turns"];

/** Describes a run. */
export function runOperation(
  { run, resumed, settings: { model } }: SessionContext,
  { provider }: Details,
): Operation {
  return {
    name: "invoke_agent",
    target: run.agent,
    labels: { "gen_ai.agent.name": run.agent, ...provider(model.id) },
    details: {
      "gen_ai.request.model": model.id,
      "gen_ai.conversation.id": run.session,
      "jizai.run.id": run.id,
      "jizai.run.resumed": resumed,
    },
  };
}

/** Describes the outcome of a run. */
export function runOutcome(
  { status, reason, usage, text, error }: Pick<RunResult, "status" | "reason" | "usage" | "text" | "error">,
  { content }: Details,
): Outcome {
  const failed = status === "failed" ? kindOf(error) : status === "aborted" ? status : undefined;
  return {
    details: {
      ...tokensOf(usage),
      "jizai.run.status": status,
      ...reasonOf(status, reason, content),
      ...(content && { "gen_ai.output.messages": answerJson([{ type: "text", text }], "stop", content) }),
    },
    error: failed,
  };
}

/** Returns the reason of a run that was stopped, or that reached a limit. */
function reasonOf(status: RunResult["status"], reason: string | undefined, mask: MaskText | undefined): Attributes {
  if (reason === undefined || (status !== "aborted" && status !== "limit")) return {};
  const isContent = status === "limit" && !limitNames.includes(reason);
  return mask || !isContent ? { "jizai.run.reason": mask?.(reason) ?? reason } : {};
}

/** Describes the outcome of an aborted run. */
export function abortOutcome(
  { reason, source, status: ended, usage, message }: AbortContext,
  details: Details,
): Outcome {
  const status = ended === "limit" ? ended : "aborted";
  const reasonField = source !== "hook" || details.content ? { reason } : {}; // a hook's reason is content that redact() has not masked
  return runOutcome({ status, ...reasonField, usage, text: message ? textOf(message) : "" }, details);
}

/** Describes a message from outside that was refused or changed. */
export function inputOutcome({ status }: InputResult): Outcome {
  return { details: { "jizai.input.status": status === "accepted" ? "changed" : "refused" } };
}
