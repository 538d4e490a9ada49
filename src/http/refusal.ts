/**
 * Refusals: what a client is told when its request is not served, as JSON.
 *
 * @module
 */
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { SessionError } from "../core/claim.ts";
import { ResumeTokenError, type ResumeTokenProblem } from "../session/resume_token/resume_token_error.ts";
import { RecordError, type RecordProblem } from "../session/record/record_error.ts";
import { ShapeError } from "../protocol/shape.ts";
import type { WireError } from "../wire/wire.ts";

/** A request that is not served. What it says is written for the client. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  /** Says why, for people, as a status, as a word for programs, and by the field of the body that is wrong. */
  constructor(
    readonly status: 400 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 503,
    readonly code: string,
    message: string,
    readonly field?: string | undefined,
  ) {
    super(message);
  }
}

/** There is no such thing, or it is somebody else's: nobody can tell which. */
export function unknown(what: string): Refusal {
  return new Refusal(404, "unknown", `Cannot ${what}: there is none`);
}

/** Nobody is served any more. */
export function shutdown(): Refusal {
  return new Refusal(503, "shutdown", "Cannot serve this: the server is shutting down");
}

/** Told of what went wrong; `id` is what the client was told instead. `run` is missing where none had begun. */
export type OnFailure = (error: unknown, info: { readonly id: string; readonly run?: string }) => void;

/** Answers whatever a handler threw, as `tell` tells of it: a client hears of a failure by its id alone. */
export function refuse(
  error: unknown,
  c: Context,
  onError: OnFailure | undefined,
  tell: (refused: WireError) => object = native,
): Response {
  if (error instanceof HTTPException) return error.getResponse(); // made for the client by whoever wrote `vars` or `owner`
  const refusal = refusalOf(error);
  if (refusal instanceof Refusal) return c.json(tell(refusal), refusal.status);
  const id = report(onError, error);
  return c.json(tell({ status: 500, code: "internal", message: "The request failed.", id }), 500);
}

function native({ code, message, field, id }: WireError): object {
  return { error: { code, message, field, id } };
}

/** Tells the operator what went wrong; gives the id that a client may be told. */
export function report(onError: OnFailure | undefined, error: unknown, run?: string): string {
  const id = crypto.randomUUID();
  try {
    onError?.(error, { id, ...(run !== undefined && { run }) });
  } catch {
    return id; // whoever should hear of it has failed, and there is nobody else
  }
  return id;
}

/** What is not simply in conflict with how things are. */
const statuses: { readonly [key in SessionError["code"] | RecordProblem | ResumeTokenProblem]?: Refusal["status"] } = {
  "unknown": 404,
  "invalid": 400,
  "forgotten": 410,
  "unrecorded": 503,
  "forged": 400,
  "unknown-key": 400,
  "other-session": 403,
  "version": 410,
  "expired": 410,
  "too-large": 413,
};

/** What is not to be had: the message names nothing but what the client sent. */
function refusalOf(error: unknown): unknown {
  if (error instanceof ShapeError) return new Refusal(400, "invalid", error.message, error.field);
  if (!(error instanceof SessionError || error instanceof RecordError || error instanceof ResumeTokenError)) {
    return error;
  }
  return new Refusal(statuses[error.code] ?? 409, error.code, error.message);
}
