/**
 * Shortens a long output of `bash` to its beginning and its end. The results of other tools stay whole.
 *
 * ```sh
 * deno run examples/hooks/head_and_tail.ts
 * ```
 *
 * @module
 */
import { agent, only, textOf, tool } from "@jizai/jizai";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Shortens results of `bash` of more than 50 thousand characters to their first 8 and last 4 thousand. */
export const headAndTail = only("bash", truncate({ limit: 50 * 1024, head: 8 * 1024, tail: 4 * 1024 }));

const long = `first ${"-".repeat(60_000)} last`;
const bash = tool({ name: "bash", description: "Runs a command", input: z.object({}), execute: () => long });
const read = tool({ name: "read", description: "Reads a file", input: z.object({}), execute: () => long });

/** Gets the same long text from both tools. Returns the results, with the dashes counted. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted({ calls: [["bash", {}], ["read", {}]] }, "That was long."),
    tools: [bash, read],
    use: [headAndTail],
  });
  const { messages } = await assistant.run("Print it and read it").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  return results.map((text) => text.replace(/\s+/g, " ").replace(/-+/g, (dashes) => `(${dashes.length})`));
}

if (import.meta.main) console.log((await run()).join("\n"));
