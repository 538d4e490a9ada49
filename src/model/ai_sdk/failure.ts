/**
 * What a model of the AI SDK throws, or says among its parts, as the error of a model.
 *
 * @module
 */
import { type Fields, isFields, textIn } from "../fields.ts";
import { ModelError } from "../model.ts";
import { refusals } from "../refusal.ts";

/** The error of `model` that `error` tells of. `answers` is whether it had begun to answer. */
export function failureOf(error: unknown, model: string, answers: boolean): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof Error && !("isRetryable" in error)) {
    const message = answers ? `Cannot hear ${model} out: its answer was cut, or cannot be read` : `Cannot ask ${model}`;
    return new ModelError(message, { cause: error, recoverable: answers });
  }
  const { statusCode, responseHeaders, isRetryable, data }: Fields = isFields(error) ? error : {};
  const headers = headersOf(responseHeaders);
  const status = typeof statusCode === "number" ? { status: statusCode } : {};
  if (!status.status && isRetryable !== undefined) headers.set("x-should-retry", String(isRetryable)); // as a server says it
  // it holds the whole request and answer: what it says is told, and it is not passed on
  return refusals(model, []).in(isFields(data) && data.error ? data : error, { ...status, headers });
}

function headersOf(given: unknown): Headers {
  const fields = Object.entries(isFields(given) ? given : {});
  return new Headers(fields.map(([name, value]) => [name, textIn(value)]));
}
