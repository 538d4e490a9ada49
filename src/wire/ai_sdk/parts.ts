/**
 * Message parts that are the same in a stream and in the list of messages.
 *
 * @module
 */
import type { ContentPart, MediaPart, SourcePart, UserMessage } from "../../protocol/message.ts";

/** Returns the id of the approval request for a call in one pause. */
export function approvalId(callId: string, pausedAt: number): string {
  return `${callId}@${pausedAt}`;
}

/**
 * Returns the ids of the subagent calls that contain a call. They get the question as their output, because the client resumes only when every other call has
 * an output.
 */
export function subagentCalls(callId: string): readonly string[] {
  const path = callId.split("/");
  return path.slice(1).map((_, index) => path.slice(0, index + 1).join("/"));
}

/** Encodes a generated file or a source, as a chunk and as a part of a message. */
export function partChunk(part: MediaPart | SourcePart, sourceId: string): object {
  if (part.type === "media") return contentPart(part);
  const { url, title, text } = part;
  return url === undefined
    ? { type: "source-document", sourceId, mediaType: "text/plain", title: title ?? text ?? "" }
    : { type: "source-url", sourceId, url, title };
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
