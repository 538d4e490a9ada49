/**
 * Soundness: whether what came from outside is a session that waits for a person.
 *
 * @module
 */
import { mend } from "../../core/mend.ts";
import type { Question } from "../../protocol/event.ts";
import {
  type AnswerPart,
  type AssistantMessage,
  type CallResult,
  callsOf,
  type ContentPart,
  type Message,
  type Usage,
  type UserMessage,
} from "../../protocol/message.ts";
import type { Pending, PendingResult, RunRecord, Session, Tally } from "../../protocol/session.ts";

/** A session whose run waits. */
export type PausedSession = Session & { readonly run: RunRecord & { readonly pending: Pending } };

/** Whether `value` is a session whose run waits, to the last field, and fit to go on with. */
export function isPausedSession(value: unknown): value is PausedSession {
  return session(value) && isFit(value as PausedSession); // it has been looked at
}

/** Whether the transcript is valid, and every question about a call is about one that has no result. */
function isFit({ messages, run: { before, pending } }: PausedSession): boolean {
  const { batch, questions } = pending;
  const calls = new Set(batch && callsOf(batch.message).map(({ id }) => id));
  return before <= messages.length && mend(messages).problems.length === 0 &&
    (batch?.results ?? []).every(({ callId }) => calls.delete(callId)) &&
    questions.every(({ callId }) => callId === undefined || calls.has(callId));
}

/** Looks at a value; never throws. */
type Check = (value: unknown) => boolean;

/** A check for every field of `T`, the optional ones too. */
type Fields<T> = { readonly [K in keyof T]-?: Check };

/** The fields of each alternative of `T`, which `K` tells apart. */
type Kinds<K extends string, T extends { readonly [key in K]: string }> = {
  readonly [Tag in T[K]]: Fields<Omit<Extract<T, { readonly [key in K]: Tag }>, K>>;
};

const text: Check = (value) => typeof value === "string";
const flag: Check = (value) => typeof value === "boolean";
const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const json: Check = () => true; // read by JSON.parse()
const word = (...words: readonly unknown[]): Check => (value) => words.includes(value);
const optional = (check: Check): Check => (value) => value === undefined || check(value);
const list = (check: Check): Check => (value) => Array.isArray(value) && value.every(check);

function record<T>(fields: Fields<T>): Check {
  const checks = Object.entries<Check>(fields);
  return (value) =>
    typeof value === "object" && value !== null && checks.every(([key, check]) => check(Reflect.get(value, key)));
}

function tagged<K extends string, T extends { readonly [key in K]: string }>(key: K, kinds: Kinds<K, T>): Check {
  const checks = Object.entries<Fields<unknown>>(kinds).map(([tag, fields]) => record({ ...fields, [key]: word(tag) }));
  return (value) => checks.some((check) => check(value));
}

const content = tagged<"type", ContentPart>("type", {
  text: { text },
  media: { mediaType: text, data: optional(text), url: optional(text) },
});

const said = tagged<"type", AnswerPart>("type", {
  text: { text },
  reasoning: { text, meta: json },
  call: { id: text, name: text, input: json, malformed: optional(text) },
});

const result: Fields<CallResult> = {
  callId: text,
  name: text,
  status: word("ok", "error", "denied", "timeout", "skipped", "aborted"),
  parts: list(content),
  artifacts: json,
  handled: json,
};

const user: Fields<Omit<UserMessage, "role">> = { parts: list(content), from: optional(text) };
const assistant: Fields<Omit<AssistantMessage, "role">> = { parts: list(said) };

const message = tagged<"role", Message>("role", { user, assistant, tool: { results: list(record(result)) } });

const question = record<Question>({
  callId: optional(text),
  tool: optional(text),
  input: json,
  questions: list(text),
  path: optional(list(text)),
  schema: json,
  suggestions: json,
});

const usage = record<Usage>({ input: count, output: count, cached: optional(count) });

const pending = record<Pending>({
  questions: list(question),
  prompt: optional(list(message)),
  answered: json,
  batch: optional(record<NonNullable<Pending["batch"]>>({
    message: record<AssistantMessage>({ role: word("assistant"), ...assistant }),
    results: list(record<PendingResult>({ ...result, context: optional(list(text)) })),
    started: json,
    children: json,
  })),
  stopping: optional(flag),
});

const run = record<RunRecord>({
  id: text,
  status: word("paused"),
  startedAt: count,
  until: optional(count),
  events: count,
  usage,
  used: record<Tally>({ turns: count, calls: count, continuations: count, batches: count, outputs: count }),
  before: count,
  state: list((entry) => Array.isArray(entry) && entry.length <= 2 && text(entry[0])),
  pending,
  inbox: json,
});

const session = record<Session>({
  id: text,
  version: count,
  messages: list(message),
  run,
  owner: optional(text),
  rules: json,
  state: json,
  last: json,
});
