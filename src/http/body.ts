/**
 * Bodies: what clients send, read within a bound and checked field by field.
 *
 * @module
 */
import type { Context } from "hono";
import {
  type AnswerPart,
  type Artifact,
  type CallResult,
  type ContentPart,
  type Message,
  user,
} from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import type { Mail } from "../protocol/session.ts";
import { Refusal } from "./refusal.ts";
import { answers } from "../wire/answer.ts";
import { count, flag, json, list, optional, record, type Shape, tagged, text, word, wrong } from "../wire/shape.ts";

/** A run to begin: a prompt, or the messages that the client holds, the last of them the person's. */
export type RunBody =
  & { readonly session?: string | undefined }
  & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** A person's answers. */
export interface AnswersBody {
  readonly answers: readonly PersonAnswer[];
  /** The run that asked, and the number of the event that did: what was asked since is not answered. Default: whatever is asked now. */
  readonly run?: string | undefined;
  readonly at?: number | undefined;
  /** What came with the pause, where clients keep that. */
  readonly resumeToken?: string | undefined;
}

const part: Shape<ContentPart> = tagged("type", {
  text: { text },
  media: { mediaType: text, data: optional(text), url: optional(text) },
});

const content: Shape<ContentPart> = (value, at) => {
  const read = part(value, at);
  if (read.type === "media" && (read.data ?? read.url) === undefined) throw wrong(at, "data or a url");
  return read;
};

const said: Shape<AnswerPart> = tagged("type", {
  text: { text },
  reasoning: { text, meta: optional(json) },
  call: { id: text, name: text, input: json, malformed: optional(text) },
});

const artifact = record<Artifact>({ uri: text, name: optional(text), mediaType: optional(text) });

const result = record<CallResult>({
  callId: text,
  name: text,
  status: word("ok", "error", "denied", "timeout", "skipped", "aborted"),
  parts: list(content),
  artifacts: optional(list(artifact)),
  handled: optional(flag),
});

const message: Shape<Message> = tagged("role", {
  user: { parts: list(content), from: optional(text) },
  assistant: { parts: list(said) },
  tool: { results: list(result) },
});

const answer: Shape<PersonAnswer> = tagged("type", {
  approve: { callId: text, ...answers.approve },
  deny: { callId: text, ...answers.deny },
  reply: { callId: optional(text), ...answers.reply },
});

const run = record({ prompt: optional(text), messages: optional(list(message)), session: optional(text) });

/** The body of a request that begins a run. */
export const runBody: Shape<RunBody> = (value, at) => {
  const { prompt, messages, session } = run(value, at);
  if (!messages) return { session, prompt: text(prompt, "prompt") };
  if (prompt !== undefined) throw wrong("messages", "none beside a prompt");
  if (messages.at(-1)?.role !== "user") throw wrong("messages", "the last of them to be the person's");
  return { session, messages };
};

const sent = record({ text: optional(text), parts: optional(list(content)), after: optional(word("batch", "calls")) });

/** The body of a request that says something to a run. */
export const messageBody: Shape<Extract<Mail, { type: "message" }>> = (value, at) => {
  const { parts, after, text: said } = sent(value, at);
  if (parts && said !== undefined) throw wrong("parts", "none beside a text");
  const message = parts ? { role: "user", parts } as const : user(text(said, "text"));
  return { type: "message", message, ...(after && { after }) };
};

/** The body of a request that answers questions. */
export const answersBody: Shape<AnswersBody> = record({
  answers: list(answer),
  run: optional(text),
  at: optional(count),
  resumeToken: optional(text),
});

/** The body of a request that compacts a session: what whoever summarizes should mind. */
export const compactBody = record<{ readonly instructions?: string }>({ instructions: optional(text) });

/** The JSON body of a request, of at most `max` bytes. */
export async function bodyOf<T>({ req }: Context, shape: Shape<T>, max: number): Promise<T> {
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(req.header("content-type") ?? "")) {
    throw new Refusal(415, "not-json", "Cannot read the body: expected content-type application/json");
  }
  if (Number(req.header("content-length")) > max) throw tooLarge(max);
  const { body, bodyUsed } = req.raw;
  // whoever asks Hono for it later gets the same
  if (body && !bodyUsed) Object.assign(req.bodyCache, { text: bounded(body, max) });
  return shape(parsed(await req.text()), "");
}

async function bounded(body: ReadableStream<Uint8Array>, max: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > max) throw tooLarge(max);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function tooLarge(max: number): Refusal {
  return new Refusal(413, "too-large", `Cannot read the body: it has more than ${max} bytes`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw wrong("", "JSON");
    throw error;
  }
}
