/**
 * The shapes of the bodies of native requests.
 *
 * @module
 */
import { type Artifact, type CallResult, type Message, user } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, TokenLogprob } from "../../protocol/part.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import type { Mail } from "../../core/session.ts";
import { answerFields } from "../../wire/wire.ts";
import {
  array,
  boolean,
  count,
  id,
  invalid,
  json,
  lazy,
  object,
  oneOf,
  optional,
  type Shape,
  string,
  variant,
} from "../../protocol/shape.ts";

/** A prompt, or the messages that the client holds, the last of them the person's. */
export type PromptBody = { readonly prompt: string } | { readonly messages: readonly Message[] };

/** The body of `POST /runs`. */
export type RunBody = PromptBody & { readonly session?: string | undefined };

/** The body of `POST /sessions/:id/answers`. */
export interface AnswersBody {
  readonly answers: readonly PersonAnswer[];
  /** The run that asked, and the number of its `run.paused` event. A later pause is not answered. Default: the latest pause. */
  readonly run?: string | undefined;
  readonly at?: number | undefined;
  /** The resume token of the pause, if the server uses resume tokens. */
  readonly resumeToken?: string | undefined;
}

const optionalString = /* @__PURE__ */ optional(string);
const mediaFields = { mediaType: string, data: optionalString, url: optionalString };

const part: Shape<ContentPart> = /* @__PURE__ */ lazy(() =>
  variant("type", {
    text: { text: string },
    media: { ...mediaFields, meta: optional(json) },
  })
);

const content: Shape<ContentPart> = (value, path) => checkContent(part(value, path), path);

/** Refuses a file without its bytes or its address. */
function checkContent<P extends AnswerPart | ContentPart>(parsed: P, path: string): P {
  if (parsed.type === "media" && (parsed.data ?? parsed.url) === undefined) throw invalid(path, "data or a url");
  return parsed;
}

const finite: Shape<number> = (value, path) => {
  if (typeof value === "number") return value;
  throw invalid(path, "a number");
};

const tokenLogprob: Shape<TokenLogprob> = (value, path) =>
  object<TokenLogprob>({ token: string, logprob: finite, top: optional(array(tokenLogprob)) })(value, path);

const anyAnswerPart: Shape<AnswerPart> = /* @__PURE__ */ lazy(() =>
  variant("type", {
    text: { text: string },
    reasoning: { text: string, meta: optional(json) },
    media: { ...mediaFields, meta: optional(json) },
    source: { url: optional(string), title: optional(string), text: optional(string) },
    provider_call: { callId: id, name: string, server: optional(string), input: json, meta: optional(json) },
    provider_result: {
      callId: id,
      name: string,
      status: oneOf("ok", "error"),
      output: json,
      meta: optional(json),
    },
    refusal: { text: string, category: optional(string) },
    logprobs: { tokens: array(tokenLogprob) },
    call: { id, name: string, input: json, malformed: optional(string), incomplete: optional(boolean) },
  })
);

const answerPart: Shape<AnswerPart> = (value, path) => checkContent(anyAnswerPart(value, path), path);

const artifact: Shape<Artifact> = /* @__PURE__ */ lazy(() =>
  object<Artifact>({ uri: string, name: optional(string), mediaType: optional(string) })
);

const result: Shape<CallResult> = /* @__PURE__ */ lazy(() =>
  object<CallResult>({
    callId: id,
    name: string,
    status: oneOf("ok", "error", "denied", "timeout", "skipped", "aborted"),
    parts: array(content),
    artifacts: optional(array(artifact)),
    handled: optional(boolean),
  })
);

/** Leaves out an id: on native routes, clients do not name messages. */
const noId: Shape<undefined> = () => undefined;

const message: Shape<Message> = /* @__PURE__ */ lazy(() =>
  variant("role", {
    user: { parts: array(content), from: optional(string), id: noId },
    assistant: { parts: array(answerPart) },
    tool: { results: array(result) },
  })
);

const answer: Shape<PersonAnswer> = /* @__PURE__ */ lazy(() => {
  const { approve, deny, reply } = answerFields();
  return variant("type", {
    approve: { callId: id, ...approve },
    deny: { callId: id, ...deny },
    reply: { callId: optional(id), ...reply },
  });
});

const run = /* @__PURE__ */ lazy(() =>
  object({ prompt: optional(string), messages: optional(array(message)), session: optional(string) })
);

/** Parses the body of `POST /runs`. */
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

/** Parses the body of `POST /runs/:id/messages`. */
export const messageBody: Shape<Extract<Mail, { type: "message" }>> = (value, at) => {
  const { parts, after, text: plain } = sent(value, at);
  if (parts && plain !== undefined) throw invalid("parts", "a text or parts, not both");
  const message = parts ? { role: "user", parts } as const : user(string(plain, "text"));
  return { type: "message", message, ...(after && { after }) };
};

/** Parses the body of `POST /sessions/:id/answers`. */
export const answersBody: Shape<AnswersBody> = /* @__PURE__ */ lazy(() =>
  object({ answers: array(answer), run: optional(id), at: optional(count), resumeToken: optional(string) })
);

/** Parses the body of `POST /sessions/:id/compact`. */
export const compactBody = /* @__PURE__ */ lazy(() =>
  object<{ readonly instructions?: string }>({ instructions: optional(string) })
);
