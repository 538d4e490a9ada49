/**
 * The wire port: a client dialect, as a pure mapping in both directions. A route parses requests, and an encoder turns the events of a run into the client's
 * frames. Sessions, owners, records and limits are those of the server's other routes.
 *
 * @module
 */
import type { AnswerFormat } from "../core/definition.ts";
import type { DirectCall } from "../core/position.ts";
import type { Session } from "../core/session.ts";
import type { AnyTool } from "../core/tool.ts";
import type { Event } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
import type { PersonAnswer, Question, Suggestion } from "../protocol/question.ts";
import { json, oneOf, optional, string, type Variants } from "../protocol/shape.ts";

// Encoders as tables of handlers, one for each type of event.

/** The event of this type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { readonly type: T }>;

/** Encodes the events of some types. A handler also receives the event's number, or another value that its caller passes with each event. */
type EventHandlers<V = number> = { readonly [T in Event["type"]]?: (event: EventOf<T>, value: V) => string };

/** Encodes an event. */
type Encode<V> = (event: Event, value: V) => string;

/** Creates an encoder from a table of handlers. `otherwise` encodes an event without a handler. Default: it has no frame. */
export function tableEncoder<V = number>(handlers: EventHandlers<V>, otherwise: Encode<V> = () => ""): Encode<V> {
  const table = handlers as { readonly [type: string]: Encode<V> | undefined }; // each takes the events of its type
  return (event, value) => (table[event.type] ?? otherwise)(event, value);
}

// Shapes of a person's answers, and the ids of the questions that they answer.

/** Returns the id of a pause. */
export function pauseId({ run, pausedAt }: Pause): string {
  return `${run}@${pausedAt}`;
}

/** Returns the id of a question. An answer to another pause, or to another run with the same calls, has another id. */
export function questionId(callId = "", pause: Pause): string {
  return `${callId}@${pauseId(pause)}`;
}

/** Whether a tool asks a question while its call runs, so that an approval has the content of a form. The id is that of the call, and a number. */
export function isForm({ callId = "" }: Question): boolean {
  return /\/\d+$/.test(callId);
}

/** Returns a question as text: what is asked, and the call that would run. */
export function askedText({ tool, input, questions }: Question): string {
  const text = questions.join("\n");
  return tool === undefined ? text : `${text}\n${tool} ${JSON.stringify(input)}`;
}

/** Returns the fields of each kind of answer, without the id of the call that it answers. */
export function answerFields(): Variants<"type", Suggestion> {
  return {
    approve: { input: optional(json), always: optional(oneOf("tool", "input")) },
    deny: { reason: optional(string) },
    reply: { text: string },
  };
}

// The port of wires: the routes of a client dialect, and the translation of its requests and our events.

/** The agent that a wire serves. */
export interface WireAgent {
  /** The definition, for features of the engine. */
  readonly "~definition": object;
}

/** A client dialect. */
export interface Wire {
  /** Returns the routes for the agent of this name. `served` is the agent itself, for wires of this package. */
  routes(agent: string, served: WireAgent): readonly WireRoute[];
}

/** One route of a dialect. */
export interface WireRoute {
  /** The method. A POST has a JSON body. */
  readonly method: "GET" | "POST" | "DELETE";
  /** The path. A segment `:name` matches every text, which `params` then contains. An app that mounts the server must not use the same name. */
  readonly path: string;
  /** Parses a request. Throws a `ShapeError` for an invalid request, which the server answers with 400. */
  parse(request: WireRequest): ParsedRequest;
  /** Returns the body of an error response. `body` is that of the request; undefined if it could not be read. Default: `{ error }`. */
  readonly encodeError?: (error: WireError, body: unknown) => object;
}

/** The reason why a request was not served. */
export interface WireError {
  /** The status of the response. */
  readonly status: number;
  /** The reason, for programs. */
  readonly code: string;
  /** The reason, for people. */
  readonly message: string;
  /** The path of the invalid field, such as `messages.0.role`. */
  readonly field?: string | undefined;
  /** The id under which `onError` received an internal error. */
  readonly id?: string;
}

/** A request, before the wire has parsed it. */
export interface WireRequest {
  /** The parameters of the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** The JSON body; undefined unless the method is POST. */
  readonly body: unknown;
  /** The session that the server derives from the URL, if it does. It replaces the session that the client names. */
  readonly session: string | undefined;
  /** Returns a header, by its name in lower case. */
  header(name: string): string | undefined;
}

/** A parsed request: input for a session, the rest of its run, stopping that run, the session itself, or the response, which the wire has made. */
export type ParsedRequest =
  | ChatInput
  | { readonly type: "follow"; readonly session: string; readonly reply: Reply }
  | { readonly type: "stop"; readonly session: string }
  | { readonly type: "session"; readonly session: string; body(session: Session): object }
  | {
    readonly type: "json";
    /** Default: an empty body. */
    readonly body?: object;
    /** Default: 200. */
    readonly status?: 200 | 202 | 400 | 403 | 404;
  };

/** Messages for a session, or answers to its questions. */
export interface ChatInput {
  /** Tells it from the other kinds of requests. */
  readonly type: "chat";
  /** The session, created if it does not exist. Default: a new session. */
  readonly session?: string | undefined;
  /** Whether an unknown session is refused with 404. Default: false, it is created. */
  readonly mustExist?: boolean | undefined;
  /** The resume token of the pause that is answered, if the client keeps one. Default: the server's store keeps the pause. */
  readonly resumeToken?: string | undefined;
  /** Returns the input for a session that has these open questions. */
  input(pending: PendingQuestions): Input;
  /** Encodes the run as a response. */
  readonly reply: Reply;
}

/** A pause of a run. The id of a question names both, because ids of calls and numbers of events repeat in other runs. */
export interface Pause {
  /** The run; empty if no run has the session. */
  readonly run: string;
  /** The number of the `run.paused` event. */
  readonly pausedAt: number;
}

/** The open questions of a session. */
export interface PendingQuestions extends Pause {
  /** The questions; empty unless the session is paused. */
  readonly questions: readonly Question[];
}

/** Input from a client: a prompt or answers. */
export type Input = RunParts & (Prompt | { readonly answers: readonly PersonAnswer[] });

/** The parts of one run that its client decides. */
export interface RunParts {
  /** The tools that the client runs itself. */
  readonly tools?: readonly AnyTool[];
  /** The format of the final answer, if the agent has none of its own. */
  readonly answerFormat?: AnswerFormat | undefined;
}

/** Messages that begin a run. */
export interface Prompt {
  /** The messages, the last of them the user's. */
  readonly messages: readonly Message[];
  /**
   * The prompt that this one replaces: it and everything after it is removed from the session. "id" is the last prompt with its id, and
   * "id-or-content" is, if there is none, the last one with its content. Default: none.
   */
  readonly replaces?: "id" | "id-or-content" | undefined;
  /** Whether a new session is created, because the client holds the whole history. Default: false. */
  readonly newSession?: boolean | undefined;
  /** A call to make in place of asking the model, with every hook of calls. The run ends with its result. Default: the model is asked. */
  readonly call?: DirectCall | undefined;
}

/** Encodes one event of a run; `id` is its number in the run. Returns frames, or an empty string if the dialect has no frame for the event. */
export type EventEncoder = (event: Event, id: number) => string;

/** Adds one event of a run to a JSON response. Returns the response once it is complete. */
export type ResponseCollector = (event: Event, id: number) => JsonResponse | undefined;

/** A response, as a stream of frames or as one JSON body. Each response gets an encoder of its own. */
export type Reply =
  & {
    /** Headers to add to the response. */
    readonly headers?: Readonly<Record<string, string>>;
  }
  & (
    | {
      readonly type: "stream";
      /** Whether comments are sent in times of silence, as server-sent events have them. Default: true. */
      readonly comments?: boolean;
      encoder(): EventEncoder;
      /** Returns the response to send in place of `response`. `signal` is that of the request. Default: `response`. */
      respond?(response: Response, signal: AbortSignal): Promise<Response>;
    }
    | { readonly type: "json"; collector(): ResponseCollector }
  );

/** A response with one JSON body. */
export interface JsonResponse {
  /** The status. It depends on the code of the failure, if the run failed. */
  readonly status: 200 | 413 | 429 | 500 | 502 | 503;
  /** The body. */
  readonly body: object;
  /** Milliseconds that the client should wait before the next attempt, for the header `retry-after`. Default: the header is not sent. */
  readonly retryAfter?: number;
}
