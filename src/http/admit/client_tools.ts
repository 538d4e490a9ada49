/**
 * The parts of a run that its client gives beside messages: the tools that it runs, and the format of the answer.
 *
 * @module
 */
import type { AnswerFormat } from "../../core/definition.ts";
import { type AnyTool, schemaOf, toolNamePattern } from "../../core/tool.ts";
import { outputFormat } from "../../core/output.ts";
import type { Scope } from "../../core/scope.ts";
import type { Claimed } from "../../core/claim.ts";
import { SessionError } from "../../core/session.ts";
import type { EngineRun } from "../../core/run.ts";
import type { Beginning } from "../../core/start.ts";
import { Refusal, reviewJson } from "../../core/review.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";

/** Throws if a client cannot have its tools. */
export function checkClientTools(
  { definition, session, options: { tools = [] } }: Beginning,
  { pause }: Claimed,
): void {
  const wrong = wrongName(definition, tools, pause);
  if (wrong) throw new SessionError(`Cannot add a tool to session "${session}": ${wrong}`, "invalid");
}

/** Reviews the tools and the format of a client, as the `review` of a run. */
export async function reviewClientParts(run: EngineRun, scope: Scope): Promise<void> {
  const { definition, tools, answerFormat: format, claimed: { pause } } = run;
  if (!definition.reviewsInput) return;
  const reviews = await Promise.allSettled(tools.map((tool) => reviewTool(run, scope, tool)));
  const accepted = reviews.map((review) => {
    if (review.status === "rejected") throw review.reason;
    return review.value;
  });
  const wrong = wrongName(definition, accepted, pause);
  if (wrong) throw new Refusal(`a hook changed the name of a tool: ${wrong}`);
  run.receive(accepted, format && format !== definition.format ? await reviewFormat(run, scope, format) : format);
}

/** Reviews a tool. Returns the tool as hooks have changed it. */
async function reviewTool(run: EngineRun, scope: Scope, tool: AnyTool): Promise<AnyTool> {
  const { definition, "~client": create } = tool;
  if (!create) return tool;
  const accepted = await reviewJson(run, scope, "client_tool", definition);
  if (accepted === definition) return tool;
  const { name, description, schema }: UnknownObject = Object(accepted);
  const isTool = typeof name === "string" && toolNamePattern.test(name) && typeof description === "string";
  if (isTool && isObject(schema)) return create({ name, description, schema });
  throw new Refusal(`a hook changed the tool "${tool.name}" to no tool`);
}

/** Reviews a format. Returns the format as hooks have changed it. */
async function reviewFormat(run: EngineRun, scope: Scope, format: AnswerFormat): Promise<AnswerFormat> {
  const accepted = await reviewJson(run, scope, "format", format.schema);
  if (accepted === format.schema) return format;
  if (isObject(accepted)) return outputFormat(schemaOf(accepted));
  throw new Refusal("a hook changed the format of the answer to no JSON Schema");
}

/** Returns why a tool cannot have its name: the agent has a tool of this name, or a middleware may add one, which it would replace. */
function wrongName(
  { tools: own, use }: EngineRun["definition"],
  tools: readonly AnyTool[],
  pause: Claimed["pause"],
): string | undefined {
  for (const { name } of tools) {
    const isOwn = own.some((tool) => tool.name === name);
    const prefix = use.flatMap(({ toolPrefixes = [] }) => toolPrefixes).find((each) => name.startsWith(each));
    const isAsked = pause?.questions?.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if (isAsked || (!isOwn && prefix === undefined)) continue;
    return isOwn
      ? `the agent has a tool "${name}"; expected another name`
      : `a middleware adds tools with the prefix "${prefix}"; expected a name without it, got "${name}"`;
  }
  return undefined;
}
