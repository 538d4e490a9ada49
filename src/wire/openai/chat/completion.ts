/**
 * The parts of a chat completion that its stream and its JSON response share.
 *
 * @module
 */
import type { FinishReason } from "../../../protocol/response_event.ts";
import { encodeTokens } from "../logprobs.ts";
import { providerResultOf, type Usage } from "../../../protocol/message.ts";
import type { AddedPart, ProviderCallPart, ProviderResultPart } from "../../../protocol/part.ts";
import { isForClient } from "../../client_tool.ts";
import { encodeCallId } from "../call_id.ts";
import type { EndEvent } from "../run_error.ts";
import { questionText } from "./text_question.ts";

const finishReasons: { readonly [key in FinishReason]: string } = {
  stop: "stop",
  calls: "stop", // of the agent's own tools, after which the run continues
  length: "length",
  filter: "content_filter",
  other: "stop",
};

/** Returns the fields that every chunk of a completion repeats. */
export function completionHead(run: string, model: string): object {
  return { id: `chatcmpl-${run}`, created: Math.floor(Date.now() / 1_000), model };
}

/** The end of a completion. */
export interface CompletionEnd {
  /** Text to add: the question to a person, or the answer if no text was sent before. */
  readonly text: string;
  /** The calls that the client runs. */
  readonly calls: readonly object[];
  readonly finish_reason: string;
}

/** The completion so far. */
export interface CompletionState {
  readonly session: string;
  readonly finish: FinishReason;
  readonly hasText: boolean;
}

/** Returns the end of a completion; `id` is the number of the event. */
export function completionEnd(end: EndEvent, id: number, { session, finish, hasText }: CompletionState): CompletionEnd {
  const questions = end.type === "run.paused" ? end.questions : [];
  const calls = questions.filter(isForClient).map(({ callId = "", tool: name, input }) => ({
    id: encodeCallId({ session, call: callId }),
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const text = end.type === "run.finished" && !hasText ? end.text : questionText({ session, pausedAt: id, questions });
  const isLimit = end.type === "run.finished" && end.status === "limit";
  const finish_reason = calls.length > 0 ? "tool_calls" : isLimit ? "length" : finishReasons[finish];
  return { text, calls, finish_reason };
}

/**
 * Encodes sources as annotations, a recording as audio, other generated files as images, refusals, and calls that the provider runs as executed tools. The
 * images and the executed tools are extensions of compatible servers.
 */
export function partFields(parts: readonly AddedPart[]): object {
  const annotations = parts.flatMap((part) =>
    part.type === "source" && part.url !== undefined
      ? [{
        type: "url_citation",
        url_citation: { url: part.url, title: part.title ?? part.url, start_index: 0, end_index: 0 },
      }]
      : []
  );
  const media = parts.filter((part) => part.type === "media").map((part) => {
    const { mediaType, data, url = `data:${mediaType};base64,${data}` } = part;
    return {
      audio: mediaType.startsWith("audio/") ? data : undefined,
      image: { type: "image_url", image_url: { url } },
    };
  });
  const images = media.flatMap(({ audio, image }) => audio === undefined ? [image] : []);
  const recording = media.find(({ audio }) => audio !== undefined)?.audio;
  const refusal = parts.flatMap((part) => part.type === "refusal" ? [part.text] : []).join("");
  const executed_tools = parts.flatMap((part) => {
    if (part.type === "provider_call") return [executedTool(part, providerResultOf(part, parts))];
    const isAlone = part.type === "provider_result" && !parts.some((each) => isCallOf(each, part));
    return isAlone ? [{ id: part.callId, type: part.name, output: JSON.stringify(part.output) }] : [];
  });
  return {
    ...(annotations.length > 0 && { annotations }),
    ...(images.length > 0 && { images }),
    ...(recording !== undefined && { audio: { id: "audio", data: recording, transcript: "", expires_at: 0 } }),
    ...(refusal !== "" && { refusal }),
    ...(executed_tools.length > 0 && { executed_tools }),
  };
}

/** Encodes log probabilities; undefined if there are none. */
export function logprobsField(parts: readonly AddedPart[]): object | undefined {
  const tokens = parts.flatMap((part) => part.type === "logprobs" ? part.tokens : []);
  return tokens.length > 0 ? { content: encodeTokens(tokens), refusal: null } : undefined;
}

function isCallOf(part: AddedPart, { callId }: ProviderResultPart): boolean {
  return part.type === "provider_call" && part.callId === callId;
}

function executedTool({ callId: id, name: type, input }: ProviderCallPart, result?: ProviderResultPart): object {
  return { id, type, arguments: JSON.stringify(input), ...(result && { output: JSON.stringify(result.output) }) };
}

/** Encodes the token usage. */
export function completionUsage({ input, output, cached = 0 }: Usage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
}
