/**
 * Ids of messages, for clients that name a message later.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";

/** Returns the id of a message of a session: the one that its client gave it, or else its place in the session. */
export function messageIdOf(session: string, message: Message, index: number): string {
  return (message.role === "user" ? message.id : undefined) ?? `${session}.${index}`;
}
