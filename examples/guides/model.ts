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
  async *stream({ messages, tools, options }) {
    const last = messages.findLast((message) => message.role === "tool" || message.role === "user" && !message.from);
    const calls = last?.role === "user" ? callsIn(textOf(last), tools) : [];
    for (const [index, { name, input }] of calls.entries()) {
      const id = `call_${messages.length}_${index}`;
      yield [
        { type: "call.start", id, name },
        { type: "call.delta", id, text: JSON.stringify(input) },
        { type: "call.end", id },
      ];
    }
    if (calls.length === 0) yield* wordByWord(options.output ? JSON.stringify(valuesIn(last)) : answerTo(last));
    yield [{ type: "finish", reason: calls.length > 0 ? "calls" : "stop", usage: { input: 10, output: 10 } }];
  },
};

function callsIn(prompt: string, tools: readonly ToolDefinition[]): { name: string; input: object }[] {
  const calls: { name: string; input: Record<string, unknown> }[] = [];
  for (const word of prompt.split(/\s+/)) {
    const [key = "", value] = word.split("=");
    const call = calls.at(-1);
    if (value === undefined && tools.some(({ name }) => name === word)) calls.push({ name: word, input: {} });
    else if (value !== undefined && call) call.input[key] = valueOf(value);
  }
  return calls;
}

/** Returns the values in a prompt, as in `city=Kyoto days=3`, for a structured answer. */
function valuesIn(message: Message | undefined): object {
  const text = message?.role === "user" ? textOf(message) : "";
  return Object.fromEntries(Array.from(text.matchAll(/(\w+)=(\S+)/g), ([, key, value = ""]) => [key, valueOf(value)]));
}

function valueOf(text: string): unknown {
  return /^\d+$/.test(text) ? Number(text) : text;
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
