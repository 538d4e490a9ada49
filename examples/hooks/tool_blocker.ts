/**
 * Blocks tools by name. It decides at `approval`, which sees the final call: a hook cannot rename a call past it.
 *
 * ```sh
 * deno run examples/hooks/tool_blocker.ts
 * ```
 *
 * @module
 */
import { agent, deny, type Middleware, textOf, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Denies every call of the tools with these names. */
export function toolBlocker(...names: readonly string[]): Middleware {
  const blocked = new Set(names);
  return {
    name: "toolBlocker",
    async approval(ctx, next) {
      return blocked.has(ctx.name) ? deny(`The tool ${ctx.name} is blocked.`) : await next();
    },
  };
}

const path = z.object({ path: z.string() });
const read = tool({
  name: "read_file",
  description: "Reads a file",
  input: path,
  execute: ({ path }) => `Read ${path}.`,
});
const remove = tool({
  name: "delete_file",
  description: "Deletes a file",
  input: path,
  execute: ({ path }) => `Deleted ${path}.`,
});

/** Makes two calls in one turn, one of them blocked. Returns the text of each result. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted(
      { calls: [["read_file", { path: "a.txt" }], ["delete_file", { path: "a.txt" }]] },
      "I may only read.",
    ),
    tools: [read, remove],
    use: [toolBlocker("delete_file")],
  });
  const { messages } = await assistant.run("Read a.txt and delete it").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return results.map((result) => `${result.status}: ${textOf(result)}`);
}

if (import.meta.main) console.log((await run()).join("\n"));
