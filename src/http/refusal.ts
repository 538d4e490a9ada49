/**
 * Refusals: what a client is told when its request is not served, as JSON.
 *
 * @module
 */
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { SessionError } from "../core/claim.ts";

/** A request that is not served. What it says is written for the client. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  /** Says why, for people, as a status, as a word for programs, and by the field of the body that is wrong. */
  constructor(
    readonly status: 400 | 404 | 405 | 409 | 413 | 415,
    readonly code: string,
    message: string,
    readonly field?: string,
  ) {
    super(message);
  }
}

/** Told of what went wrong; `id` is what the client was told instead. `run` is missing where none had begun. */
export type OnFailure = (error: unknown, info: { readonly id: string; readonly run?: string }) => void;

/** Answers whatever a handler threw: a client hears of a failure by its id alone. */
export function refuse(error: Error, c: Context, onError: OnFailure | undefined): Response {
  if (error instanceof HTTPException) return error.getResponse(); // made for the client by whoever wrote `vars`
  const refusal = error instanceof SessionError ? taken(error) : error;
  if (refusal instanceof Refusal) {
    const { status, code, message, field } = refusal;
    return c.json({ error: { code, message, ...(field !== undefined && { field }) } }, status);
  }
  const id = crypto.randomUUID();
  onError?.(error, { id });
  return c.json({ error: { code: "internal", message: "The request failed.", id } }, 500);
}

/** A session that the run may not have: its message names nothing but what the client sent. */
function taken({ code, message }: SessionError): Refusal {
  return new Refusal(code === "unknown" ? 404 : 409, code, message);
}
