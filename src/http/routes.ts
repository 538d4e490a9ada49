/**
 * The routes of a server: the shapes of native bodies, the routes of wires, and the native routes.
 *
 * @module
 */
import type { Context } from "hono";
import { expectType } from "../core/lib/options.ts";
import type { Mail, Session } from "../core/session.ts";
import type { HistoryOptions } from "../core/store.ts";
import { RequestError } from "./error_response.ts";
import type { Operation, Route } from "./operation.ts";
import type { ServerOptions } from "./options.ts";
import { readJson } from "./request_body.ts";
import { nativeFormat as format, wireFormat } from "./respond.ts";
import { type Artifact, type CallResult, type Message, user } from "../protocol/message.ts";
import type { AnswerPart, ContentPart, TokenLogprob } from "../protocol/part.ts";
import type { PersonAnswer } from "../protocol/question.ts";
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
} from "../protocol/shape.ts";
import type { RunAddress } from "../session/record/run_host.ts";
import { runView } from "../session/record/run_state.ts";
import { answerFields, type ParsedRequest, type WireRoute } from "../wire/wire.ts";

// The shapes of the bodies of native requests.

/** A prompt, or the messages that the client holds, the last of them the person's. */
export type PromptBody = { readonly prompt: string } | { readonly messages: readonly Message[] };

/** The body of `POST /runs`. */
type RunBody = PromptBody & { readonly session?: string | undefined };

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

/** Leaves out a field that clients of native routes do not set. */
const unset: Shape<undefined> = () => undefined;

const result: Shape<CallResult> = /* @__PURE__ */ lazy(() =>
  object<CallResult>({
    callId: id,
    name: string,
    status: oneOf("ok", "error", "denied", "timeout", "skipped", "aborted"),
    parts: array(content),
    artifacts: optional(array(artifact)),
    handled: optional(boolean),
    inner: unset,
  })
);

const message: Shape<Message> = /* @__PURE__ */ lazy(() =>
  variant("role", {
    user: { parts: array(content), from: optional(string), id: unset },
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
const runBody: Shape<RunBody> = (value, at) => {
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
const messageBody: Shape<Extract<Mail, { type: "message" }>> = (value, at) => {
  const { parts, after, text: plain } = sent(value, at);
  if (parts && plain !== undefined) throw invalid("parts", "a text or parts, not both");
  const message = parts ? { role: "user", parts } as const : user(string(plain, "text"));
  return { type: "message", message, ...(after && { after }) };
};

/** Parses the body of `POST /sessions/:id/answers`. */
const answersBody: Shape<AnswersBody> = /* @__PURE__ */ lazy(() =>
  object({ answers: array(answer), run: optional(id), at: optional(count), resumeToken: optional(string) })
);

/** Parses the body of `POST /sessions/:id/compact`. */
const compactBody = /* @__PURE__ */ lazy(() =>
  object<{ readonly instructions?: string }>({ instructions: optional(string) })
);

/** Parses the body of `POST /calls`. */
const callBody = /* @__PURE__ */ lazy(() => object({ name: id, input: json }));

// The routes of wires. They ask for the same operations as the native routes.

/** Returns a route of a wire as a route of the server. */
export function wireRoute({ method, path, parse, encodeError }: WireRoute, options: ServerOptions): Route {
  const bodies = new WeakMap<Context, unknown>();
  return {
    method,
    path,
    errorBody: encodeError && ((error, c) => encodeError(error, bodies.get(c))),
    async parse(c) {
      const body = method === "POST" ? await readJson(c, json, options.maxBody) : undefined;
      if (encodeError) bodies.set(c, body);
      const session = await addressedSession(c, options);
      const header = (name: string) => c.req.header(name);
      return operationOf(parse({ params: c.req.param(), body, session, header }), session);
    },
  };
}

/** Returns the operation that a wire's request asks for. The session in the URL replaces the one that the client names. */
function operationOf(parsed: ParsedRequest, addressed: string | undefined): Operation {
  if (parsed.type === "json") return parsed;
  if (parsed.type === "chat") {
    const { mustExist = false, resumeToken, input, reply } = parsed;
    const create = !mustExist || addressed !== undefined;
    return {
      type: "chat",
      session: addressed ?? parsed.session,
      create,
      resumeToken,
      input,
      format: wireFormat(reply),
    };
  }
  const named = { session: addressed ?? parsed.session };
  if (parsed.type === "follow") return { type: "followSession", ...named, format: wireFormat(parsed.reply) };
  if (parsed.type === "session") return { type: "show", ...named, body: parsed.body };
  return { type: "stopSession", ...named };
}

// The native routes: each one parses its request into an operation.

/** The name of the id in a path. An app that mounts the server may have a parameter `id` of its own, which Hono would return in its place. */
const idName = "jizai_id";

/** Returns the native routes of a server. `serve()` documents them. `canCall`: developers may run calls that no model has made. */
export function nativeRoutes(options: ServerOptions, canCall: boolean): readonly Route[] {
  const body = <T>(c: Context, shape: Shape<T>) => readJson(c, shape, options.maxBody);

  async function prompt(c: Context): Promise<Operation> {
    const { session: named, ...input } = await body(c, runBody);
    const addressed = await addressedSession(c, options);
    if (addressed !== undefined && named !== undefined && named !== addressed) {
      throw new RequestError(404, "unknown", `Cannot run session "${named}": there is none`);
    }
    return {
      type: "prompt",
      input,
      session: addressed ?? named,
      create: addressed !== undefined,
      busy: options.nativeBusy,
      format,
    };
  }

  async function call(c: Context): Promise<Operation> {
    const made = await body(c, callBody);
    const input = { prompt: `Run ${made.name}`, call: made };
    return { type: "prompt", input, session: undefined, create: false, busy: options.nativeBusy, format };
  }

  return [
    { method: "POST", path: "/runs", parse: prompt },
    {
      method: "GET",
      path: `/runs/:${idName}`,
      parse: (c) => ({ type: "follow", run: idOf(c), after: positionOf(c), format }),
    },
    {
      method: "POST",
      path: `/runs/:${idName}/messages`,
      parse: async (c) => ({ type: "message", ...runIn(c), message: await body(c, messageBody) }),
    },
    { method: "POST", path: `/runs/:${idName}/finish`, parse: (c) => ({ type: "finish", ...runIn(c) }) },
    {
      method: "POST",
      path: `/runs/:${idName}/stop`,
      parse: (c) => ({ type: "stop", ...runIn(c), rollback: rollbackOf(c) }),
    },
    {
      method: "GET",
      path: `/sessions/:${idName}`,
      parse: (c) => ({ type: "show", session: idOf(c), body: viewOf, page: pageOf(c) }),
    },
    { method: "DELETE", path: `/sessions/:${idName}`, parse: (c) => ({ type: "delete", session: idOf(c) }) },
    {
      method: "POST",
      path: `/sessions/:${idName}/answers`,
      parse: async (c) => ({ ...await body(c, answersBody), type: "answers", session: idOf(c), format }),
    },
    {
      method: "POST",
      path: `/sessions/:${idName}/compact`,
      async parse(c) {
        const { instructions = "" } = await body(c, compactBody);
        return { type: "compact", session: idOf(c), instructions, format };
      },
    },
    ...canCall ? [{ method: "POST", path: "/calls", parse: call } as const] : [],
  ];
}

/** Returns what a client may see of a session. */
function viewOf(session: Session): object {
  const run = runView(session);
  return { id: session.id, messages: session.messages, ...(run && { run }) };
}

/** Returns the id in the path. */
function idOf(c: Context): string {
  return c.req.param(idName) ?? "";
}

/** Returns the run in the path, and its session if `?session` names it. */
function runIn(c: Context): RunAddress {
  const session = c.req.query("session");
  return { run: idOf(c), ...(session !== undefined && { session }) };
}

/** Returns whether the transcript is to be restored: `?rollback`, or `?rollback=true`. */
function rollbackOf({ req }: Context): boolean {
  const text = req.query("rollback") ?? "false";
  if (text === "false") return false;
  if (text === "" || text === "true") return true;
  throw invalid("rollback", "true or false");
}

/** Returns the page of a session's history that is asked for: `?limit` and `?before`. */
function pageOf({ req }: Context): HistoryOptions | undefined {
  const [before, limit] = (["before", "limit"] as const).map((name) => {
    const text = req.query(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < 1 || number > (name === "limit" ? longestPage : Number.MAX_SAFE_INTEGER)) {
      throw invalid(name, name === "limit" ? `a whole number from 1 to ${longestPage}` : "the `before` of a page");
    }
    return number;
  });
  return before === undefined && limit === undefined ? undefined : { before, limit };
}

/** The most messages of a page. */
const longestPage = 1_000;

/** Returns the number of the last event that the client has received. */
function positionOf({ req }: Context): number {
  const header = req.header("last-event-id");
  const text = header ?? req.query("after") ?? "0";
  const after = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(after)) return after;
  throw invalid(header === undefined ? "after" : "last-event-id", "the number of an event");
}

/**
 * Returns the session that the URL of a request names, by the `session` option. A native request that names another one in its body is refused. The clients of
 * wires always name a session of their own, which this one replaces. Returns no promise without the option.
 */
function addressedSession(c: Context, { session }: ServerOptions): Promise<string | undefined> | undefined {
  return session && checkedSession(session(c));
}

async function checkedSession(named: ReturnType<NonNullable<ServerOptions["session"]>>): Promise<string | undefined> {
  const id = await named;
  expectType("Cannot serve the request", "session", id, "String");
  return id;
}
