/** An agent with one tool, served: what would be deployed. */
import { agent, serve, tool } from "@jizai/jizai";
import * as z from "zod";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

const model = {
  id: "model",
  async *stream() {
    yield [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }] as const;
  },
};

export const helper = agent({ model, tools: [weather] });
export default serve(helper);
