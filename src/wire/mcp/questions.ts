/**
 * Questions to a person, as forms that MCP clients show (elicitation), and the answers with which a client repeats its call. The state that the client
 * brings back names the pause, and is checked against the stored session: it gives no right that its owner does not have.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/json.ts";
import { sha256 } from "../../core/lib/sha256.ts";
import type { EventOf } from "../wire.ts";
import type { PersonAnswer, Question, Suggestion } from "../../protocol/question.ts";
import { invalid, isObject, jsonOrText, type UnknownObject } from "../../protocol/shape.ts";
import { isForClient } from "../client_tool.ts";
import { askedText, isForm, type Pause, pauseId, type PendingQuestions, questionId } from "../wire.ts";

// The state of a call that waits: the pause and its session, with a hash over them and over the call.

/** A call, as its client repeats it with the answers. */
export interface CalledTool {
  readonly name: string;
  readonly input: UnknownObject;
}

/** A pause that a client answers. */
export interface PausedCall {
  readonly session: string;
  /** The id of the pause. */
  readonly pause: string;
  /** The session itself, if the server keeps none. */
  readonly resumeToken?: string | undefined;
}

/** The characters of a hash. */
const hashLength = 64;

function hashOf(text: string): string {
  return Array.from(sha256(new TextEncoder().encode(text)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the state of a paused call. */
function stateOf({ session, pause, resumeToken }: PausedCall, call: CalledTool): string {
  const place = JSON.stringify([session, pause, ...resumeToken === undefined ? [] : [resumeToken]]);
  return hashOf(place + canonicalJson(call)) + place;
}

/** Reads a state. Returns undefined for one that was changed, or that belongs to another call. */
export function pausedCallOf(state: unknown, call: CalledTool): PausedCall | undefined {
  if (typeof state !== "string") return undefined;
  const place = jsonOrText(state.slice(hashLength));
  if (!Array.isArray(place) || place.some((each) => typeof each !== "string")) return undefined;
  const [session = "", pause = "", resumeToken] = place;
  const paused = { session, pause, resumeToken };
  return stateOf(paused, call) === state ? paused : undefined;
}

// The form of a question.

/** The name of the field of a form that asks for a text. */
const answerField = "answer";
/** The form that asks for a text. */
const textForm: UnknownObject = {
  type: "object",
  properties: { [answerField]: { type: "string", title: "Answer" } },
  required: [answerField],
};
/** The types of fields that forms may have. */
const fieldTypes: readonly unknown[] = ["string", "number", "integer", "boolean", "array"];

/** Returns the schema of the answer of one kind. */
function schemaOf({ schema }: Question, kind: Suggestion["type"]): UnknownObject {
  const { oneOf }: UnknownObject = Object(schema);
  const kinds: readonly unknown[] = Array.isArray(oneOf) ? oneOf : [];
  return Object(kinds.find((each) => Object(Object(Object(each).properties).type).const === kind));
}

/** Returns the form of a question. It has no fields if the person only accepts or declines, and one for a text if forms cannot have the fields. */
function formOf(question: Question): UnknownObject {
  const { tool, input } = question;
  if (tool === undefined || isForClient(question)) return textForm;
  const { properties, required }: UnknownObject = isForm(question)
    ? Object(Object(schemaOf(question, "approve").properties).input)
    : {};
  const all = Object.entries(Object(properties));
  if (all.some(([, field]) => !fieldTypes.includes(Object(field).type))) return textForm;
  const fields = all.map(([name, field]) => {
    const proposed: unknown = Object(input)[name];
    return [name, proposed === undefined ? field : { ...Object(field), default: proposed }];
  });
  return { type: "object", properties: Object.fromEntries(fields), required: Array.isArray(required) ? required : [] };
}

/** The questions of a pause, and the session itself if the server keeps none. */
type AskedPause = Pick<EventOf<"run.paused">, "questions" | "resumeToken">;

/** Returns the result of a call that waits for a person, with a form for each question. */
export function inputRequired(
  { questions, resumeToken }: AskedPause,
  { session, pause, call }: { readonly session: string; readonly pause: Pause; readonly call: CalledTool },
): UnknownObject {
  const inputRequests = Object.fromEntries(questions.map((question) => {
    const params = { mode: "form", message: askedText(question), requestedSchema: formOf(question) };
    return [questionId(question.callId, pause), { method: "elicitation/create", params }];
  }));
  const requestState = stateOf({ session, pause: pauseId(pause), resumeToken }, call);
  return { resultType: "input_required", inputRequests, requestState };
}

/** Returns the text for a client that cannot show the questions. */
export function unaskedText({ questions, resumeToken }: AskedPause, session: string): string {
  const asked = questions.map(askedText).join("\n\n");
  const place = `/sessions/${encodeURIComponent(session)}/answers`;
  const elsewhere = resumeToken === undefined ? `, or an answer to POST ${place}` : "";
  const expected = `expected a client of MCP 2026-07-28 with the capability elicitation${elsewhere}`;
  return `The call waits for a person, whom this client cannot ask; ${expected}.\n\n${asked}`;
}

// The answers.

/**
 * Returns a person's answers to the open questions. A question without a response stays open, and so does one whose response does not fit its form. Throws a
 * `ShapeError` if none of them fits.
 */
export function answersOf(responses: UnknownObject, pending: PendingQuestions): readonly PersonAnswer[] {
  const answers = pending.questions.flatMap((question): readonly PersonAnswer[] => {
    const { callId } = question;
    const answer = answerOf(question, Object(responses[questionId(callId, pending)]));
    return answer ? [{ ...(callId !== undefined && { callId }), ...answer }] : [];
  });
  if (answers.length > 0) return answers;
  throw invalid("params.inputResponses", "a response of the form of one of the `inputRequests`");
}

/** Returns the answer that a response means. A dismissed question counts as declined: nothing runs without a clear yes. */
function answerOf(question: Question, { action, content }: UnknownObject): Suggestion | undefined {
  if (action === "decline" || action === "cancel") {
    return question.tool === undefined ? { type: "reply", text: "" } : { type: "deny" };
  }
  if (action !== "accept") return undefined;
  const form = formOf(question);
  if (form === textForm) {
    const text = Object(content)[answerField];
    return typeof text === "string" ? { type: "reply", text } : undefined;
  }
  const { properties, required } = form;
  if (Object.keys(Object(properties)).length === 0) return { type: "approve" };
  const isWhole = isObject(content) && Array.isArray(required) &&
    required.every((name) => Object.hasOwn(content, name));
  return isWhole ? { type: "approve", input: content } : undefined;
}
