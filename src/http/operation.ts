/**
 * Operations: everything that a request can ask of a server, for native routes and wires alike, and the routes that ask for them.
 *
 * @module
 */
import type { Context } from "hono";
import type { Mail, Session } from "../core/session.ts";
import type { HistoryOptions } from "../core/store.ts";
import type { Admissions } from "./capacity.ts";
import type { Client } from "./identify.ts";
import type { Streams } from "./load.ts";
import type { LiveRuns } from "./live_runs.ts";
import type { Busy, ServerOptions } from "./options.ts";
import type { Idempotency, SessionQueue } from "./queue.ts";
import type { ResponseFormat } from "./respond.ts";
import type { AnswersBody, PromptBody } from "./routes.ts";
import type { RunAddress } from "../session/record/run_host.ts";
import type { ChatInput, ParsedRequest, Prompt, RunParts, WireError } from "../wire/wire.ts";

// The parts of a server that its requests share.

/** A served agent: its options, its runs, the keys of repeated requests, and the queues of prompts. */
export interface Server {
  readonly options: ServerOptions;
  readonly runs: LiveRuns;
  readonly idempotency: Idempotency;
  readonly queue: SessionQueue;
  readonly streams: Streams;
  readonly admissions: Admissions;
}

/** A client, and the server that begins its run. A schedule has no request. */
export interface StartScope {
  readonly server: Server;
  readonly client: Client;
}

/** A request after it was identified, and the server that handles it. */
export interface RequestScope extends StartScope {
  readonly c: Context;
}

// The operation that a request asks for. Native routes and wires parse requests to the same operations.

/** The prompt of a run, and the parts of the run that its client decides. */
type PromptInput = PromptBody & RunParts & Pick<Prompt, "replaces" | "call">;

/** Begins a run. */
export interface PromptOperation {
  readonly type: "prompt";
  readonly input: PromptInput;
  /** The session. Default: a new one. */
  readonly session: string | undefined;
  /** Whether the session is created if it does not exist. */
  readonly create: boolean;
  /** The effect on the prompt if another run has the session. */
  readonly busy: Busy;
  readonly format: ResponseFormat;
}

/** Resumes a paused run with the answers of a person. */
export type AnswersOperation = AnswersBody & RunParts & {
  readonly type: "answers";
  readonly session: string;
  /** The run that had the session when the message of a wire's client was read as answers, or an empty text. The answers are for no other run. */
  readonly seen?: string;
  readonly format: ResponseFormat;
};

/** A message of a wire's client: a prompt, or answers if the session asks something. */
export interface ChatOperation extends Pick<ChatInput, "resumeToken" | "input"> {
  readonly type: "chat";
  readonly session: string | undefined;
  readonly create: boolean;
  readonly format: ResponseFormat;
}

/** One operation on the runs and sessions of a server. */
export type Operation =
  | PromptOperation
  | AnswersOperation
  | ChatOperation
  | {
    readonly type: "compact";
    readonly session: string;
    readonly instructions: string;
    readonly format: ResponseFormat;
  }
  | { readonly type: "follow"; readonly run: string; readonly after: number; readonly format: ResponseFormat }
  | { readonly type: "followSession"; readonly session: string; readonly format: ResponseFormat }
  | {
    readonly type: "show";
    readonly session: string;
    body(session: Session): object;
    readonly page?: HistoryOptions | undefined;
  }
  | { readonly type: "delete"; readonly session: string }
  | RunAddress & { readonly type: "message"; readonly message: Extract<Mail, { type: "message" }> }
  | RunAddress & { readonly type: "finish" }
  | RunAddress & { readonly type: "stop"; readonly rollback: boolean }
  | { readonly type: "stopSession"; readonly session: string }
  | Extract<ParsedRequest, { readonly type: "json" }>;

/** An operation of one type. */
export type OperationOf<T extends Operation["type"]> = Extract<Operation, { readonly type: T }>;

/** An operation that starts or resumes a run. */
export type StartOperation = PromptOperation | AnswersOperation | ChatOperation | OperationOf<"compact">;

/** One function for each of some types of operations. */
export type OperationTable<T extends Operation["type"], R> = {
  readonly [K in T]: (scope: RequestScope, operation: OperationOf<K>) => R | Promise<R>;
};

/** Calls the function for the type of an operation. */
export function dispatch<T extends Operation["type"], R>(
  table: OperationTable<T, R>,
  scope: RequestScope,
  operation: OperationOf<T>,
): R | Promise<R> {
  return table[operation.type as T](scope, operation); // the type is one of T
}

// Routes: an address, and the operation that its requests ask for.

/** An address of the server. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path, in which `:name` is a parameter. */
  readonly path: string;
  /** Step 1 of the request path. Throws a `ShapeError` or a `RequestError` if the request cannot be read. */
  parse(c: Context): Operation | Promise<Operation>;
  /** Makes the body of an error response. Default: `{ error }`. */
  readonly errorBody?: ((error: WireError, c: Context) => object) | undefined;
}
