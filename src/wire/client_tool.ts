/**
 * Tools that a client runs itself.
 *
 * @module
 */
import { canonicalJson } from "../core/canonical.ts";
import { Pause } from "../core/interrupt.ts";
import { replySchema } from "../core/question.ts";
import { schemaOf } from "../core/schema.ts";
import { type AnyTool, named, names, tool } from "../core/tool.ts";
import type { Question } from "../protocol/question.ts";
import { type Shape, text, wrong } from "./shape.ts";

/** A tool as its client declares it. */
export interface DeclaredTool {
  /** What the model calls it. */
  readonly name: string;
  /** What it does and when to use it. */
  readonly description?: string | undefined;
  /** JSON Schema of its input. */
  readonly schema?: { readonly [key: string]: unknown } | undefined;
}

/** The name of a tool. */
export const toolName: Shape<string> = (value, at) => {
  const name = text(value, at);
  if (!names.test(name)) throw wrong(at, named);
  return name;
};

/** A tool that its client runs: a call of it pauses the run until the client has replied with what it came to. */
function clientTool({ name, description = name, schema = { type: "object" } }: DeclaredTool): AnyTool {
  return tool({
    name,
    description,
    input: schemaOf(schema), // who runs the tool checks it
    execute(input, { callId }) {
      throw new Pause([{ callId, tool: name, input, questions: [`What does ${name} come to?`], schema: replySchema }]);
    },
  });
}

/** Tools that a client declares, and those whose calls it is asked about, in case that it declares them no more. */
export function clientTools(declared: readonly DeclaredTool[], questions: readonly Question[] = []): AnyTool[] {
  const asked = questions.filter(isForClient).map(({ tool = "" }) => ({ name: tool }));
  return [...asked, ...declared].map(clientTool); // of those with one name the last counts
}

/** Whether a question is about what a call came to that the client runs, and not about whether it may run. */
export function isForClient({ callId, tool, schema }: Question): boolean {
  return callId !== undefined && tool !== undefined && canonicalJson(schema) === canonicalJson(replySchema);
}
