/**
 * Runs agents whose model loads skills, and serves skills over HTTP.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { collect, scripted } from "@jizai/jizai/testing";
import { lines } from "./transcript_lines.ts";

/** Returns a `SKILL.md` with this name and description. `fields` are further lines of its frontmatter. */
export function skillText(name: string, body = "Do it.", fields = ""): string {
  return `---\nname: ${name}\ndescription: Does ${name}.\n${fields}---\n${body}\n`;
}

/** A call: the name of a tool, and its input. */
type NamedCall = readonly [string, unknown];

/** Runs an agent that makes these calls in one response. Returns what the model read, and the errors with their causes. */
export async function skilled(use: readonly Middleware[], calls: readonly NamedCall[] = []) {
  const errors: string[] = [];
  const model = scripted(...calls.length > 0 ? [{ calls }] : [], "Done.");
  const onError = (error: unknown) => {
    const { message, cause } = error as Error; // nothing else is reported here
    errors.push(cause instanceof Error ? `${message}: ${cause.message}` : message);
  };
  const { result } = await collect(agent({ model, instructions: "You help.", use }).run({ prompt: "Go", onError }));
  const request = model.requests[0];
  return {
    /** The lines of the instructions that describe skills. */
    offered: request?.instructions.split("\n").filter((line) => line.startsWith("- ")) ?? [],
    instructions: request?.instructions,
    tools: request?.tools.map(({ name }) => name) ?? [],
    results: lines(result.messages).filter((line) => /^(?:ok|error|denied) /.test(line)),
    status: result.status,
    errors,
  };
}

/** A call of the tool that loads a skill. */
export function load(name: string): NamedCall {
  return ["skill", { name }];
}

/** A call of the tool that reads a file of a skill. */
export function read(name: string, path: string): NamedCall {
  return ["read_skill_file", { name, path }];
}
