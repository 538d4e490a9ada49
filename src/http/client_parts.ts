/**
 * The parts of a run that its client gives: the content of messages, the tools that the client runs, and the format of the answer.
 *
 * @module
 */
import { type Claimed, pauseOf } from "../core/claim.ts";
import type { AnswerFormat } from "../core/definition.ts";
import { Refusal, reviewJson } from "../core/input_hooks.ts";
import { outputFormat } from "../core/output.ts";
import type { EngineRun } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { SessionError } from "../core/session.ts";
import type { Beginning } from "../core/start.ts";
import { type AnyTool, schemaOf, toolNamePattern } from "../core/tool.ts";
import type { Message, UserMessage } from "../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../protocol/part.ts";
import { invalid, isObject, type UnknownObject } from "../protocol/shape.ts";

// The content of messages from outside: texts, files, calls and results. All that only this server or its providers write is left out.

/** The authors of the messages that the engine and `compaction()` add, by which they recognise them. */
const reservedAuthors: readonly unknown[] = [
  "compaction",
  "context",
  "input",
  "output",
  "prompt",
  "session",
  "stop",
  "turn",
];

/** Counts the provider notes that are left out. */
interface Dropped {
  notes: number;
}

/** Messages from outside, and the number of provider notes that they had. */
interface OutsideMessages extends Readonly<Dropped> {
  readonly messages: readonly Message[];
}

/**
 * Returns the messages of a client without their provider notes. Adapters make raw items for a provider of notes, so only those that this server has written
 * count: they are in the stored session. Messages that are empty then, and reserved authors, are left out. Throws a `ShapeError` for the address of a file
 * that a provider would open with the server's own rights.
 */
export function outsideMessages(clientMessages: readonly Message[]): OutsideMessages {
  const dropped: Dropped = { notes: 0 };
  const messages = clientMessages.flatMap((message, index): readonly Message[] => {
    const path = `messages.${index}`;
    if (message.role === "user") return [userMessageOf(message, path, dropped)];
    if (message.role === "tool") {
      const results = message.results.map((result, index) => ({
        ...result,
        parts: partsOf(result.parts, `${path}.results.${index}.parts`, dropped),
      }));
      return [{ ...message, results }];
    }
    const parts = partsOf(message.parts, `${path}.parts`, dropped);
    return parts.length > 0 ? [{ ...message, parts }] : [];
  });
  return { messages, ...dropped };
}

/** Returns one message of a client in the same way. */
export function outsideMessage(message: UserMessage): UserMessage {
  return userMessageOf(message, "", { notes: 0 });
}

function userMessageOf({ from, ...message }: UserMessage, path: string, dropped: Dropped): UserMessage {
  const author = from !== undefined && !reservedAuthors.includes(from) && { from };
  return { ...message, ...author, parts: partsOf(message.parts, path === "" ? "parts" : `${path}.parts`, dropped) };
}

/** Returns the parts without notes. Reasoning that is nothing but a note is left out. */
function partsOf<P extends AnswerPart | ContentPart>(parts: readonly P[], path: string, dropped: Dropped): P[] {
  return parts.flatMap((part, index): P[] => {
    if (part.type === "media" && part.url !== undefined) checkAddress(part.url, `${path}.${index}.url`);
    if (!("meta" in part) || part.meta === undefined) return [part];
    dropped.notes++;
    const { meta: _, ...rest } = part;
    return part.type === "reasoning" && part.text === "" ? [] : [rest as P]; // the same part, without its optional field
  });
}

/** Throws unless an address is public: a provider opens others, such as `gs:` and its own files, with the server's rights. */
function checkAddress(url: string, path: string): void {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  const isOfProvider = /generativelanguage|(^|\.)storage\.(mtls\.)?cloud\.google\.com\.?$/.test(hostname);
  if (isOfProvider || !/^(https?|data):$/.test(protocol)) throw invalid(path, "a public http, https or data URL");
}

// The tools that a client runs, and the format that it wants of the answer.

/** Throws a `SessionError` if a client cannot have its tools, as the `check` of a run. */
export function checkClientTools(
  { definition, session, options: { tools = [] } }: Beginning,
  claimed: Claimed,
): void {
  const wrong = wrongName(definition, tools, claimed);
  if (wrong) throw new SessionError(`Cannot add a tool to session "${session}": ${wrong}`, "invalid");
}

/** Reviews the tools and the format of a client, as the `review` of a run. */
export async function reviewClientParts(run: EngineRun, scope: Scope): Promise<void> {
  const { definition, tools, answerFormat: format, claimed } = run;
  if (!definition.reviewsInput) return;
  const reviews = await Promise.allSettled(tools.map((tool) => reviewTool(run, scope, tool)));
  const accepted = reviews.map((review) => {
    if (review.status === "rejected") throw review.reason;
    return review.value;
  });
  const wrong = wrongName(definition, accepted, claimed);
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
  { tools: agentTools, use }: EngineRun["definition"],
  tools: readonly AnyTool[],
  claimed: Claimed,
): string | undefined {
  const asked = pauseOf(claimed)?.exit.questions ?? [];
  for (const { name } of tools) {
    const isOfAgent = agentTools.some((tool) => tool.name === name);
    const prefix = use.flatMap(({ toolPrefixes = [] }) => toolPrefixes).find((each) => name.startsWith(each));
    const isAsked = asked.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if (isAsked || (!isOfAgent && prefix === undefined)) continue;
    return isOfAgent
      ? `the agent has a tool "${name}"; expected another name`
      : `a middleware adds tools with the prefix "${prefix}"; expected a name without it, got "${name}"`;
  }
  return undefined;
}
