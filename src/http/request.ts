/**
 * Requests: the operations that they ask for, their bodies, and their clients.
 *
 * @module
 */
import type { Context, ExecutionContext } from "hono";
import { expectType } from "../core/lib/options.ts";
import type { Mail, Session } from "../core/session.ts";
import { expectedInPlaceOf, type HistoryOptions } from "../core/store.ts";
import { RequestError } from "./error_response.ts";
import type { LiveRuns } from "./live_runs.ts";
import type { Busy, ServerOptions } from "./options.ts";
import type { Idempotency, SessionQueue } from "./queue.ts";
import type { ResponseFormat } from "./respond.ts";
import type { AnswersBody, PromptBody } from "./routes.ts";
import { invalid, type Shape } from "../protocol/shape.ts";
import { ownedKey } from "../session/owned_key.ts";
import type { Requester, RunAddress } from "../session/record/run_host.ts";
import type { ChatInput, Prompt, RunParts, WireError } from "../wire/wire.ts";

// The parts of a server that its requests share.

/** A served agent: its options, its runs, the keys of repeated requests, and the queues of prompts. */
export interface Server {
  readonly options: ServerOptions;
  readonly runs: LiveRuns;
  readonly idempotency: Idempotency;
  readonly queue: SessionQueue;
}

/** A request after it was identified, and the server that handles it. */
export interface RequestScope {
  readonly c: Context;
  readonly server: Server;
  readonly client: Client;
}

// The operation that a request asks for. Native routes and wires parse requests to the same operations.

/** The prompt of a run, and the parts of the run that its client decides. */
type PromptInput = PromptBody & RunParts & Pick<Prompt, "replaces">;

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
  | { readonly type: "json"; readonly body: object };

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
  readonly errorBody?: ((error: WireError) => object) | undefined;
}

/** Throws a `ShapeError` if the operation names a session or a run that cannot exist. */
export function expectIds(operation: Operation, { owner }: Client): void {
  const { session, run } = { session: undefined, run: undefined, ...operation };
  for (const id of [session, run]) if (id !== undefined) expectId("id", id, ownedKey(owner, id));
}

/** Throws a `ShapeError` that names `field` if no session, run or owner can have the id. `key` is the id with its owner. */
function expectId(field: string, id: string, key?: string): void {
  const expected = expectedInPlaceOf(id, key);
  if (expected !== undefined) throw invalid(field, expected);
}

/**
 * Returns the session that the URL of a request names, by the `session` option. A native request that names another one in its body is refused. The clients of
 * wires always name a session of their own, which this one replaces. Returns no promise without the option.
 */
export function addressedSession(c: Context, { session }: ServerOptions): Promise<string | undefined> | undefined {
  return session && checkedSession(session(c));
}

async function checkedSession(named: ReturnType<NonNullable<ServerOptions["session"]>>): Promise<string | undefined> {
  const id = await named;
  expectType("Cannot serve the request", "session", id, "String");
  return id;
}

// Reading request bodies within a bound.

/** Parses the JSON body of a request, of at most `max` bytes. */
export async function readJson<T>(c: Context, shape: Shape<T>, max: number): Promise<T> {
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(c.req.header("content-type") ?? "")) {
    throw new RequestError(415, "not-json", "Cannot read the body: expected content-type application/json");
  }
  const text = new TextDecoder().decode(await readBytes(c, max));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("", "JSON");
  }
  return shape(value, "");
}

/** Reads the body of a request, of at most `max` bytes. Later calls of `c.req.json()` and the like return the same body. */
export async function readBytes({ req }: Context, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const { raw } = req;
  if (Number(raw.headers.get("content-length")) > max) throw tooLarge(max);
  // bytes, since a text would not keep a byte order mark and invalid UTF-8, which the signature of a forwarded request covers
  if (raw.body && !raw.bodyUsed) Object.assign(req.bodyCache, { arrayBuffer: readBounded(raw.body, max) });
  const body = new Uint8Array(await req.arrayBuffer());
  if (body.length > max) throw tooLarge(max);
  return body;
}

/** Reads with a reader that keeps its lock: `for await` releases it, for which the platform creates an error. */
async function readBounded(body: ReadableStream<Uint8Array>, max: number): Promise<ArrayBuffer> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.byteLength;
    if (size > max) {
      await reader.cancel().catch(() => {}); // the request is refused in any case
      throw tooLarge(max);
    }
    chunks.push(read.value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes.buffer;
}

function tooLarge(max: number): RequestError {
  const fix = "the session has the history, so send the newest message only, with newestMessageOnly of " +
    '"@jizai/jizai/client" in useChat, or raise `maxBody` of serve()';
  return new RequestError(413, "too-large", `Cannot read the body: it has more than ${max} bytes; ${fix}`);
}

// Step 2 of the request path: identifies the client of a request.

/** The client of a request. */
export interface Client extends Requester {
  /** Aborts if the client leaves before the response, on platforms that report it. */
  readonly leaving: AbortSignal;
  /**
   * Calls `listener` if the client leaves, on platforms that end with the response. These do not cancel the stream of a response that comes after its client
   * has left.
   */
  onLeave(listener: () => void): void;
}

/**
 * Returns the client of a request, with its owner and vars. Throws a `RequestError` with status 403 if the `owner` option returns none, and whatever `owner`
 * and `vars` throw. Returns no promise without these options.
 */
export function identify(c: Context, options: ServerOptions): Client | Promise<Client> {
  return options.owner || options.vars ? identified(c, options) : new RequestClient(c, undefined, undefined);
}

/** An id as the server makes it: an owner must leave room for it. */
const exampleId = "x".repeat(36);

async function identified(c: Context, { owner, vars }: ServerOptions): Promise<Client> {
  const ownerId = await owner?.(c);
  if (owner && !ownerId) throw new RequestError(403, "unidentified", "Cannot serve the request: it has no owner");
  expectType("Cannot serve the request", "owner", ownerId, "String");
  if (ownerId !== undefined) expectId("owner", ownerId, ownedKey(ownerId, exampleId));
  return new RequestClient(c, ownerId, await vars?.(c));
}

/** The client of a request. A class, because an object literal with accessors costs a microsecond each time it is created. */
class RequestClient implements Client {
  readonly owner: string | undefined;
  readonly vars: unknown;
  readonly #c: Context;

  constructor(c: Context, owner: string | undefined, vars: unknown) {
    this.#c = c;
    this.owner = owner;
    this.vars = vars;
  }

  get leaving(): AbortSignal { // Deno warns when the signal is read, and few requests need it
    return this.#c.req.raw.signal;
  }

  outlive(work: Promise<unknown>): void {
    this.#context?.waitUntil(work);
  }

  onLeave(listener: () => void): void {
    if (!this.#context) return;
    if (this.leaving.aborted) listener();
    else this.leaving.addEventListener("abort", listener, { once: true });
  }

  get #context(): ExecutionContext | undefined {
    try {
      return this.#c.executionCtx;
    } catch {
      return undefined; // the platform does not end with the response
    }
  }
}
