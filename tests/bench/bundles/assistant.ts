/** The options of an agent with one tool, for every bundle that is measured. */
import { type Model, tool } from "@jizai/jizai";
import * as z from "zod";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

const model: Model = {
  id: "model",
  async *stream() {
    yield [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
  },
};

export const options = { model, tools: [weather] };
