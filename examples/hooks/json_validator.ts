/**
 * Lets the agent finish only with JSON: the model corrects every other answer, up to twice.
 *
 * ```sh
 * deno run examples/hooks/json_validator.ts
 * ```
 *
 * @module
 */
import { agent, textOf } from "@jizai/jizai";
import { verify } from "@jizai/jizai/middleware/verify";
import { scripted } from "@jizai/jizai/model/scripted";

/** Sends an answer that is not JSON back to the model. */
export const jsonValidator = verify((text) => isJson(text) || "Invalid JSON. Please fix and try again.");

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Asks a model that needs two attempts. Returns the transcript. */
export async function run(): Promise<string[]> {
  const assistant = agent({ model: scripted("{ city: Kyoto }", '{ "city": "Kyoto" }'), use: [jsonValidator] });
  const { messages } = await assistant.run("Where to?").result;
  return messages.map((message) => message.role === "tool" ? "" : textOf(message));
}

if (import.meta.main) console.log((await run()).join("\n"));
