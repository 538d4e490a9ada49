/**
 * Masks access keys and bearer tokens in results and answers, for the model and for clients.
 *
 * ```sh
 * deno run examples/hooks/secret_masking.ts
 * ```
 *
 * @module
 */
import { agent, textOf, tool } from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Masks two forms of credentials. */
export const secretMasking = redact({
  patterns: [/(?:LTAI|AKID)[A-Za-z0-9]{16,}/, /Bearer\s+[A-Za-z0-9\-._~+/]+=*/],
});

const readConfig = tool({
  name: "read_config",
  description: "Reads the configuration",
  input: z.object({}),
  execute: () => "key: LTAI0123456789abcdef\nauthorization: Bearer abc.def-ghi==\nregion: tokyo",
});

/** Reads a configuration that contains secrets. Returns the result that the model received, and the answer that the client received. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted({ calls: [["read_config", {}]] }, { text: ["The key is AKID0123", "456789abcdef."] }),
    tools: [readConfig],
    use: [secretMasking],
  });
  const { messages, text } = await assistant.run("What is configured?").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  return [...results, text];
}

if (import.meta.main) console.log((await run()).join("\n"));
