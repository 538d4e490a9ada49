/**
 * Message parts that are the same in a stream and in the list of messages.
 *
 * @module
 */
import type { UserMessage } from "../../protocol/message.ts";
import type { ContentPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import type { Question } from "../../protocol/question.ts";
import type { EventOf } from "../encoder.ts";

/**
 * Whether a question is about a call inside the subagent of the call `id`. That call gets the question as its output, because the client resumes only when every
 * other call has an output.
 */
export function isInside({ callId, tool, path = [] }: Question, id: string): boolean {
  return tool !== undefined && path.length > 0 && callId?.startsWith(`${id}/`) === true;
}

/** Encodes a part that is complete at once, as a chunk. Files and sources are parts of a message in the same form. */
export function partChunk(part: EventOf<"part.added">["content"], sourceId: string): object {
  if (part.type === "media") return contentPart(part);
  if (part.type !== "source") {
    const { type, ...data } = part;
    return { type: `data-${type}`, data };
  }
  const { url, title, text } = part;
  return url === undefined
    ? { type: "source-document", sourceId, mediaType: "text/plain", title: title ?? text ?? "" }
    : { type: "source-url", sourceId, url, title };
}

/** Returns the state of a call that the provider runs, and the fields that its chunk and its part of a message share. */
export function providerFields(part: ProviderCallPart | ProviderResultPart): { readonly [field: string]: unknown } {
  const call = { toolCallId: part.callId, providerExecuted: true };
  if (part.type === "provider_call") {
    return { state: "input-available", ...call, toolName: part.name, input: part.input };
  }
  const { output } = part;
  if (part.status === "ok") return { state: "output-available", ...call, output };
  return { state: "output-error", ...call, errorText: JSON.stringify(output) };
}

/** Encodes content of a user message. */
export function contentPart(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType, data, url } = part;
  return { type: "file", mediaType, url: url ?? `data:${mediaType};base64,${data}` };
}

/** Encodes a message that the user sent during the run, as a part of the assistant's message. */
export function steeringPart({ parts }: UserMessage, id: string): object {
  return { type: "steering-message", id, parts: parts.map(contentPart) };
}
