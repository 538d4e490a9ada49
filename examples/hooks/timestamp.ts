/**
 * Adds the current time to every request. The transcript does not contain it.
 *
 * ```sh
 * deno run examples/hooks/timestamp.ts
 * ```
 *
 * @module
 */
import { agent, textOf, tool } from "@jizai/jizai";
import { inject } from "@jizai/jizai/middleware/inject";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Adds the time to each request. */
export const timestamp = inject(() => `[${new Date().toISOString()}]`);

const rest = tool({
  name: "rest",
  description: "Does nothing for a moment",
  input: z.object({}),
  execute: () => "Rested.",
});

/** Runs two turns. Returns the context of each request. */
export async function run(): Promise<string[]> {
  const model = scripted({ calls: [["rest", {}]] }, "That was a moment.");
  await agent({ model, tools: [rest], use: [timestamp] }).run("Take a rest").result;
  return model.requests.map(({ messages }) =>
    messages.map((message) => message.role === "tool" ? "(result)" : textOf(message) || "(call)").join(" ")
  );
}

if (import.meta.main) console.log((await run()).join("\n"));
