import { agent, ModelError } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { collect, outline } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { mockProvider, transcript, weather } from "../support/aimock.ts";
import { lines } from "../support/transcript_lines.ts";

const mock = mockProvider();
mock.on({ userMessage: "down" }, { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 });
const url = await mock.start();

const models = {
  openai: openai({ model: "gpt-5", apiKey: "sk-0123456789", baseURL: `${url}/v1` }),
  openaiResponses: openaiResponses({ model: "gpt-5", apiKey: "sk-0123456789", baseURL: `${url}/v1` }),
  gemini: gemini({ model: "gemini-3-flash", apiKey: "sk-0123456789", baseURL: `${url}/v1beta` }),
  anthropic: anthropic({ model: "claude-sonnet-4-5", apiKey: "sk-0123456789", baseURL: url }),
};

for (const [name, model] of Object.entries(models)) {
  const assistant = agent({ model, instructions: "You know the weather.", tools: [weather] });

  Deno.test(`${name}() completes a run with reasoning and two parallel calls against aimock`, async () => {
    const { events, result } = await collect(assistant.run("What is the weather?"));
    assertEquals([result.status, result.text, result.usage], [
      "done",
      "Sunny in 京都 and Oslo.",
      { input: 40, output: 20 },
    ]);
    assertEquals(lines(result.messages), transcript);
    const thought = outline(events).filter((line) => line.startsWith("reasoning.delta"));
    assertEquals(thought, ["reasoning.delta Two cities."]);
  });

  Deno.test(`${name}() reports retryAfter and the status from aimock`, async () => {
    const { error } = await assistant.run("Are you busy?").result;
    if (!(error instanceof ModelError)) throw error;
    assertEquals([error.status, error.recoverable, error.retryAfter], [429, true, 7_000]);
    assertEquals(error.message, `Cannot ask ${model.id}: 429 Slow down`);
    const down = await assistant.run("Are you down?").result;
    assertEquals(String(down.error), `ModelError: Cannot ask ${model.id}: 529 Overloaded`);
  });

  Deno.test(`${name}() reports a response that aimock cut as recoverable`, async () => {
    const { error } = await assistant.run("Will you be cut?").result;
    assertEquals(error instanceof ModelError && error.recoverable, true);
  });
}
