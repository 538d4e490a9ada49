/**
 * Puts "[OK]" before the text of every successful result.
 *
 * ```sh
 * deno run examples/hooks/result_prefix.ts
 * ```
 *
 * @module
 */
import { agent, mapText, type Middleware, textOf, tool, ToolError } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Puts "[OK]" before the text of a result. */
export const resultPrefix: Middleware = {
  name: "resultPrefix",
  async tool(_ctx, next) {
    const result = await next();
    return result.status === "ok" ? mapText(result, (text) => `[OK] ${text}`) : result;
  },
};

const divide = tool({
  name: "divide",
  description: "Divides a by b",
  input: z.object({ a: z.number(), b: z.number() }),
  execute({ a, b }) {
    if (b === 0) throw new ToolError("Cannot divide by 0");
    return String(a / b);
  },
});

/** Makes two calls in one turn, one of which fails. Returns the text of each result. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted({ calls: [["divide", { a: 6, b: 3 }], ["divide", { a: 6, b: 0 }]] }, "2, and nothing."),
    tools: [divide],
    use: [resultPrefix],
  });
  const { messages } = await assistant.run("6 / 3 and 6 / 0?").result;
  return messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
}

if (import.meta.main) console.log((await run()).join("\n"));
