/**
 * Denies dangerous commands. The guard sees the final command, after all hooks that rewrite it.
 *
 * ```sh
 * deno run examples/hooks/command_guard.ts
 * ```
 *
 * @module
 */
import { agent, deny, only, textOf, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

const bash = tool({
  name: "bash",
  description: "Runs a command",
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `Ran ${command}`,
});

/** Denies `rm -rf`. */
export const commandGuard = only(bash, {
  name: "commandGuard",
  async approval(ctx, next) {
    return ctx.input.command.includes("rm -rf") ? deny("Destructive delete operations are not allowed.") : await next();
  },
});

/** Makes two calls in one turn, one of them dangerous. Returns the text of each result. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted({ calls: [["bash", { command: "ls" }], ["bash", { command: "rm -rf /" }]] }, "Only listed."),
    tools: [bash],
    use: [commandGuard],
  });
  const { messages } = await assistant.run("Clean up").result;
  return messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
}

if (import.meta.main) console.log((await run()).join("\n"));
