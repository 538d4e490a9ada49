/**
 * Transcripts are always valid. One rule repairs what is not: every call is answered once, right after the message that made it, in its order.
 * A result without a call is left out, a second result too, a call without a result is answered as skipped, a second call of one id is left out,
 * and a message that has nothing else too.
 *
 * @module
 */
import { type AssistantMessage, type CallResult, callsOf, type Message } from "../protocol/message.ts";

/** A transcript, and what had to be mended to make it valid. */
export interface Checked {
  readonly messages: readonly Message[];
  readonly problems: readonly string[];
}

/** Makes `messages` valid; gives the very same array where they are. */
export function repairTranscript(messages: readonly Message[]): Checked {
  const problems: string[] = [];
  const mended: Message[] = [];
  const seen = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "tool") {
      problems.push(`results without calls: ${message.results.map(({ callId }) => callId).join(", ") || "none"}`);
    } else if (message?.role === "assistant") {
      const kept = unique(message, seen, problems);
      const calls = callsOf(kept);
      const following = messages[index + 1];
      if (kept === message || kept.parts.length > 0) mended.push(kept);
      if (calls.length > 0) {
        const given = following?.role === "tool" ? following.results : [];
        const results = paired(calls, given, problems);
        mended.push(following?.role === "tool" && results === given ? following : { role: "tool", results });
        if (following?.role === "tool") index++;
      }
    } else if (message) mended.push(message);
  }
  return problems.length === 0 ? { messages, problems } : { messages: mended, problems };
}

function unique(message: AssistantMessage, seen: Set<string>, problems: string[]): AssistantMessage {
  const before = problems.length;
  const parts = message.parts.filter((part) => {
    if (part.type !== "call") return true;
    if (seen.has(part.id)) {
      problems.push(`a second call ${part.id}`);
      return false;
    }
    seen.add(part.id);
    return true;
  });
  return problems.length === before ? message : { ...message, parts };
}

/** One result for each call, in the calls' order. */
function paired(
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
