/**
 * The sessions of an agent or a server without a store: they are kept in memory, as JSON, so that no caller can change what is stored.
 *
 * @module
 */
import type { Message } from "../../../protocol/message.ts";
import { promiseTry } from "../../../stream/promise_try.ts";
import type { LeasedSession, Session } from "../session.ts";
import type { RunStore } from "../store.ts";
import { type BoundedCache, boundedCache, type Bounds, boundsOf, type EntryOptions } from "./bounded_cache.ts";
import { writeInMemory } from "./writer.ts";

/** A session in memory. */
interface Stored {
  readonly version: number;
  /** The messages as JSON. */
  readonly texts: string[];
  /** The number of characters of `texts`. */
  readonly length: number;
  /** The messages of `texts` while a run has the session: each message is serialized once, since a transcript grows at its end. */
  readonly messages: readonly Message[];
  /** The session without its messages, as JSON. */
  readonly rest: string;
  readonly entry: EntryOptions;
}

/** Creates a bounded cache of sessions. */
export function sessionCache(bounds: Partial<Bounds> = {}): BoundedCache<Stored> {
  return boundedCache(boundsOf(bounds, Infinity));
}

/** Returns the operations of the runs whose sessions are in `sessions`. Default: a cache of their own. */
export function sessionsIn(sessions: BoundedCache<Stored> = sessionCache()): RunStore {
  return {
    writer: writeInMemory,
    load(id) {
      const stored = sessions.get(id);
      return Promise.resolve(
        stored && { ...JSON.parse(stored.rest), messages: JSON.parse(`[${stored.texts.join()}]`) },
      );
    },
    save: (session) => promiseTry(() => saveIn(sessions, session)),
    touch: (session, end) => promiseTry(() => touchIn(sessions, session, end)),
  };
}

/** Saves a session as `Store.save()` does. */
export function saveIn(sessions: BoundedCache<Stored>, { messages, ...session }: Session): number | undefined {
  const { id, run, owner, lease } = session;
  const stored = sessions.get(id);
  if ((stored?.version ?? 0) !== session.version) return undefined;
  const version = session.version + 1;
  const rest = JSON.stringify({ ...session, version });
  const { texts, added, length } = serialize(messages, stored);
  const inUse = until(run && !run.exit ? lease?.until ?? Infinity : 0);
  const entry = { bytes: 2 * (length + rest.length), owner, pinned: run !== undefined, inUse };
  sessions.put(id, { version, texts, length, messages: run ? messages : [], rest, entry }, entry);
  texts.push(...added); // only once it is known to fit
  return version;
}

/** Moves the end of a lease as `Store.touch()` does. */
export function touchIn(sessions: BoundedCache<Stored>, { id, version, lease }: LeasedSession, end: number): boolean {
  const stored = sessions.get(id);
  if (stored?.version !== version || !lease) return false;
  const { lease: held, ...rest }: Omit<Session, "messages"> = JSON.parse(stored.rest);
  if (held?.until !== lease.until) return false;
  const entry = { ...stored.entry, inUse: until(end) };
  sessions.put(id, { ...stored, rest: JSON.stringify({ ...rest, lease: { ...held, until: end } }), entry }, entry);
  return true;
}

/** Returns a function that returns true until a time. It is kept with a session, so it must not keep anything else. */
export function until(time: number): () => boolean {
  return () => time > Date.now();
}

/** Returns the messages as JSON: those that were stored before, in a list that can be extended, and those to add. `length` counts the characters of both. */
function serialize(
  messages: readonly Message[],
  stored?: Stored,
): { readonly texts: string[]; readonly added: string[]; readonly length: number } {
  const isBeginning = stored?.texts.length === stored?.messages.length &&
    stored?.messages.every((message, index) => message === messages[index]);
  const { texts, length }: Pick<Stored, "texts" | "length"> = stored && isBeginning ? stored : { texts: [], length: 0 };
  const added = messages.slice(texts.length).map((message) => JSON.stringify(message));
  return { texts, added, length: added.reduce((sum, text) => sum + text.length, length) };
}
