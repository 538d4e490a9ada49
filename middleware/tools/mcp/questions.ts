/**
 * Turns the questions of an MCP server (elicitation) into questions of the call, and the answers of a person into those of the protocol.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";
import type { PersonAnswer, Scope } from "../../../mod.ts";
import {
  answerElicitation,
  type CallQuestion,
  type ElicitationAnswer,
  isObject,
  reviewElicitation,
  type UnknownObject,
} from "../../../src/core/kit.ts";

/** A result of a call that needs the input of a person, and the answers so far. Saved while a person is asked. */
export interface SavedRound {
  /** The server's questions, by names that it chose. */
  readonly inputRequests?: UnknownObject;
  /** The answers, by the names of the questions. */
  readonly inputResponses?: UnknownObject;
  /** The state that the server receives again with the answers. Only the server can read it. */
  readonly requestState?: string;
}

/** Reads a result that needs input. */
export function roundOf({ inputRequests, requestState }: UnknownObject): SavedRound {
  const hasRequests = isObject(inputRequests) && Object.keys(inputRequests).length > 0;
  return {
    ...(hasRequests && { inputRequests, inputResponses: {} }),
    ...(typeof requestState === "string" && { requestState }),
  };
}

/** Returns the members with which the call is made again. */
export function retryOf({ inputRequests: _, ...members }: SavedRound = {}): object {
  return members;
}

/** The most characters of what a server asks at once, with its state: both are saved. */
const maxLength = 100_000;

/** Returns the open questions of a server. Throws a `ToolError` for a form or a request that a person cannot answer. */
export function questionsOf(server: string, round: SavedRound): readonly CallQuestion[] {
  if (JSON.stringify(round).length > maxLength) {
    throw new ToolError(`Cannot ask a person: the question of the MCP server has more than ${maxLength} characters.`);
  }
  return openRequests(round).map(([, request]) => questionOf(server, request));
}

/** The method of a question that a person can answer. */
const elicitation = "elicitation/create";

function openRequests({ inputRequests = {}, inputResponses = {} }: SavedRound): readonly [string, unknown][] {
  return Object.entries(inputRequests).filter(([name]) => !Object.hasOwn(inputResponses, name));
}

function questionOf(server: string, request: unknown): CallQuestion {
  const { method, params }: UnknownObject = Object(request);
  if (method !== elicitation) {
    throw new ToolError(`Cannot answer the MCP server: it asks for ${method}, which is not supported.`);
  }
  const { mode = "form", message, url }: UnknownObject = Object(params);
  const asks = `The MCP server "${server}" asks`;
  if (mode === "url") {
    const address = URL.parse(String(url));
    if (!address || !/^https?:$/.test(address.protocol)) {
      throw new ToolError("Cannot ask a person: the page of the MCP server has no URL of http or https.");
    }
    const question = `${asks} you to open a page of ${address.host}, ${address.href}, and to approve then: ${message}`;
    return { name: "open_url", question, input: { url: address.href }, schema: { type: "object" } };
  }
  const fields = fieldsOf(request);
  const properties = Object.fromEntries(fields.map(({ name, schema }) => [name, schema]));
  const required = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const names = fields.map(({ name, isRequired }) => isRequired ? name : `${name} (optional)`).join(", ");
  return {
    name: "form",
    question: `${asks}: ${message}${names && ` Fields: ${names}.`}`,
    input: defaultsOf(fields),
    schema: { type: "object", properties, required },
  };
}

/** A field of a form. */
interface Field {
  readonly name: string;
  readonly schema: UnknownObject;
  readonly isRequired: boolean;
}

function fieldsOf(request: unknown): readonly Field[] {
  const { requestedSchema } = paramsOf(request);
  const { properties, required }: UnknownObject = Object(requestedSchema);
  return Object.entries(Object(properties)).map(([name, schema]) => {
    return { name, schema: Object(schema), isRequired: Array.isArray(required) && required.includes(name) };
  });
}

function defaultsOf(fields: readonly Field[]): UnknownObject {
  return Object.fromEntries(
    fields.flatMap(({ name, schema }) => schema.default === undefined ? [] : [[name, schema.default]]),
  );
}

/** Adds the answers of a person to the open questions, in their order. Those that do not fit their form stay open. */
export function answered(round: SavedRound, answers: readonly (PersonAnswer | undefined)[]): SavedRound {
  const responses = openRequests(round).flatMap(([name, request], index) => {
    const answer = answers[index];
    const response = answer && responseOf(request, answer);
    return response ? [[name, response]] : [];
  });
  return { ...round, inputResponses: { ...round.inputResponses, ...Object.fromEntries(responses) } };
}

/** Adds the answers that hooks of the run give in place of a person. An answer that does not fit its form is reported, and the person is asked. */
export async function answeredByHooks(server: string, round: SavedRound, ctx: Scope): Promise<SavedRound> {
  const responses: Record<string, unknown> = { ...round.inputResponses };
  for (const [name, request] of openRequests(round)) {
    if (Object(request).method !== elicitation) continue;
    const answer = await answerElicitation({ server, params: paramsOf(request) }, ctx);
    if (!answer) continue;
    if (isAnswer(request, answer)) responses[name] = answer;
    else {ctx.run.report(
        new Error(`Cannot use the answer of a hook to MCP server "${server}": it does not fit the form`),
      );}
  }
  return { ...round, inputResponses: responses };
}

/** Lets hooks of the run change the answers that a person has added to `before`. One that does not fit its form then is declined. */
export async function reviewedByHooks(
  server: string,
  { before, round }: { readonly before: SavedRound; readonly round: SavedRound },
  ctx: Scope,
): Promise<SavedRound> {
  const responses: Record<string, unknown> = { ...round.inputResponses };
  for (const [name, request] of openRequests(before)) {
    if (!Object.hasOwn(responses, name)) continue;
    const personsAnswer = responses[name] as ElicitationAnswer; // responseOf() made it
    const answer = await reviewElicitation({ server, params: paramsOf(request) }, personsAnswer, ctx);
    const isValid = answer === personsAnswer || isAnswer(request, answer);
    if (!isValid) {
      ctx.run.report(new Error(`Cannot send the answer of a hook to MCP server "${server}": it does not fit the form`));
    }
    responses[name] = isValid ? answer : { action: "decline" };
  }
  return { ...round, inputResponses: responses };
}

function paramsOf(request: unknown): UnknownObject {
  return Object(Object(request).params);
}

/** Whether an answer fits its request. */
function isAnswer(request: unknown, { action, content }: ElicitationAnswer): boolean {
  if (action !== "accept" || paramsOf(request).mode === "url") return true;
  return isObject(content) && fieldsOf(request).every((field) => fits(content, field));
}

/** Returns the answer of the protocol; undefined if it does not fit the form. */
function responseOf(request: unknown, answer: PersonAnswer): UnknownObject | undefined {
  if (answer.type === "deny") return { action: "decline" };
  if (paramsOf(request).mode === "url") return { action: answer.type === "approve" ? "accept" : "cancel" };
  const fields = fieldsOf(request);
  const content = answer.type === "approve" ? answer.input ?? defaultsOf(fields) : contentOf(answer.text, fields);
  const response = { action: "accept", content: content as UnknownObject } as const; // isAnswer() checks it
  return isAnswer(request, response) ? response : undefined;
}

/** Returns the content of a reply: JSON, or the text of the only field. */
function contentOf(reply: string, fields: readonly Field[]): unknown {
  const [field, second] = fields;
  try {
    return JSON.parse(reply);
  } catch {
    return field && !second ? { [field.name]: reply } : undefined;
  }
}

/** Whether a content has a value of the type of a field. Its other keywords are for the server to check. */
function fits(content: UnknownObject, { name, schema: { type, enum: values }, isRequired }: Field): boolean {
  if (!Object.hasOwn(content, name)) return !isRequired;
  const value = content[name];
  if (Array.isArray(values) && !values.includes(value)) return false;
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value) && value.every((each) => typeof each === "string");
  return type === undefined || typeof value === type;
}
