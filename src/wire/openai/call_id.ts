/**
 * The ids of calls, as clients have them: each says which session waits for what it comes to, since nothing else in a request does.
 *
 * @module
 */

/** A call, and the session that it is made in. */
export interface Place {
  /** The session. */
  readonly session: string;
  /** What the session calls it. */
  readonly call: string;
}

/** The id of a call, for a client: how long the session's is, that, and the call's. */
export function outerId({ session, call }: Place): string {
  return `${session.length}.${session}.${call}`;
}

/** What an id that a client sends is of; nothing where it is from elsewhere. */
export function placeOf(id: string): Place | undefined {
  const [, length, rest] = /^(\d+)\.(.*)$/s.exec(id) ?? [];
  const end = Number(length);
  return rest?.[end] === "." ? { session: rest.slice(0, end), call: rest.slice(end + 1) } : undefined;
}
