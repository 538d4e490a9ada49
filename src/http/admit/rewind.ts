/**
 * Finds the last prompt in a session, so that it can be answered again.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/canonical_json.ts";
import type { Message } from "../../protocol/message.ts";
import type { Session } from "../../core/persistence/session.ts";
import { inputContext } from "../../core/run/transcript.ts";
import { allMessages, waitingPrompt } from "../../session/record/run_state.ts";

/**
 * Returns the number of messages of a session before its last prompt with the content of the new one, the last of `given`. Returns undefined if it has no
 * such prompt.
 */
export function messagesBefore(session: Session, given: readonly Message[]): number | undefined {
  const prompt = given.at(-1);
  const content = prompt && contentOf(prompt);
  if (content === undefined) return undefined;
  const messages = allMessages(session);
  const index = messages.findLastIndex((message) => contentOf(message) === content);
  if (index < 0) return undefined;
  const before = messages[index - 1];
  const hasContext = before?.role === "user" && before.from === inputContext; // hooks add it again
  const { keep = session.messages.length } = waitingPrompt(session) ?? {};
  return Math.min(hasContext ? index - 1 : index, keep);
}

/** Returns the content of a message of the user, as a text to compare. */
function contentOf(message: Message): string | undefined {
  return message.role === "user" && message.from === undefined ? canonicalJson(message.parts) : undefined;
}
