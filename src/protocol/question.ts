/**
 * Questions to a person, and their answers. Plain JSON data.
 *
 * @module
 */
import type { Event } from "./event.ts";

/** Additions to the text of a question. */
export interface QuestionOptions {
  /** The JSON Schema of the answer. */
  readonly schema?: { readonly [key: string]: unknown };
  /** Answers to choose from. */
  readonly suggestions?: readonly Suggestion[];
}

/** A question to a person about one call; about the whole run if it names no call. */
export interface Question extends QuestionOptions {
  /** The id of the call. A call of a subagent has the id of its parent's call before its own: `call_1/call_7`. The id of one call contains no `/`. */
  readonly callId?: string;
  /** The names of the tools whose subagents lead to the call, outermost first. Default: the agent of the run makes the call. */
  readonly path?: readonly string[];
  /** The tool that would run. */
  readonly tool?: string;
  /** The input that would run, after every hook and the tool's schema. */
  readonly input?: unknown;
  /** The questions to the person, of every hook and tool that asked. */
  readonly questions: readonly string[];
}

/** An answer that a person may give, ready to be sent with the id of its call. */
export type Suggestion = PersonAnswer extends infer A ? A extends unknown ? Omit<A, "callId"> : never : never;

/** A person's answer to a question, with the id of its call. A question about the whole run has no call and takes only a reply. */
export type PersonAnswer =
  | {
    readonly callId?: string | undefined;
    readonly type: "approve";
    /** The input that the tool runs with. Default: the input in the question. */
    readonly input?: unknown;
    /**
     * Answers the same questions for further calls of this tool, or for those with the same input, for the rest of the session. Questions are the same if the same
     * middleware, or the tool itself, asks them with the same key. Default: each call asks.
     */
    readonly always?: "tool" | "input";
  }
  | {
    readonly callId?: string | undefined;
    readonly type: "deny";
    /** The reason, which the model reads. */
    readonly reason?: string;
  }
  | {
    readonly callId?: string | undefined;
    readonly type: "reply";
    /** The text that replaces the tool's result, or answers the question of the run. */
    readonly text: string;
  };

// Questions in JSON: a schema that several of them have is there once.

/** The questions of a pause. If `schemas` is set, `schema` of a question is `{ $ref: "#/schemas/0" }`. */
export interface Asking {
  /** The questions. */
  readonly questions?: readonly Question[];
  /** The schemas of the questions, each once. Default: the questions contain them. */
  readonly schemas?: readonly NonNullable<Question["schema"]>[];
}

const path = "#/schemas/";

/** Returns questions as they are saved and sent: a schema that several of them have is there once. */
export function shareSchemas<A extends Asking>(asking: A): A {
  const indexes = new Map<string, number>();
  const questions = asking.questions?.map((question) => {
    if (!question.schema) return question;
    const text = JSON.stringify(question.schema);
    const index = indexes.get(text) ?? indexes.size;
    indexes.set(text, index);
    return { ...question, schema: { $ref: path + index } };
  });
  const schemas = [...indexes.keys()].map((text) => JSON.parse(text));
  const isShorter = questions && questions.filter(({ schema }) => schema).length > schemas.length;
  return isShorter ? { ...asking, questions, schemas } : asking;
}

/** Returns questions as their run asked them: each contains its schema. */
export function restoreSchemas<A extends Asking>(asking: A): Omit<A, "schemas"> {
  const { schemas, ...fields } = asking;
  if (!schemas) return fields;
  const questions = fields.questions?.map(({ schema: reference, ...question }) => {
    const schema = schemas[Number(String(reference?.$ref).slice(path.length))];
    return schema ? { ...question, schema } : question;
  });
  return questions ? { ...fields, questions } : fields;
}

/** Returns an event as it is stored and sent. */
export function sentForm(event: Event): Event {
  return changedPause(event, shareSchemas);
}

/** Returns an event that was stored or sent as its run emitted it. */
export function emittedForm(event: Event): Event {
  return changedPause(event, restoreSchemas);
}

/** Changes the pause of a run, or of a subagent. Returns other events as they are. */
function changedPause(event: Event, change: (pause: Pause) => Pause): Event {
  if (event.type === "run.paused") return change(event);
  if (event.type !== "subagent.event") return event;
  const inner = changedPause(event.event, change);
  return inner === event.event ? event : { ...event, event: inner };
}

type Pause = Extract<Event, { readonly type: "run.paused" }> & Asking;
