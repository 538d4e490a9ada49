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
import { answerFields } from "../wire/answer.ts";
import {
  array,
  boolean,
  count,
  invalid,
  json,
  lazy,
  object,
  oneOf,
  optional,
  type Shape,
  string,
  variant,
} from "../protocol/shape.ts";

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

const part: Shape<ContentPart> = /* @__PURE__ */ lazy(() =>
  variant("type", {
    text: { text: string },
    media: { mediaType: string, data: optional(string), url: optional(string) },
  })
);

const content: Shape<ContentPart> = (value, path) => {
  const parsed = part(value, path);
  if (parsed.type === "media" && (parsed.data ?? parsed.url) === undefined) throw invalid(path, "data or a url");
  return parsed;
};

const answerPart: Shape<AnswerPart> = /* @__PURE__ */ lazy(() =>
  variant("type", {
    text: { text: string },
    reasoning: { text: string, meta: optional(json) },
    call: { id: string, name: string, input: json, malformed: optional(string) },
  })
);

const artifact: Shape<Artifact> = /* @__PURE__ */ lazy(() =>
  object<Artifact>({ uri: string, name: optional(string), mediaType: optional(string) })
);

const result: Shape<CallResult> = /* @__PURE__ */ lazy(() =>
  object<CallResult>({
    callId: string,
    name: string,
    status: oneOf("ok", "error", "denied", "timeout", "skipped", "aborted"),
    parts: array(content),
    artifacts: optional(array(artifact)),
    handled: optional(boolean),
  })
);

const message: Shape<Message> = /* @__PURE__ */ lazy(() =>
  variant("role", {
    user: { parts: array(content), from: optional(string) },
    assistant: { parts: array(answerPart) },
    tool: { results: array(result) },
  })
);

const answer: Shape<PersonAnswer> = /* @__PURE__ */ lazy(() => {
  const { approve, deny, reply } = answerFields();
  return variant("type", {
    approve: { callId: string, ...approve },
    deny: { callId: string, ...deny },
    reply: { callId: optional(string), ...reply },
  });
});

const run = /* @__PURE__ */ lazy(() =>
  object({ prompt: optional(string), messages: optional(array(message)), session: optional(string) })
);

/** The body of a request that begins a run. */
export const runBody: Shape<RunBody> = (value, at) => {
  const { prompt, messages, session } = run(value, at);
  if (!messages) return { session, prompt: string(prompt, "prompt") };
  if (prompt !== undefined) throw invalid("messages", "a prompt or messages, not both");
  if (messages.at(-1)?.role !== "user") throw invalid("messages", 'a last message of role "user"');
  return { session, messages };
};

const sent = /* @__PURE__ */ lazy(() =>
  object({ text: optional(string), parts: optional(array(content)), after: optional(oneOf("batch", "calls")) })
);

/** The body of a request that says something to a run. */
export const messageBody: Shape<Extract<Mail, { type: "message" }>> = (value, at) => {
  const { parts, after, text: said } = sent(value, at);
  if (parts && said !== undefined) throw invalid("parts", "a text or parts, not both");
  const message = parts ? { role: "user", parts } as const : user(string(said, "text"));
  return { type: "message", message, ...(after && { after }) };
};

/** The body of a request that answers questions. */
export const answersBody: Shape<AnswersBody> = /* @__PURE__ */ lazy(() =>
  object({ answers: array(answer), run: optional(string), at: optional(count), resumeToken: optional(string) })
);

/** The body of a request that compacts a session: what whoever summarizes should mind. */
export const compactBody = /* @__PURE__ */ lazy(() =>
  object<{ readonly instructions?: string }>({ instructions: optional(string) })
);

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
    if (error instanceof SyntaxError) throw invalid("", "JSON");
    throw error;
  }
}
