/**
 * Error responses.
 *
 * @module
 */
import type { Context } from "hono";
import type { HTTPException } from "hono/http-exception";
import { CapacityError } from "../core/bounded_cache.ts";
import { callSafely, type ErrorPlace, errorPlace, type OnError } from "../core/events.ts";
import { traceIdOf } from "../core/lib/traceparent.ts";
import { SessionError } from "../core/session.ts";
import { UnreadableError } from "../core/store.ts";
import type { ServerOptions } from "./options.ts";
import type { Route } from "./operation.ts";
import { brand } from "../protocol/brand.ts";
import { ShapeError } from "../protocol/shape.ts";
import { RecordError } from "../session/record/records.ts";
import { ResumeTokenError } from "../session/resume_token/mod.ts";
import type { WireError } from "../wire/wire.ts";

/** A request that is refused. The message is sent to the client. */
export class RequestError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "RequestError");

  override readonly name = "RequestError";

  /** Takes the status, the reason as a word for programs, the message for people, and the field of the body that is wrong. */
  constructor(
    readonly status: 400 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 503,
    readonly code: string,
    message: string,
    readonly field?: string | undefined,
  ) {
    super(message);
  }
}

/** Creates the error for something that does not exist, or that belongs to another owner. The client cannot distinguish them. */
export function notFound(action: string): RequestError {
  return new RequestError(404, "unknown", `Cannot ${action}: there is none`);
}

/** Creates the error for a request that comes after the `signal` option has aborted. */
export function shuttingDown(): RequestError {
  return unavailable("shutdown", "the server is shutting down");
}

/** Creates the error for a request that is refused for now. */
export function unavailable(code: string, reason: string): RequestError {
  return new RequestError(503, code, `Cannot serve the request: ${reason}`);
}

/** The receivers of the errors of requests, and the store that may have failed. */
type ErrorReceivers = Pick<ServerOptions, "onError" | "observe" | "store">;

/** The part of a route that its errors need. Default: there is no such route. */
type FailedRoute = Partial<Pick<Route, "method" | "path" | "errorBody">>;

/** A request that has failed: its route, and what is known of its run. */
interface FailedRequest {
  readonly route?: FailedRoute;
  readonly place?: ErrorPlace;
}

/** Seconds after which a client may repeat a request that was refused with 503. */
const retryAfter = 2;

/** Returns the response to a request that failed with `error`. The client receives only an id of an internal error; `onError` receives the error itself. */
export function errorResponse(
  error: unknown,
  c: Context,
  receivers: ErrorReceivers,
  { route: { method, path, errorBody = nativeBody } = {}, place = {} }: FailedRequest = {},
): Response {
  const observe = (status: number, code?: string) =>
    receivers.observe?.({
      type: "request.refused",
      route: path === undefined ? "*" : `${method} ${path.replace("jizai_", "")}`,
      status,
      ...(code !== undefined && { code }),
    });
  if (isHttpException(error)) { // thrown by `vars` or `owner`, for the client
    const response = error.getResponse();
    observe(response.status);
    return response;
  }
  const wireError = requestErrorOf(error) ??
    failureOf(error, receivers, { trace: traceIdOf(c.req.header("traceparent")), ...place });
  const { status, code } = wireError;
  observe(status, code);
  return c.json(errorBody(wireError, c), status, status === 503 ? { "retry-after": `${retryAfter}` } : {});
}

/** Reports an error that is not meant for the client, and returns what the client reads of it. */
function failureOf(
  error: unknown,
  { onError, store }: ErrorReceivers,
  place: ErrorPlace,
): WireError & { readonly status: 500 | 503 } {
  const id = reportError(onError, error, place);
  if (error instanceof UnreadableError) {
    const message = `Cannot read the ${error.subject}: it is damaged, or a newer version of the server has saved it`;
    return { status: 500, code: "unreadable", message, id };
  }
  if (store?.isFailure?.(error)) {
    return { status: 503, code: "unavailable", message: "The store does not answer; try again later.", id };
  }
  return { status: 500, code: "internal", message: "The request failed.", id };
}

/** Returns true for an `HTTPException`, also of another copy of Hono. */
function isHttpException(error: unknown): error is HTTPException {
  return error instanceof Error && "getResponse" in error && typeof error.getResponse === "function";
}

function nativeBody({ code, message, field, id }: WireError): object {
  return { error: { code, message, field, id } };
}

/** Passes an error to `onError`, with the run, session, owner and trace that are known. Returns the id that the client may receive. */
export function reportError(onError: OnError, error: unknown, place: ErrorPlace = {}): string {
  const id = crypto.randomUUID();
  // if `onError` itself fails, no other handler can receive its error
  callSafely(() => onError(error, { id, ...errorPlace(place) }), () => {});
  return id;
}

/** An error of the engine, a record or a store that is meant for the client. */
type ClientError = SessionError | RecordError | ResumeTokenError | CapacityError;

/** The statuses of errors that are not conflicts (409). */
const statuses: { readonly [key in ClientError["code"]]?: RequestError["status"] } = {
  "unknown": 404,
  "invalid": 400,
  "forgotten": 410,
  "full": 503,
  "forged": 400,
  "unknown-key": 400,
  "other-session": 403,
  "refused": 403,
  "version": 410,
  "expired": 410,
  "too-large": 413,
};

/** True for the error of a request that is refused, and not for a failure of the server. */
export function isRefusal(error: unknown): boolean {
  return isHttpException(error) || requestErrorOf(error) !== undefined;
}

/** Returns the refusal that an error means for the client, if it does. Its message contains nothing that the client did not send. */
export function requestErrorOf(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  if (error instanceof ShapeError) return new RequestError(400, "invalid", error.message, error.field);
  return isClientError(error) ? new RequestError(statuses[error.code] ?? 409, error.code, error.message) : undefined;
}

function isClientError(error: unknown): error is ClientError {
  return error instanceof SessionError || error instanceof RecordError || error instanceof ResumeTokenError ||
    error instanceof CapacityError;
}
