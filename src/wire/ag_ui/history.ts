/**
 * The messages of a run as an AG-UI client holds them, so that a snapshot can replace them.
 *
 * @module
 */
import { frameOf } from "../frames.ts";

/** A message of an agent, as far as the client has received it. */
export interface AgentMessage {
  readonly id: string;
  readonly role: "assistant" | "reasoning";
  readonly subagentRunId?: string;
  content?: string;
  toolCalls?: object[];
}

/** Any message of the client. */
export interface ClientMessage {
  readonly id: string;
  readonly role: string;
}

/** The client's messages. */
export interface History {
  /** The messages of this run. */
  readonly messages: ClientMessage[];
  /** Encodes all messages, which replaces those that the client holds. */
  snapshot(): string;
  /** Whether the client ran the call itself and sent its result. */
  hasResult(toolCallId: string): boolean;
}

/** Creates the history of a run that begins with `sent`, the messages of the request. */
export function historyOf(sent: readonly { readonly [key: string]: unknown }[]): History {
  const messages: ClientMessage[] = [];
  return {
    messages,
    snapshot: () => frameOf({ type: "MESSAGES_SNAPSHOT", messages: [...sent, ...messages] }),
    hasResult: (call) => sent.some(({ toolCallId }) => toolCallId === call),
  };
}
