/**
 * Call ids that contain their session. A request that brings the result of a call names no session, so the id has to.
 *
 * @module
 */

/** A call and its session. */
export interface CallPlace {
  /** The session's id. */
  readonly session: string;
  /** The call's id within the session. */
  readonly call: string;
}

/** Encodes a call id for the client: the length of the session's id, the session's id, and the call's id. */
export function encodeCallId({ session, call }: CallPlace): string {
  return `${session.length}.${session}.${call}`;
}

/** Decodes a call id from a client. Returns undefined for an id that `encodeCallId()` did not make. */
export function decodeCallId(id: string): CallPlace | undefined {
  const [, length, rest] = /^(\d+)\.(.*)$/s.exec(id) ?? [];
  const end = Number(length);
  return rest?.[end] === "." ? { session: rest.slice(0, end), call: rest.slice(end + 1) } : undefined;
}
