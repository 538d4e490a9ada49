/**
 * Transcripts as short lines, so that a test asserts a whole transcript at once.
 *
 * @module
 */
import { callsOf, type Message, textOf } from "@jizai/jizai";

/** Returns a line for the text of each message, for its calls, and for each result. */
export function lines(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    if (message.role === "tool") return message.results.map((result) => `${result.status} ${textOf(result)}`.trim());
    const text = textOf(message);
    const speaker = message.role === "user" ? message.from ?? "user" : "assistant";
    const calls = message.role === "assistant" ? callsOf(message).map(({ name }) => name) : [];
    return [...text ? [`${speaker} ${text}`] : [], ...calls.length > 0 ? [`call ${calls.join(" ")}`] : []];
  });
}
