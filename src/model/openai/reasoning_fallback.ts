/**
 * Fallback for OpenAI's newer models, which reject tools over chat completions unless reasoning is off.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import { ModelError, type ModelEvent } from "../model.ts";

/** Sends the request with additional fields. */
type Send = (more: UnknownObject) => AsyncIterable<readonly ModelEvent[]>;

/** Returns a function that sends a request again with reasoning off if the server demands it, and turns it off for all later requests. */
export function reasoningFallback(): (send: Send) => AsyncGenerator<readonly ModelEvent[]> {
  let isOff = false;
  return async function* (send) {
    try {
      if (!isOff) return yield* send({});
    } catch (error) {
      if (!demandsNoReasoning(error)) throw error;
      isOff = true;
    }
    yield* send({ reasoning_effort: "none" });
  };
}

function demandsNoReasoning(error: unknown): boolean {
  return error instanceof ModelError && error.status === 400 && /reasoning_effort to 'none'/.test(error.message);
}
