/**
 * The parts of a chat completion that its stream and its JSON response share.
 *
 * @module
 */
import type { FinishReason } from "../../../protocol/event.ts";
import { encodeTokens } from "../logprobs.ts";
import type { Usage } from "../../../protocol/message.ts";
import type { AddedPart, ProviderCallPart, ProviderResultPart } from "../../../protocol/part.ts";
import { questionId } from "../../answer.ts";
import { isForClient } from "../../client_tool.ts";
import type { EventOf } from "../../encoder.ts";
import { finishOfRun, type NativeFinish, nativeFinish } from "../../finish_reason.ts";
import { encodeCallId } from "../call_id.ts";
import { responseName } from "../response_name.ts";
import type { EndEvent } from "../run_error.ts";
import { questionText } from "./text_question.ts";

/** The finish reasons that have another name here. After calls of the agent's own tools the run continues. */
const finishReasons: { readonly [key in FinishReason]?: string } = {
  calls: "stop",
  filter: "content_filter",
  refusal: "content_filter",
  empty: "stop",
  other: "stop",
};

/** Returns the fields that every chunk of a completion repeats. The completion begins with the event `begin`, whose number is `number`. */
export function completionHead(begin: EventOf<"run.started">, number: number, model: string): object {
  return { id: `chatcmpl-${responseName(begin, number)}`, created: Math.floor(Date.now() / 1_000), model };
}

/** The end of a completion. */
export interface CompletionEnd extends NativeFinish {
  /** Text to add: the question to a person, or the answer if no text was sent before. */
  readonly text: string;
  /** The calls that the client runs. */
  readonly calls: readonly object[];
  readonly finish_reason: string;
}

/** The completion so far. */
export interface CompletionState {
  readonly run: string;
  readonly session: string;
  readonly finish: FinishReason;
  readonly hasText: boolean;
}

/** Returns the end of a completion; `id` is the number of the event. */
export function completionEnd(
  end: EndEvent,
  id: number,
  { run, session, finish, hasText }: CompletionState,
): CompletionEnd {
  const questions = end.type === "run.paused" ? end.questions : [];
  const pause = { run, pausedAt: id };
  const calls = questions.filter(isForClient).map(({ callId, tool: name, input }) => ({
    id: encodeCallId({ session, call: questionId(callId, pause) }),
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const text = end.type === "run.finished" && !hasText ? end.text : questionText({ ...pause, session, questions });
  const reason = finishOfRun(end, finish);
  const finish_reason = calls.length > 0 ? "tool_calls" : finishReasons[reason] ?? reason;
  return { text, calls, finish_reason, ...(end.type === "run.finished" && nativeFinish(end)) };
}

/** A call that the provider has run, in the form of compatible servers. */
interface ExecutedTool {
  readonly id: string;
  readonly type: string;
  readonly arguments?: string;
  output?: string;
}

/** The fields of a message for parts that are complete at once. */
interface PartFields {
  annotations?: object[];
  images?: object[];
  audio?: object;
  refusal?: string;
  executed_tools?: ExecutedTool[];
  logprobs?: { readonly content: object[]; readonly refusal: null };
}

/**
 * Encodes sources as annotations, a recording as audio, other generated files as images, refusals, and calls that the provider runs as executed tools. The
 * images and the executed tools are extensions of compatible servers. The log probabilities belong to the choice, not to its message.
 */
export function partFields(parts: readonly AddedPart[]): PartFields {
  const fields: PartFields = {};
  for (const part of parts) addPart(fields, part);
  return fields;
}

function addPart(fields: PartFields, part: AddedPart): void {
  switch (part.type) {
    case "source": {
      const { url, title = url } = part;
      const citation = { url, title, start_index: 0, end_index: 0 };
      if (url !== undefined) (fields.annotations ??= []).push({ type: "url_citation", url_citation: citation });
      break;
    }
    case "media": {
      const { mediaType, data, url = `data:${mediaType};base64,${data}` } = part;
      if (mediaType.startsWith("audio/") && data !== undefined) {
        fields.audio ??= { id: "audio", data, transcript: "", expires_at: 0 };
      } else (fields.images ??= []).push({ type: "image_url", image_url: { url } });
      break;
    }
    case "refusal":
      if (part.text !== "") fields.refusal = (fields.refusal ?? "") + part.text;
      break;
    case "provider_call":
      (fields.executed_tools ??= []).push({ ...toolOf(part), arguments: JSON.stringify(part.input) });
      break;
    case "provider_result": {
      const tools = fields.executed_tools ??= [];
      const output = JSON.stringify(part.output);
      const begun = tools.find(({ id }) => id === part.callId);
      if (begun) begun.output = output;
      else tools.push({ ...toolOf(part), output });
      break;
    }
    case "logprobs": {
      const { content } = fields.logprobs ??= { content: [], refusal: null };
      content.push(...encodeTokens(part.tokens));
    }
  }
}

function toolOf({ callId: id, name: type }: ProviderCallPart | ProviderResultPart): ExecutedTool {
  return { id, type };
}

/** Encodes the token usage. */
export function completionUsage({ input, output, cached, cacheWrite, reasoning }: Required<Usage>): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
