/**
 * Converts errors of the AI SDK, thrown or streamed, to `ModelError`.
 *
 * @module
 */
import { type Fields, isFields, textIn } from "../fields.ts";
import { ModelError } from "../model.ts";
import { providerErrors } from "../provider_error.ts";

/** Converts an error of `model`. `streaming` is true once the response has begun. */
export function modelErrorOf(error: unknown, model: string, streaming: boolean): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof Error && !("isRetryable" in error)) {
    const message = streaming
      ? `Cannot read the response of ${model}: the stream was cut or is invalid`
      : `Cannot ask ${model}: its provider failed`;
    return new ModelError(message, { cause: error, recoverable: streaming });
  }
  const { statusCode, responseHeaders, isRetryable, data }: Fields = isFields(error) ? error : {};
  const headers = headersOf(responseHeaders);
  const status = typeof statusCode === "number" ? { status: statusCode } : {};
  if (!status.status && isRetryable !== undefined) headers.set("x-should-retry", String(isRetryable)); // the header servers use for it
  // the error is not set as cause: it contains the whole request and response
  return providerErrors(model, []).fromBody(isFields(data) && data.error ? data : error, { ...status, headers });
}

function headersOf(given: unknown): Headers {
  const fields = Object.entries(isFields(given) ? given : {});
  return new Headers(fields.map(([name, value]) => [name, textIn(value)]));
}
