/**
 * Provider errors: converts the error of a provider, in a response or in a stream, to a `ModelError`.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../protocol/shape.ts";
import { ModelError, type ModelErrorCode } from "./model.ts";

/** Limits of an error body, in characters: how much is read, and how much of its message is kept. */
const maxBody = 8_192;
const maxMessage = 1_000;

/** The parts of a response that describe a failure. */
type FailedResponse = Partial<Pick<Response, "status" | "headers">>;

/** Creates the errors of one provider. */
export interface ProviderErrors {
  /** Reads the error from a response that failed or is not a stream. */
  readonly fromResponse: (response: Response) => Promise<ModelError>;
  /** Creates the error of a response that ended without an event. */
  readonly withoutEvents: (response: FailedResponse) => ModelError;
  /** Reads the error from a frame, or from a parsed body together with its response. */
  readonly fromBody: (body: unknown, response?: FailedResponse) => ModelError;
}

/** Creates the errors of requests to `model`. Masks `secrets`: some providers repeat the key in their message. */
export function providerErrors(model: string, secrets: readonly string[]): ProviderErrors {
  function shorten(text: string): string {
    const masked = secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text);
    return masked.length > maxMessage ? `${masked.slice(0, maxMessage)}…` : masked;
  }

  function fromBody(body: unknown, { status, headers }: FailedResponse = {}): ModelError {
    const { message, kind, code, retryDelay } = errorFields(body);
    const known = status ?? code;
    const overflow = isOverflow(known, kind, message);
    const retryAfter = (headers && retryAfterOf(headers)) ?? retryDelay;
    const short = shorten(message || kind);
    const errorCode = overflow ? undefined : codeOf(kind);
    return new ModelError(`Cannot ask ${model}: ${[known, short].filter(Boolean).join(" ") || "no reason given"}`, {
      overflow,
      recoverable: !overflow && isRecoverable(known, kind, headers),
      ...(errorCode && { code: errorCode }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...(known !== undefined && { status: known }),
    });
  }

  async function fromResponse(response: Response): Promise<ModelError> {
    const body = await beginningOf(response);
    if (!response.ok || isError(body)) return fromBody(body, response);
    const text = shorten(typeof body === "string" ? body : JSON.stringify(body));
    return new ModelError(`${notAStream(response.headers)}: ${text}`, { status: response.status });
  }

  function withoutEvents({ status, headers }: FailedResponse): ModelError {
    return new ModelError(`${notAStream(headers)} without events`, {
      recoverable: !isPage(headers),
      ...(status !== undefined && { status }),
    });
  }

  function notAStream(headers?: Headers): string {
    const type = headers?.get("content-type")?.replace(/;.*/, "") ?? "a response";
    return `Cannot read the response of ${model}: expected an event stream, got ${type}`;
  }

  return { fromResponse, fromBody, withoutEvents };
}

/** Whether a response is a page or a single JSON value instead of a stream. */
export function isPage(headers?: Headers): boolean {
  return /json|html/.test(headers?.get("content-type") ?? "");
}

/** Whether a body with a status of success reports an error. */
function isError(body: unknown): boolean {
  return typeof body !== "string" && errorFields(body).message !== "";
}

/** The fields of an error body. */
interface ErrorFields {
  readonly message: string;
  /** The provider's names of the error, joined. */
  readonly kind: string;
  /** The status within the body. */
  readonly code?: number;
  /** Milliseconds that the provider asks to wait. */
  readonly retryDelay?: number;
}

/** Finds the fields of an error in the forms that providers use: `{ error: { ... } }`, a list of one, or plain text. */
function errorFields(body: unknown): ErrorFields {
  const outer: unknown = Array.isArray(body) ? body[0] : body;
  const inner = isObject(outer) ? outer.error || outer : outer;
  const fields: UnknownObject = isObject(inner) ? inner : { message: inner };
  const { type, code, status, details } = fields;
  const { raw, error_type: kind }: UnknownObject = Object(fields.metadata); // of OpenRouter: the error of the provider behind it
  const { error_type: outerKind }: UnknownObject = Object(outer);
  const number = typeof code === "string" && code !== "" ? Number(code) : code;
  const retryDelay = retryDelayOf(details);
  return {
    message: [messageOf(fields), typeof raw === "string" ? raw : ""].filter(Boolean).join(": "),
    kind: [type, code, status, kind, outerKind].filter((name) => typeof name === "string" && name).join(" "),
    ...(typeof number === "number" && number >= 400 && number < 600 && { code: number }),
    ...(retryDelay !== undefined && { retryDelay }),
  };
}

/** Returns the message of an error from the member that contains it. One that is no string is returned as JSON. */
export function messageOf({ message, detail, msg, error_msg: other }: UnknownObject): string {
  const messageText = message || detail || msg || other || "";
  return typeof messageText === "string" ? messageText : JSON.stringify(messageText);
}

/** Returns the milliseconds of Google's retry information, such as `{ retryDelay: "34.5s" }`. */
function retryDelayOf(details: unknown): number | undefined {
  const delay = (Array.isArray(details) ? details : []).find((detail) => isObject(detail) && detail.retryDelay);
  const seconds = Number.parseFloat(String(Object(delay).retryDelay));
  return Number.isNaN(seconds) ? undefined : seconds * 1_000;
}

/** Matches the messages of providers for a request that is larger than the model's context. */
const tooLong =
  /context[ _](length|window|size|limit)|exceed_context|maximum prompt length|number of tokens allowed|too many (input )?tokens|(prompt|input) is too long|request_too_large/i;

function isOverflow(status: number | undefined, kind: string, message: string): boolean {
  return status === 413 || status !== 429 && !/rate_limit/.test(kind) && tooLong.test(`${kind} ${message}`);
}

/** The codes of kinds of errors that providers name. If none matches, the status decides. */
const codes: readonly (readonly [kind: RegExp, code: ModelErrorCode])[] = [
  [/quota|billing/i, "unavailable"],
  [/rate_limit|too_many_requests|RESOURCE_EXHAUSTED/i, "rate_limited"],
  [/overloaded|\bUNAVAILABLE\b/, "overloaded"],
  [/authentication|permission|invalid_api_key|UNAUTHENTICATED/i, "unauthorized"],
];

function codeOf(kind: string): ModelErrorCode | undefined {
  return codes.find(([pattern]) => pattern.test(kind))?.[1];
}

/** Whether the same request may succeed later. An error without a status is recoverable unless it is about the request. */
function isRecoverable(status: number | undefined, kind: string, headers?: Headers): boolean {
  const shouldRetry = headers?.get("x-should-retry");
  if (shouldRetry === "true" || shouldRetry === "false") return shouldRetry === "true";
  if (/quota|billing/.test(kind)) return false;
  if (status !== undefined) return status >= 500 || status === 408 || status === 409 || status === 429;
  return !/invalid|validation|authentication|permission|not_found|filter|policy/i.test(kind);
}

/** Returns how long the provider asks to wait, in milliseconds. */
function retryAfterOf(headers: Headers): number | undefined {
  const exact = headers.get("retry-after-ms");
  if (exact && Number(exact) >= 0) return Number(exact);
  const header = headers.get("retry-after");
  if (!header) return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Reads the beginning of a body, parsed if it is JSON. The limit keeps a large page from being read as a whole. */
async function beginningOf({ body }: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= maxBody) break;
    }
    return JSON.parse(text);
  } catch {
    return text; // a page, or a body that was cut: the text itself is the message
  }
}
