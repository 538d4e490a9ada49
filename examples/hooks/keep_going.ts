/**
 * Continues the run while tasks are left, up to the limit of continuations.
 *
 * ```sh
 * deno run examples/hooks/keep_going.ts
 * ```
 *
 * @module
 */
import { agent, continueWith, type Middleware, state, textOf, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

const left = state<readonly string[]>("keepGoing.left", () => ["write it", "test it"]);

const finish = tool({
  name: "finish_task",
  description: "Marks a task as done",
  input: z.object({ task: z.string() }),
  execute: ({ task }, ctx) => `Left: ${left.update(ctx, (tasks) => tasks.filter((each) => each !== task)).length}`,
});

/** Continues until all tasks are done, and adds the tool that marks a task as done. */
export const keepGoing: Middleware = {
  name: "keepGoing",
  tools: [finish],
  async stop(ctx, next) {
    const tasks = left.get(ctx);
    return tasks.length > 0 && ctx.continuations < ctx.limit
      ? continueWith(`Please continue with the remaining tasks: ${tasks.join(", ")}.`)
      : await next();
  },
};

/** Asks a model that stops too early. Returns the texts of the transcript. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted(
      { calls: [["finish_task", { task: "write it" }]] },
      "I am done.",
      { calls: [["finish_task", { task: "test it" }]] },
      "Now I am done.",
    ),
    use: [keepGoing],
  });
  const { messages } = await assistant.run("Write it and test it").result;
  return messages.map((message) => message.role === "tool" ? message.results.map(textOf).join() : textOf(message))
    .filter((line) => line !== "");
}

if (import.meta.main) console.log((await run()).join("\n"));
