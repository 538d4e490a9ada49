/**
 * Parts that both of OpenAI's dialects share: errors and refused runs, log probabilities, and the names of responses.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { RefusalPart, TokenLogprob } from "../../protocol/part.ts";
import { refusalOf } from "../failed_response.ts";
import type { EventOf, WireError } from "../wire.ts";

// Log probabilities in OpenAI's form.

/** Encodes tokens, with their bytes. */
export function encodeTokens(tokens: readonly TokenLogprob[]): readonly object[] {
  const encoder = new TextEncoder();
  return tokens.map(({ token, logprob, top = [] }) => ({
    token,
    logprob,
    bytes: [...encoder.encode(token)],
    top_logprobs: top.map(({ token, logprob }) => ({ token, logprob, bytes: [...encoder.encode(token)] })),
  }));
}

// Names of responses, for their ids.

/**
 * Returns the name of the response that begins with this event: the id of its run. A run that pauses has several responses, so the later ones are also named by
 * the number of the event.
 */
export function responseName({ run, resumed }: EventOf<"run.started">, number: number): string {
  return resumed ? `${run}.${number}` : run;
}

// Errors in OpenAI's format, and refused runs.

/** The event that ends a response. */
export type EndEvent = Extract<Event, { readonly type: "run.finished" | "run.paused" | "run.failed" | "run.aborted" }>;

/** Encodes the error of a request that was not served. */
export function encodeError({ status, code, message, field, id }: WireError): object {
  const type = status < 500 ? "invalid_request_error" : undefined;
  return { error: { ...errorWith(message, code, type), param: field ?? null, id } };
}

/** Returns the error of a run that failed or was aborted. */
export function errorOf(end: EndEvent): object | undefined {
  if (end.type === "run.failed") {
    const { message, code, error: id, retryAfter } = end;
    return { ...errorWith(message, code), id, retry_after: retryAfter && retryAfter / 1000 };
  }
  return end.type === "run.aborted" ? errorWith(`The run was stopped: ${end.reason}`, "aborted") : undefined;
}

/** Returns the reason why a hook refused the run, as a refusal of the model; nothing for another end. */
export function refusalIn(end: EndEvent): readonly RefusalPart[] {
  const text = refusalOf(end);
  return text === undefined ? [] : [{ type: "refusal", text }];
}

function errorWith(message: string, code: string, type = "server_error"): object {
  return { message, type, code };
}
