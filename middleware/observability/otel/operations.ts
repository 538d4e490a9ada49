/**
 * What is said of each operation, in the words of the semantic conventions for generative AI.
 *
 * @module
 */
import {
  type AbortContext,
  type Event,
  type ExecuteContext,
  type FinishReason,
  type ModelContext,
  type ModelResponse,
  type RunResult,
  type SessionContext,
  textOf,
  type ToolResult,
  type Usage,
} from "../../../mod.ts";
import type { Attributes } from "./api.ts";
import { messagesJson, textJson, valueJson } from "./content.ts";
import { kindOf, type Operation, type Outcome } from "./measure.ts";

/** A call that is over, told. */
export type Finished = Extract<Event, { type: "tool.finished" }>;
/** A hook that is over, told. */
export type Acted = Extract<Event, { type: "hook.acted" }>;

/** What beside the facts is said. */
export interface Saying {
  /** Who serves a model. */
  readonly provider: (model: string) => Attributes;
  /** Whether what was said is said too. */
  readonly content: boolean;
}

const finishReasons: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  calls: "tool_call",
  length: "length",
  filter: "content_filter",
  other: "other",
};

/** One run of an agent. */
export function invocation(
  { run, resumed, settings: { model } }: SessionContext,
  { provider }: Saying,
): Operation {
  return {
    name: "invoke_agent",
    of: run.agent,
    labels: { "gen_ai.agent.name": run.agent, ...provider(model.id) },
    details: {
      "gen_ai.request.model": model.id,
      "gen_ai.conversation.id": run.session,
      "jizai.run.id": run.id,
      "jizai.run.resumed": resumed,
    },
  };
}

/** What a run came to. */
export function invoked(
  { status, reason, usage, text, error }: Pick<RunResult, "status" | "reason" | "usage" | "text" | "error">,
  { content }: Saying,
): Outcome {
  const failed = status === "failed" ? kindOf(error) : status === "aborted" ? status : undefined;
  const named = status === "limit" || status === "aborted";
  return {
    details: {
      ...tokensOf(usage),
      "jizai.run.status": status,
      ...(named && reason !== undefined && { "jizai.run.reason": reason }),
      ...(content && { "gen_ai.output.messages": answerJson([{ type: "text", text }], "stop") }),
    },
    error: failed,
  };
}

/** What a run came to that was cut short. */
export function cut({ reason, usage, message }: AbortContext, saying: Saying): Outcome {
  const status = reason === "deadline" ? "limit" : "aborted";
  return invoked({ status, reason, usage, text: message ? textOf(message) : "" }, saying);
}

/** One request to a model. */
export function chat(ctx: ModelContext, { provider, content }: Saying): Operation {
  const { run, turn, attempt, request: { model, messages, instructions, options } } = ctx;
  const { maxTokens, temperature, output } = options;
  return {
    name: "chat",
    of: model.id,
    labels: { "gen_ai.request.model": model.id, ...provider(model.id) },
    details: {
      "gen_ai.conversation.id": run.session,
      "jizai.turn": turn,
      "jizai.attempt": attempt,
      ...(maxTokens !== undefined && { "gen_ai.request.max_tokens": maxTokens }),
      ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
      ...(output && { "gen_ai.output.type": "json" }),
      ...(content && {
        "gen_ai.system_instructions": textJson(instructions),
        "gen_ai.input.messages": messagesJson(messages),
      }),
    },
  };
}

/** What a model answered. */
export function answered({ model, finish, usage, parts }: ModelResponse, { content }: Saying): Outcome {
  return {
    labels: { "gen_ai.response.model": model },
    tokens: usage,
    details: {
      "gen_ai.response.finish_reasons": [finishReasons[finish]],
      ...tokensOf(usage),
      ...(content && { "gen_ai.output.messages": answerJson(parts, finish) }),
    },
  };
}

/** One call of a tool. */
export function execution({ tool, callId, turn, input }: ExecuteContext, { content }: Saying): Operation {
  return {
    name: "execute_tool",
    of: tool.name,
    labels: { "gen_ai.tool.name": tool.name },
    details: {
      "gen_ai.tool.call.id": callId,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.description": tool.description,
      "jizai.turn": turn,
      ...(content && { "gen_ai.tool.call.arguments": valueJson(input) }),
    },
  };
}

/** What a call came to. */
export function called(result: Pick<ToolResult, "status" | "parts">, { content }: Saying): Outcome {
  return {
    ...(content && { details: { "gen_ai.tool.call.result": valueJson(textOf(result)) } }),
    error: result.status === "ok" ? undefined : result.status,
  };
}

/** What was asked. */
export function prompted({ prompt }: Extract<Event, { type: "prompt.accepted" }>): Attributes {
  return { "gen_ai.input.messages": messagesJson([prompt]) };
}

/** A call that came to its result without being executed: it was denied or skipped, its input was wrong, or a hook answered it. */
export function notExecuted({ turn, result }: Finished, saying: Saying): Outcome {
  const { details, error } = called(result, saying);
  return {
    details: {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": result.name,
      "gen_ai.tool.call.id": result.callId,
      "gen_ai.tool.type": "function",
      "jizai.turn": turn,
      ...details,
    },
    error,
  };
}

/** What a hook did. */
export function acted({ middleware, point, turn, call, did, changed, decided }: Acted): Outcome {
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

function answerJson(parts: ModelResponse["parts"], finish: FinishReason): string {
  return messagesJson([{ role: "assistant", parts }], { finish_reason: finishReasons[finish] });
}

function tokensOf({ input, output, cached }: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cached !== undefined && { "gen_ai.usage.cache_read.input_tokens": cached }),
  };
}
