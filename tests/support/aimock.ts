/**
 * A server that imitates providers on this machine, and an agent's tool for what it is asked about.
 *
 * @module
 */
import { type AnyTool, tool } from "@jizai/jizai";
import { LLMock } from "npm:@copilotkit/aimock@1.43.0";
import * as z from "zod";

/** A tool about cities. */
export const weather: AnyTool = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

/**
 * A server that, asked for the weather, thinks, calls `weather` for two cities at once, and then answers:
 * 20 tokens in and 10 out each time. Asked whether it is busy, it says when to come back; whether it will be cut, it hangs up.
 */
export function imitation(): LLMock {
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
  mock.on({ userMessage: "cut" }, { content: "This will not be heard to its end." }, { truncateAfterChunks: 3 });
  return mock;
}

/** The transcript of that. */
export const transcript: readonly string[] = [
  "user What is the weather?",
  "call weather weather",
  "ok Sunny in Kyoto",
  "ok Sunny in Oslo",
  "assistant Sunny in 京都 and Oslo.",
];
