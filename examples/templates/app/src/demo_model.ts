/**
 * A model that follows rules. With it the agent works before you have an API key. Delete this file when you have one.
 *
 * @module
 */
import { type Message, type Model, type ModelEvent, textOf } from "@jizai/jizai";

/** Calls the tools that a prompt names, and repeats their results. */
export const demo: Model = {
  id: "demo",
  async *stream({ messages }) {
    const calls = callsFor(messages.at(-1));
    for (const [index, { name, input }] of calls.entries()) {
      const id = `call_${messages.length}_${index}`;
      yield [
        { type: "call.start", id, name },
        { type: "call.delta", id, text: JSON.stringify(input) },
        { type: "call.end", id },
      ];
    }
    if (calls.length === 0) yield* streamed(answerTo(messages.at(-1)));
    yield [{ type: "finish", reason: calls.length > 0 ? "calls" : "stop" }];
  },
};

/** Returns the calls for a prompt: a postcard, or the weather of each name in it. */
function callsFor(message: Message | undefined): { name: string; input: object }[] {
  if (message?.role !== "user") return [];
  const prompt = textOf(message);
  if (/postcard/i.test(prompt)) return [{ name: "send_postcard", input: { text: prompt } }];
  const names = prompt.slice(1).match(/\b[A-Z][a-z]+/g) ?? [];
  return names.map((city) => ({ name: "weather", input: { city } }));
}

/** Returns the answer to tool results, or to a prompt without calls. */
function answerTo(message: Message | undefined): string {
  if (message?.role === "tool") return message.results.map(textOf).join(" ");
  return "Ask for the weather in Kyoto and Oslo, or have a postcard sent. " +
    "I follow rules: set OPENAI_API_KEY or ANTHROPIC_API_KEY to use a language model.";
}

/** Yields a text word by word. */
async function* streamed(text: string): AsyncGenerator<ModelEvent[]> {
  for (const word of text.match(/\s*\S+/g) ?? []) {
    yield [{ type: "text", text: word }];
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
