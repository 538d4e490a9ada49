/** The served agent, with zod/mini in place of Zod. */
import { agent, serve, tool } from "@jizai/jizai";
import * as z from "zod/mini";
import { model } from "./model.ts";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

export default serve(agent({ model, tools: [weather] }));
