/**
 * Keeps the agent going while tasks are left, as often as the run may go on.
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
  description: "Says that a task is done",
  input: z.object({ task: z.string() }),
  execute: ({ task }, ctx) => `Left: ${left.update(ctx, (tasks) => tasks.filter((each) => each !== task)).length}`,
});

/** Goes on until every task is done, and brings the tool that says so. */
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

/** Asks a model that wants to stop too early, and gives what was said. */
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
