/**
 * The files that all apps have: an agent, its model, and their test.
 *
 * @module
 */
import type { Files } from "./template.ts";

const agentModule = `/**
 * The agent: its model, its tools and its middleware.
 *
 * @module
 */
import { agent, tool, vars } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import * as z from "zod";
import { chooseModel, type Keys } from "./model.ts";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => "It is sunny in " + city + ".",
});

/** Asks a person before it runs. */
const sendPostcard = tool({
  name: "send_postcard",
  description: "Sends a postcard",
  input: z.object({ text: z.string() }),
  ask: true,
  execute: ({ text }) => "Sent a postcard of " + text.length + " characters.",
});

/** The agent. Its vars are the API keys. */
export const assistant = agent({
  name: "assistant",
  vars: vars<Keys>(),
  model: ({ vars }) => chooseModel(vars),
  instructions: "You know the weather, and send postcards.",
  tools: [weather, sendPostcard],
  use: [retry()],
});
`;

const localModule = `/**
 * Requests to a server that only this machine reaches.
 *
 * @module
 */
const names = ["localhost", "127.0.0.1", "[::1]"];

/** Refuses other hosts: a page whose name resolves to 127.0.0.1 could use the server, which has no login. */
export function refuseOtherHosts(request: Request): Response | undefined {
  if (names.includes(new URL(request.url).hostname)) return undefined;
  return new Response("Cannot serve this host: expected localhost", { status: 403 });
}
`;

const modelModule = `/**
 * The model of the agent.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { demo } from "./demo_model.ts";

/** API keys, by the names of their environment variables. */
export interface Keys {
  readonly OPENAI_API_KEY?: string | undefined;
  readonly ANTHROPIC_API_KEY?: string | undefined;
}

/** Returns the model of the provider whose key is set, or the demo model. */
export function chooseModel(keys: Keys): Model {
  if (keys.OPENAI_API_KEY) return openai({ model: "gpt-6.1-terra", apiKey: keys.OPENAI_API_KEY });
  if (keys.ANTHROPIC_API_KEY) return anthropic({ model: "claude-sonnet-5-5", apiKey: keys.ANTHROPIC_API_KEY });
  return demo;
}
`;

const demoModule = `/**
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
      const id = "call_" + messages.length + "_" + index;
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
  const names = prompt.slice(1).match(/\\b[A-Z][a-z]+/g) ?? [];
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
  for (const word of text.match(/\\s*\\S+/g) ?? []) {
    yield [{ type: "text", text: word }];
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
`;

const testModule = `import { serve } from "@jizai/jizai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { assistant } from "../src/agent.ts";

const vars = {}; // no key: the demo model answers

test("the agent looks up the weather of each city", async () => {
  const { status, text } = await assistant.run({ prompt: "Weather in Kyoto and Oslo?", vars }).result;
  assert.deepEqual([status, text], ["done", "It is sunny in Kyoto. It is sunny in Oslo."]);
});

test("the agent sends a postcard when a person approves", async () => {
  const asked = await assistant.run({ prompt: "Send a postcard", vars }).result;
  assert.equal(asked.status, "paused");
  const answers = asked.questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
  const { text } = await assistant.resume({ session: asked.session, answers, vars }).result;
  assert.equal(text, "Sent a postcard of 15 characters.");
});

test("the served agent streams its answer", async () => {
  const app = serve(assistant, { vars: () => vars });
  const response = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Weather in Kyoto?" }),
  });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /"type":"run.finished".*It is sunny in Kyoto\\./);
});
`;

/** The files of every app. */
export const appFiles: Files = {
  "src/agent.ts": agentModule,
  "src/demo_model.ts": demoModule,
  "src/local.ts": localModule,
  "src/model.ts": modelModule,
  "tests/agent.test.ts": testModule,
};

/** Returns the README of an app. `deploying` is the section on deployment. */
export function appReadme(name: string, commands: readonly string[], chat: string, deploying: string): string {
  return `# ${name}

An agent, served over HTTP.

\`\`\`sh
${commands.join("\n")}
\`\`\`

Open http://localhost:8000 for a page to talk with it, or use the terminal:

\`\`\`sh
${chat}
\`\`\`

\`src/agent.ts\` has the agent and its tools. Without an API key, rules in \`src/demo_model.ts\` answer. With
\`OPENAI_API_KEY\` or \`ANTHROPIC_API_KEY\`, a provider does.

The server does not authenticate. Add your own authentication before you deploy it.

${deploying}`;
}
