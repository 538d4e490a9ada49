/**
 * Describes requests and calls with the attributes of the semantic conventions for generative AI.
 *
 * @module
 */
import {
  type Event,
  type ExecuteContext,
  type FinishReason,
  type ModelContext,
  type ModelResponse,
  textOf,
  type ToolResult,
  type Usage,
} from "../../../mod.ts";
import type { Attributes } from "./api.ts";
import { type MaskText, messagesJson, textJson, valueJson } from "./content.ts";
import type { Operation, Outcome } from "./recorder.ts";

/** The event of a completed call. */
export type ToolFinished = Extract<Event, { type: "tool.finished" }>;
/** The event of a completed hook. */
export type HookActed = Extract<Event, { type: "hook.acted" }>;

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

/** Describes the execution of a call. */
export function toolOperation({ tool, callId, turn, input }: ExecuteContext, { content }: Details): Operation {
  return {
    name: "execute_tool",
    target: tool.name,
    labels: { "gen_ai.tool.name": tool.name },
    details: {
      "gen_ai.tool.call.id": callId,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.description": content?.(tool.description) ?? tool.description,
      "jizai.turn": turn,
      ...(content && { "gen_ai.tool.call.arguments": valueJson(input, content) }),
    },
  };
}

/** Describes the result of a call. */
export function toolOutcome(result: Pick<ToolResult, "status" | "parts">, { content }: Details): Outcome {
  return {
    ...(content && { details: { "gen_ai.tool.call.result": valueJson(textOf(result), content) } }),
    error: result.status === "ok" ? undefined : result.status,
  };
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
export function answerJson(parts: ModelResponse["parts"], finish: FinishReason, mask: MaskText): string {
  return messagesJson([{ role: "assistant", parts }], mask, { finish_reason: finishReasons[finish] });
}

/** Returns the attributes of tokens. */
export function tokensOf({ input, output, cached, cacheWrite, reasoning }: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cached !== undefined && { "gen_ai.usage.cache_read.input_tokens": cached }),
    ...(cacheWrite !== undefined && { "gen_ai.usage.cache_creation.input_tokens": cacheWrite }),
    ...(reasoning !== undefined && { "gen_ai.usage.reasoning.output_tokens": reasoning }),
  };
}
