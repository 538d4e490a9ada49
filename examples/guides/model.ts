/**
 * The model of the guides: OpenAI's if there is a key, otherwise one that follows rules.
 *
 * @module
 */
import { type Message, type Model, type ModelEvent, textOf, type ToolDefinition } from "@jizai/jizai";
import { openai } from "@jizai/jizai/model/openai";
import process from "node:process";

/** Calls the tools that a prompt names, as in `weather city=Kyoto`, and repeats their results. */
export const demo: Model = {
  id: "demo",
  async *stream({ messages, tools }) {
    const last = messages.at(-1);
    const calls = last?.role === "user" ? callsIn(textOf(last), tools) : [];
    for (const [index, { name, input }] of calls.entries()) {
      const id = `call_${messages.length}_${index}`;
      yield [
        { type: "call.start", id, name },
        { type: "call.delta", id, text: JSON.stringify(input) },
        { type: "call.end", id },
      ];
    }
    if (calls.length === 0) yield* wordByWord(answerTo(last));
    yield [{ type: "finish", reason: calls.length > 0 ? "calls" : "stop", usage: { input: 10, output: 10 } }];
  },
};

function callsIn(prompt: string, tools: readonly ToolDefinition[]): { name: string; input: object }[] {
  const calls: { name: string; input: Record<string, unknown> }[] = [];
  for (const word of prompt.split(/\s+/)) {
    const [key = "", value] = word.split("=");
    const call = calls.at(-1);
    if (value === undefined && tools.some(({ name }) => name === word)) calls.push({ name: word, input: {} });
    else if (value !== undefined && call) call.input[key] = /^\d+$/.test(value) ? Number(value) : value;
  }
  return calls;
}

function answerTo(message: Message | undefined): string {
  if (message?.role === "tool") return message.results.map(textOf).join(" ");
  return `You said: ${message ? textOf(message) : ""}`;
}

async function* wordByWord(text: string): AsyncGenerator<ModelEvent[]> {
  for (const word of text.match(/\s*\S+/g) ?? []) {
    yield [{ type: "text", text: word }];
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

const apiKey = process.env.OPENAI_API_KEY;

/** The model of every guide. */
export const model: Model = apiKey ? openai({ model: "gpt-6.1-terra", apiKey }) : demo;
