/**
 * Rewinds a session to before its last prompt, so that the prompt can be answered again.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/canonical_json.ts";
import type { Message } from "../../protocol/message.ts";
import type { Session } from "../../core/persistence/session.ts";
import { inputContext } from "../../core/run/transcript.ts";
import { allMessages, withoutRun } from "../../session/record/run_state.ts";

/** Returns the session as it was before its last prompt with the content of `prompt`, without a paused run. Returns undefined if it has no such prompt. */
export function rewound(session: Session, prompt: Message): Session | undefined {
  const content = contentOf(prompt);
  const messages = allMessages(session);
  const index = messages.findLastIndex((message) => contentOf(message) === content);
  if (index < 0) return undefined;
  const before = messages[index - 1];
  const hasContext = before?.role === "user" && before.from === inputContext; // hooks add it again
  return { ...withoutRun(session), messages: messages.slice(0, hasContext ? index - 1 : index) };
}

/** Returns the content of a message of the user, as a text to compare. */
function contentOf(message: Message): string | undefined {
  return message.role === "user" && message.from === undefined ? canonicalJson(message.parts) : undefined;
}
