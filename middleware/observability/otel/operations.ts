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
  type Model,
  type ModelContext,
  type ModelResponse,
  type Run,
  type RunResult,
  type SessionContext,
  textOf,
  type ToolResult,
  type Usage,
} from "../../../mod.ts";
import type { ToolOperation } from "../../../src/core/kit.ts";

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

/** Writes the latest messages that fit. */
function messagesJson(messages: readonly Message[], mask: MaskText): string {
  const writer = writerOf(mask);
  const written: object[] = [];
  for (const message of messages.toReversed()) {
    if (writer.left === 0) break;
    written.push({ role: message.role, parts: partsOf(message, writer) });
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

// Names the provider and the server of a model.

/** The providers whose servers an adapter of another one may reach. */
const hosts: readonly (readonly [host: RegExp, provider: string])[] = [
  [/(^|\.)(openai|cognitiveservices)\.azure\.com$/, "azure.ai.openai"],
  [/(^|\.)services\.ai\.azure\.com$/, "azure.ai.inference"],
  [/^bedrock[\w-]*\..*\bamazonaws\.com$/, "aws.bedrock"],
  [/(^|[.-])aiplatform\.googleapis\.com$/, "gcp.vertex_ai"],
  [/^generativelanguage\.googleapis\.com$/, "gcp.gemini"],
  [/(^|\.)ml\.cloud\.ibm\.com$/, "ibm.watsonx.ai"],
  [/(^|\.)cohere\.(ai|com)$/, "cohere"],
  [/(^|\.)deepseek\.com$/, "deepseek"],
  [/(^|\.)groq\.com$/, "groq"],
  [/(^|\.)mistral\.ai$/, "mistral_ai"],
  [/(^|\.)moonshot\.(ai|cn)$/, "moonshot_ai"],
  [/(^|\.)perplexity\.ai$/, "perplexity"],
  [/(^|\.)x\.ai$/, "x_ai"],
];

/** Returns the name of the provider that serves a model: by the host of its server, or else as the adapter of the model names it. */
export function providerOf({ server }: Model): string {
  const address = server?.address ?? "";
  return hosts.find(([host]) => host.test(address))?.[1] ?? server?.provider ?? "unknown";
}

function serverOf({ server }: Model): Attributes {
  const { address, port } = server ?? {};
  if (address === undefined) return {};
  return { "server.address": address, ...(port !== undefined && { "server.port": port }) };
}

// Describes requests to models and calls of tools, with the attributes of the semantic conventions for generative AI.

/** The event of a completed call. */
type ToolFinished = Extract<Event, { type: "tool.finished" }>;
/** The event of a completed hook. */
type HookActed = Extract<Event, { type: "hook.acted" }>;

/** Selects optional attributes. */
export interface Details {
  /** Returns the name of the provider that serves a model. */
  readonly provider: (model: Model) => string;
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
  const { maxTokens, temperature, stop, seed, effort, output } = options;
  return {
    name: `chat ${model.id}`,
    isRemote: true,
    duration: "gen_ai.client.inference.duration",
    labels: {
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": model.id,
      "gen_ai.provider.name": provider(model),
      ...serverOf(model),
    },
    details: {
      "gen_ai.request.stream": true, // the interface of models has no other request
      "gen_ai.conversation.id": run.session,
      "jizai.turn": turn,
      "jizai.attempt": attempt,
      ...(maxTokens !== undefined && { "gen_ai.request.max_tokens": maxTokens }),
      ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
      ...(stop && { "gen_ai.request.stop_sequences": [...stop] }),
      ...(seed !== undefined && { "gen_ai.request.seed": seed }),
      ...(effort && { "gen_ai.request.reasoning.level": effort }),
      ...(output && { "gen_ai.output.type": "json" }),
      ...(content && {
        "gen_ai.system_instructions": textJson(instructions, content),
        "gen_ai.input.messages": messagesJson(messages, content),
      }),
    },
  };
}

/** Describes the response of a model. */
export function chatOutcome(
  { model, finish, usage, parts, id, firstChunk }: ModelResponse,
  { content }: Details,
): Outcome {
  const { cached, cacheWrite, reasoning } = usage;
  const waited = firstChunk !== undefined && firstChunk / 1_000;
  return {
    labels: { "gen_ai.response.model": model },
    tokens: usage,
    ...(waited !== false && { measured: { "gen_ai.client.inference.time_to_first_chunk": waited } }),
    details: {
      ...(id !== undefined && { "gen_ai.response.id": id }),
      "gen_ai.response.finish_reasons": [finishReasons[finish]],
      ...(waited !== false && { "gen_ai.response.time_to_first_chunk": waited }),
      ...tokensOf(usage),
      ...(cached !== undefined && { "gen_ai.usage.cache_read.input_tokens": cached }),
      ...(cacheWrite !== undefined && { "gen_ai.usage.cache_write.input_tokens": cacheWrite }),
      ...(reasoning !== undefined && { "gen_ai.usage.reasoning.output_tokens": reasoning }),
      ...(content && { "gen_ai.output.messages": answerJson(parts, content) }),
    },
  };
}

/** A call, of a tool of the agent or of one that the provider runs. */
interface DescribedCall {
  readonly run: Run;
  readonly name: string;
  readonly callId: string;
  readonly type: "function" | "extension";
  readonly description?: string;
  readonly turn: number;
  readonly input: unknown;
}

/** Returns the attributes that identify a call. */
function callAttributes({ run, callId, turn }: Pick<DescribedCall, "run" | "callId" | "turn">): Attributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.call.id": callId,
    "gen_ai.conversation.id": run.session,
    "jizai.turn": turn,
  };
}

function callOperation(call: DescribedCall, content: Details["content"]): Operation {
  const { run, name, type, description, input } = call;
  return {
    name: `execute_tool ${name}`,
    duration: "gen_ai.execute_tool.duration",
    labels: { "gen_ai.tool.name": name, "gen_ai.tool.type": type, "gen_ai.agent.name": run.agent },
    details: {
      ...callAttributes(call),
      ...(description !== undefined && { "gen_ai.tool.description": content?.(description) ?? description }),
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

/** Describes the execution of a call. A tool that loads a skill, or reads a file of one, is named with it. The model names the file, so it is content. */
export function toolOperation(
  { run, tool: { name, description }, callId, turn, input }: ExecuteContext,
  meaning: ToolOperation | undefined,
  { content }: Details,
): Operation {
  const call = callOperation({ run, name, callId, type: "function", description, turn, input }, content);
  if (meaning?.type !== "skill") return call;
  const skill = meaning.name;
  const resource = meaning.resource !== undefined && content?.(meaning.resource);
  const target = meaning.resource === undefined ? ` ${skill}` : resource ? ` ${skill} ${resource}` : "";
  return {
    ...call,
    name: call.name + target,
    details: {
      ...call.details,
      "gen_ai.skill.name": skill,
      ...(resource && { "gen_ai.skill.resource.name": resource }),
    },
  };
}

/** Describes the operation behind a call that has a span of its own, inside that of the call. */
export function innerOperation({ run }: ExecuteContext, meaning: ToolOperation | undefined): Operation | undefined {
  if (meaning === undefined || meaning.type === "skill") return undefined;
  const operation = { "gen_ai.operation.name": meaning.type };
  if (meaning.type === "plan") {
    return { name: `plan ${run.agent}`, labels: { ...operation, "gen_ai.agent.name": run.agent }, details: {} };
  }
  return {
    name: meaning.type,
    isRemote: true,
    duration: "gen_ai.client.operation.duration",
    labels: operation,
    details: { ...(meaning.record !== undefined && { "gen_ai.memory.record.id": meaning.record }) },
  };
}

/** Describes the result of a call. */
export function toolOutcome(result: Pick<ToolResult, "status" | "parts">, { content }: Details): Outcome {
  return callOutcome(result.status, content && textOf(result), content);
}

/** Describes a call that the provider of the model runs. */
export function providerOperation(
  run: Run,
  { turn, content: { name, callId, input } }: Extract<Event, { type: "provider_tool.started" }>,
  { content }: Details,
): Operation {
  return callOperation({ run, name, callId, type: "extension", turn, input }, content);
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
export function unexecutedOutcome(
  run: Run,
  { turn, result }: ToolFinished,
  isTool: boolean,
  details: Details,
): Outcome {
  const outcome = toolOutcome(result, details);
  const name = isTool ? result.name : details.content?.(result.name);
  return {
    details: {
      ...callAttributes({ run, turn, callId: result.callId }),
      ...(name !== undefined && { "gen_ai.tool.name": name }),
      "gen_ai.tool.type": "function",
      "gen_ai.agent.name": run.agent,
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
function answerJson(parts: ModelResponse["parts"], mask: MaskText): string {
  return messagesJson([{ role: "assistant", parts }], mask);
}

/** Returns the attributes of all tokens. */
function tokensOf({ input, output }: Usage): Attributes {
  return { "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output };
}

// Describes runs with the attributes of the semantic conventions for generative AI.

/** The names of the limits of the engine and of `budget()` without a name. Any other reason for a limit is the text of a hook, so it is content. */
const limitNames = ["budget", "client-gone", "continuations", "deadline", "outputs", "recoveries", "turns"];

/** Describes a run. */
export function runOperation(
  { run, resumed }: SessionContext,
  continues: string | undefined,
): Operation {
  return {
    name: `invoke_agent ${run.agent}`,
    duration: "gen_ai.invoke_agent.duration",
    labels: { "gen_ai.agent.name": run.agent },
    continues,
    details: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": run.session,
      "jizai.run.id": run.id,
      "jizai.run.resumed": resumed,
    },
  };
}

/** The part of a result that describes a run. */
type RunEnd = Pick<RunResult, "status" | "reason" | "finish" | "usage" | "text" | "error">;

/** Describes the outcome of a run. */
export function runOutcome(
  { status, reason, finish, usage, text, error }: RunEnd,
  { content }: Details,
): Outcome {
  const failed = status === "failed" ? kindOf(error) : status === "aborted" ? status : undefined;
  return {
    details: {
      ...tokensOf(usage),
      ...(finish && { "gen_ai.response.finish_reasons": [finishReasons[finish]] }),
      "jizai.run.status": status,
      ...reasonOf(status, reason, content),
      ...(content && { "gen_ai.output.messages": answerJson([{ type: "text", text }], content) }),
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
