/**
 * A mock server that speaks the providers' APIs, and a tool for the conversation it plays.
 *
 * @module
 */
import { type AnyTool, tool } from "@jizai/jizai";
// @ts-types="./vendors/aimock.d.ts"
import { LLMock } from "npm:@copilotkit/aimock@1.43.0";
import * as z from "zod";

/** A tool that returns the weather of a city. */
export const weather: AnyTool = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

/**
 * Creates a mock server. A prompt with "weather" gets reasoning, two parallel calls and then a text, each for 20 input and 10 output tokens. "busy" gets
 * a 429 with a retry-after of 7 seconds. "cut" gets a response that breaks off.
 */
export function mockProvider(): LLMock {
  const mock = new LLMock({ port: 0, chunkSize: 6 });
  const usage = { prompt_tokens: 20, completion_tokens: 10, input_tokens: 20, output_tokens: 10 };
  const calls = ["Kyoto", "Oslo"].map((city) => ({ name: "weather", arguments: JSON.stringify({ city }) }));
  mock.on({ userMessage: "weather", hasToolResult: false }, { toolCalls: calls, reasoning: "Two cities.", usage });
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Sunny in 京都 and Oslo.", usage });
  mock.on({ userMessage: "busy" }, {
    error: { message: "Slow down", type: "rate_limit_error" },
    status: 429,
    retryAfter: 7,
  });
  mock.on({ userMessage: "cut" }, { content: "This response breaks off before its end." }, { truncateAfterChunks: 3 });
  return mock;
}

/** The transcript of the run with "weather". */
export const transcript: readonly string[] = [
  "user What is the weather?",
  "call weather weather",
  "ok Sunny in Kyoto",
  "ok Sunny in Oslo",
  "assistant Sunny in 京都 and Oslo.",
];
