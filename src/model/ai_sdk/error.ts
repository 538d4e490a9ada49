/**
 * Converts errors of the AI SDK, thrown or streamed, to `ModelError`.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import { ModelError } from "../model.ts";
import { providerErrors } from "../provider_error.ts";

/** Converts an error of `model`. `streaming` is true once the response has begun. */
export function modelErrorOf(error: unknown, model: string, streaming: boolean): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof Error && !("isRetryable" in error)) return otherError(error, model, streaming);
  const { statusCode, responseHeaders, isRetryable, data, cause }: UnknownObject = isObject(error) ? error : {};
  const status = typeof statusCode === "number" ? { status: statusCode } : {};
  // with a status of success, the SDK could not read the response
  if (status.status && status.status < 400) return cutError(model, cause);
  const headers = headersOf(responseHeaders);
  if (!status.status && isRetryable !== undefined) headers.set("x-should-retry", String(isRetryable)); // the header servers use for it
  // the error is not set as cause: it contains the whole request and response
  return providerErrors(model, []).fromBody(isObject(data) && data.error ? data : error, { ...status, headers });
}

/** Creates the error of a response that broke off. */
export function cutError(model: string, cause?: unknown): ModelError {
  return new ModelError(`Cannot read the response of ${model}: the stream was cut or is invalid`, {
    recoverable: true,
    ...(cause !== undefined && { cause }),
  });
}

/** Converts an error that is not the SDK's. Before the response, platforms throw a TypeError for a connection that breaks. */
function otherError(error: Error, model: string, streaming: boolean): ModelError {
  if (streaming) return cutError(model, error);
  if (!(error instanceof TypeError)) {
    return new ModelError(`Cannot ask ${model}: its provider failed`, { cause: error });
  }
  return new ModelError(`Cannot reach ${model}: the connection failed`, { cause: error, recoverable: true });
}

/** Converts headers from the SDK's record. */
export function headersOf(given: unknown): Headers {
  const fields = Object.entries(isObject(given) ? given : {});
  return new Headers(fields.map(([name, value]) => [name, `${value ?? ""}`]));
}
