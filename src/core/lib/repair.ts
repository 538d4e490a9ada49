/**
 * Repair of transcripts. Providers reject a transcript unless every call has one result, right after the message of the call, in order.
 *
 * A result without a call and a second result of a call are dropped. A call without a result gets a result of status "skipped". A second call with the same
 * id is dropped, and so is a message that then has no parts.
 *
 * @module
 */
import { type AssistantMessage, type CallResult, callsOf, type Message } from "../../protocol/message.ts";

/** A valid transcript, and the problems that were repaired. */
export interface RepairedTranscript {
  /** The messages. They are the array that was given, if it was valid. */
  readonly messages: readonly Message[];
  /** The problems, each as a phrase such as `no result for call c1`. */
  readonly problems: readonly string[];
}

/** Throws a `TypeError` that starts with `operation` if one of `messages` has none of `roles`, or no list of parts or results: it cannot be repaired. */
export function expectMessages(
  operation: string,
  messages: readonly unknown[],
  roles: readonly Message["role"][] = ["user", "assistant", "tool"],
): void {
  for (const message of messages) {
    const { role, parts, results } = Object(message);
    const content = role === "tool" ? results : parts;
    if (roles.includes(role) && Array.isArray(content) && content.every(isPart)) continue;
    throw new TypeError(`${operation}: expected messages with \`role\` and \`parts\`, such as user("Hi")`);
  }
}

/** Returns true for an object that has its text if it is a text. */
function isPart(part: unknown): boolean {
  const { type, text } = Object(part);
  return Object(part) === part && (type !== "text" || typeof text === "string");
}

/** Makes `messages` a valid transcript. */
export function repairTranscript(messages: readonly Message[]): RepairedTranscript {
  const problems: string[] = [];
  const repaired: Message[] = [];
  const callIds = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "tool") {
      problems.push(`results without calls: ${message.results.map(({ callId }) => callId).join(", ") || "none"}`);
    } else if (message?.role === "assistant") {
      const kept = dropRepeatedCalls(message, callIds, problems);
      const calls = callsOf(kept);
      const following = messages[index + 1];
      if (kept === message || kept.parts.length > 0) repaired.push(kept);
      if (calls.length > 0) {
        const given = following?.role === "tool" ? following.results : [];
        const results = pairResults(calls, given, problems);
        repaired.push(following?.role === "tool" && results === given ? following : { role: "tool", results });
        if (following?.role === "tool") index++;
      }
    } else if (message) repaired.push(message);
  }
  return problems.length === 0 ? { messages, problems } : { messages: repaired, problems };
}

function dropRepeatedCalls(message: AssistantMessage, callIds: Set<string>, problems: string[]): AssistantMessage {
  const before = problems.length;
  const parts = message.parts.filter((part) => {
    if (part.type !== "call") return true;
    if (callIds.has(part.id)) {
      problems.push(`a second call ${part.id}`);
      return false;
    }
    callIds.add(part.id);
    return true;
  });
  return problems.length === before ? message : { ...message, parts };
}

/** Returns one result for each call, in the order of the calls. */
function pairResults(
  calls: readonly { readonly id: string; readonly name: string }[],
  given: readonly CallResult[],
  problems: string[],
): readonly CallResult[] {
  if (given.length === calls.length && given.every((result, index) => result.callId === calls[index]?.id)) return given;
  const before = problems.length;
  const byId = new Map<string, CallResult>();
  for (const result of given) {
    if (byId.has(result.callId)) problems.push(`a second result for call ${result.callId}`);
    else byId.set(result.callId, result);
  }
  const results = calls.map(({ id, name }): CallResult => {
    const result = byId.get(id);
    byId.delete(id);
    if (result) return result;
    problems.push(`no result for call ${id}`);
    return { callId: id, name, status: "skipped", parts: [{ type: "text", text: "There is no result." }] };
  });
  for (const id of byId.keys()) problems.push(`a result for call ${id}, which was not made`);
  if (problems.length === before) problems.push("results out of order");
  return results;
}
