/**
 * Parts of messages of a chat, which are the same whether they are streamed or shown.
 *
 * @module
 */
import type { ContentPart, UserMessage } from "../../protocol/message.ts";

/** By what the client is asked about a call, as it was in that pause. */
export function approvalId(callId: string, pause: number): string {
  return `${callId}@${pause}`;
}

/** The calls of the agents that a call is made in. A client goes on where nothing but what it is asked is open: they come to the question. */
export function agentsOf(callId: string): readonly string[] {
  const path = callId.split("/");
  return path.slice(1).map((_, index) => path.slice(0, index + 1).join("/"));
}

/** What a person said, as a part of a message of theirs. */
export function contentOf(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType, data, url } = part;
  return { type: "file", mediaType, url: url ?? `data:${mediaType};base64,${data}` };
}

/** What a person said while the agent was at it, as a part of what that says. */
export function steering({ parts }: UserMessage, id: string): object {
  return { type: "steering-message", id, parts: parts.map(contentOf) };
}
