/** The options of an agent with one tool, for every bundle that is measured. */
import { tool } from "@jizai/jizai";
import * as z from "zod";
import { model } from "./model.ts";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

export const options = { model, tools: [weather] };
