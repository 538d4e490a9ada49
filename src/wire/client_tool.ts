/**
 * Tools that the client runs.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";
import { Pause } from "../core/interrupt.ts";
import { replySchema } from "../core/persons_answers.ts";
import { type AnyTool, schemaOf, tool, toolNamePattern, toolNameRule } from "../core/tool.ts";
import type { Question } from "../protocol/question.ts";
import { invalid, type Shape, string } from "../protocol/shape.ts";

/** A tool as its client declares it. */
export interface DeclaredTool {
  /** The name. */
  readonly name: string;
  /** The description, for the model. Default: the name. */
  readonly description?: string | undefined;
  /** JSON Schema of its input. Default: accepts every object. */
  readonly parameters?: { readonly [key: string]: unknown } | undefined;
}

/** Parses the name of a tool. */
export const toolName: Shape<string> = (value, path) => {
  const name = string(value, path);
  if (!toolNamePattern.test(name)) throw invalid(path, toolNameRule);
  return name;
};

/** Creates a tool that pauses the run until the client replies with the result. The client validates the input. */
function clientTool({ name, description = name, parameters = { type: "object" } }: DeclaredTool): AnyTool {
  const paused = tool({
    name,
    description,
    input: schemaOf(parameters),
    execute(input, { callId }) {
      throw new Pause([{
        callId,
        tool: name,
        input,
        questions: [`What is the result of ${name}?`],
        schema: replySchema,
      }]);
    },
  });
  return { ...paused, "~client": ({ schema, ...changed }) => clientTool({ ...changed, parameters: schema }) };
}

/** Creates the declared tools. A tool with an open question is also created, in case the client no longer declares it. */
export function clientTools(declared: readonly DeclaredTool[], questions: readonly Question[] = []): AnyTool[] {
  const asked = questions.filter(isForClient).map(({ tool = "" }): DeclaredTool => ({ name: tool }));
  const byName = new Map([...asked, ...declared].map((each) => [each.name, each]));
  return Array.from(byName.values(), clientTool);
}

/** Whether a question asks for the result of a call that the client runs, and not for an approval. */
export function isForClient({ callId, tool, schema }: Question): boolean {
  return callId !== undefined && tool !== undefined && canonicalJson(schema) === canonicalJson(replySchema);
}
