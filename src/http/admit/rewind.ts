/**
 * Finds the prompt of a session that a new one replaces.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/json.ts";
import type { Message, UserMessage } from "../../protocol/message.ts";
import type { Session } from "../../core/session.ts";
import { inputContext } from "../../core/transcript.ts";
import { allMessages, waitingPrompt } from "../../session/record/run_state.ts";
import { messageIdOf } from "../../wire/frames.ts";
import type { Prompt } from "../../wire/wire.ts";

/**
 * Returns the number of messages before the prompt that the last of `given` replaces: the last prompt with its id, or, with "id-or-content", else the
 * last one with its content. Undefined if there is none.
 */
export function messagesBefore(
  session: Session,
  given: readonly Message[],
  replaces: NonNullable<Prompt["replaces"]>,
): number | undefined {
  const prompt = given.at(-1);
  if (prompt?.role !== "user") return undefined;
  const messages = allMessages(session);
  const lastPrompt = (matches: (message: UserMessage, index: number) => boolean) =>
    messages.findLastIndex((message, index) =>
      message.role === "user" && message.from === undefined && matches(message, index)
    );
  let index = lastPrompt((message, index) => messageIdOf(session.id, message, index) === prompt.id);
  if (index < 0 && replaces === "id-or-content") {
    const content = canonicalJson(prompt.parts);
    index = lastPrompt(({ parts }) => canonicalJson(parts) === content);
  }
  if (index < 0) return undefined;
  const before = messages[index - 1];
  const hasContext = before?.role === "user" && before.from === inputContext; // hooks add it again
  const { keep = session.messages.length } = waitingPrompt(session) ?? {};
  return Math.min(hasContext ? index - 1 : index, keep);
}
