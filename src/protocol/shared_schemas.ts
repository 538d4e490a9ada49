/**
 * Questions in JSON: a schema that several of them have is there once.
 *
 * @module
 */
import type { Event } from "./event.ts";
import type { Question } from "./question.ts";

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
  const { schemas, ...own } = asking;
  if (!schemas) return own;
  const questions = own.questions?.map(({ schema: reference, ...question }) => {
    const schema = schemas[Number(String(reference?.$ref).slice(path.length))];
    return schema ? { ...question, schema } : question;
  });
  return questions ? { ...own, questions } : own;
}

/** Returns an event as it is logged and sent. */
export function sentForm(event: Event): Event {
  return changedPause(event, shareSchemas);
}

/** Returns an event that was logged or sent as its run emitted it. */
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
