/**
 * Idempotency keys: a request that is sent twice with one key begins one run. The keys are kept in the log.
 *
 * @module
 */
import { hashOf } from "../../core/lib/json.ts";
import { Locks } from "../../core/lib/locks.ts";
import { SessionError } from "../../core/session.ts";
import { UnreadableError } from "../../core/store.ts";
import type { Event } from "../../protocol/event.ts";
import { emittedForm } from "../../protocol/question.ts";
import type { Log, LogPage } from "../log.ts";
import { ownedKey } from "../owned_key.ts";
import { RecordError } from "./records.ts";
import type { EventCursor, LiveRun, Owned, Requester, RunHost } from "./run_host.ts";
import { hasEnded, isRunning, isUnrecorded, requestOf } from "./run_state.ts";

// Reading records.

/** Returns a log that throws an `UnreadableError` for a page that is damaged, so that no client reads it. */
export function readableLog(log: Log): Log {
  return {
    ...(log.deltasEvery !== undefined && { deltasEvery: log.deltasEvery }),
    ...(log.renewIn !== undefined && { renewIn: log.renewIn }),
    records: log.records,
    append: (run, addition) => log.append(run, addition),
    delete: (run) => log.delete(run),
    async read(run, after) {
      const page = await log.read(run, after);
      return page && readablePage(run, page);
    },
    async *tail(run, after, signal) {
      for await (const page of log.tail(run, after, signal)) yield readablePage(run, page);
    },
  };
}

/** Returns a page. Throws if its numbers or its lines are damaged. */
function readablePage(run: string, page: LogPage): LogPage {
  const { first, last, lines } = page;
  try {
    if (Number.isInteger(first) && Number.isInteger(last) && lines.every(isObject)) return page;
  } catch (cause) {
    throw unreadableRecord(run, cause);
  }
  throw unreadableRecord(run);
}

/** Returns true if a line is a JSON object. Throws if it is no JSON. */
function isObject(line: string): boolean {
  const value: unknown = JSON.parse(line);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unreadableRecord(run: string, cause?: unknown): UnreadableError {
  return new UnreadableError(`Cannot read the record of run "${run}": an event is damaged`, {
    subject: "record of the run",
    cause,
  });
}

/** Returns the key of a run's record in the log. */
export function recordKey(run: string, { owner }: Owned): string {
  return ownedKey(owner, run);
}

/** Reads the end of a record: a page without lines. */
export async function readEnd(log: Log, key: string): Promise<LogPage | undefined> {
  return await log.read(key, Number.MAX_SAFE_INTEGER);
}

/** Returns the last event of a record whose run has ended or paused; undefined if there is none. `end` is the end of the record. */
export async function lastEvent(log: Log, key: string, end: LogPage | undefined): Promise<Event | undefined> {
  const page = end?.ended ? await log.read(key, end.last - 1) : undefined;
  const line = page?.lines.at(-1);
  return line === undefined ? undefined : emittedForm(JSON.parse(line));
}

/** Yields the events after event `after` that are logged now, page by page; nothing if there is no such record. */
export async function* loggedPages(log: Log, key: string, after: number): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const page = await log.read(key, at);
    if (!page) return;
    yield page;
    const { first, lines, last } = page;
    at = first + lines.length - 1;
    if (lines.length === 0 || at >= last) return;
  }
}

// Idempotency keys, as entries of the log.

/** A request with an idempotency key. */
export interface KeyedRequest {
  /** The key. */
  readonly key: string;
  /** The content of the request. The same key with another content is refused. */
  readonly content: string;
  /** The run of the request, and the cursor before its first event; undefined if the request cannot begin a run. */
  readonly cursor: Required<EventCursor> | undefined;
  /** Whether the key is free again if the request fails in any way. Default: only if it is refused, or if sessions are not stored. */
  readonly released?: boolean;
}

/** The claim of a key. The first request keeps or releases it, and a repeated one joins the run after the cursor. */
export type KeyClaim = ClaimedKey | { readonly status: "repeated"; readonly cursor: Required<EventCursor> };

/** A key that a request has claimed. The same request waits until it is kept or released. */
export interface ClaimedKey {
  readonly status: "first";
  /** The cursor before the first event of the run; undefined if the request cannot begin a run. */
  readonly cursor: Required<EventCursor> | undefined;
  /** The id that is stored with the run, if there is a log. */
  readonly requestId?: string;
  /** Keeps the key, since its run has begun. */
  keep(run: LiveRun): void;
  /**
   * Releases the key, since its run could not begin. `isRefusal` is true for the error of a request that is refused: no run has begun, and none will. Returns the
   * cursor of the run if the same request has begun it in another process.
   */
  release(error: unknown, isRefusal: boolean): Promise<Required<EventCursor> | undefined> | undefined;
}

/** The log entry of a key. */
interface Claim extends Required<EventCursor> {
  /** The hash of the request's content. */
  readonly content: string;
  /** When the key was claimed, in milliseconds since 1970. */
  readonly at: number;
}

/** The second line of a key's entry: its run has begun. */
const recordedLine = "{}";

/** The beginning of the id of a key's entry. No id of a run begins with it. */
const keyPrefix = "key:";

/** True for the id of the entry of a key, which a log in memory counts apart from the events of runs. */
export function isKeyEntry(id: string): boolean {
  return id.startsWith(keyPrefix);
}

/** Recognizes requests that are sent again. */
export interface IdempotencyKeys {
  /**
   * Claims a key for the first request that has it, and finds the run of that request for the others. If the process of the first request died before the run
   * began, the next request begins it. A request that is refused leaves no key. Throws a `RecordError` if the key belongs to another request, or if the run
   * has begun and its record was deleted.
   */
  claimKey(request: KeyedRequest, requester: Requester): Promise<KeyClaim>;
  /** Whether a run has begun at the cursor, in any process. The log has a record of it then. */
  isRecorded(cursor: Required<EventCursor>, requester: Requester): Promise<boolean>;
}

/** Keeps idempotency keys in `log` for the runs of `host`. */
export function idempotencyKeys(log: Log, host: RunHost): IdempotencyKeys {
  /** Requests with one key are handled one after another. */
  const locks = new Locks(host.lease);

  /** Claims the key that the entry `id` stands for. `unlock` lets the next request with the key follow. */
  async function claim(
    id: string,
    { cursor, released, ...request }: KeyedRequest,
    requester: Requester,
    unlock: () => void,
  ): Promise<KeyClaim> {
    const content = await hashOf(request.content);
    const newClaim: Claim | undefined = cursor && { ...cursor, content, at: Date.now() };
    const addition = { after: 0, lines: [JSON.stringify(newClaim)], ended: true, owner: requester.owner, pinned: true };
    const isFirst = newClaim && await log.append(id, addition);
    const { claim, hasRecord } = isFirst ? { claim: newClaim, hasRecord: false } : await readClaim(id);
    if (!claim && !hasRecord) {
      return {
        status: "first",
        cursor,
        requestId: id,
        keep: unlock,
        release: () => void unlock(),
      };
    }
    if (claim && claim.content !== content) {
      throw new RecordError("Cannot handle the request: another request has its idempotency key", "key-reused");
    }
    if (claim && !isFirst && await isRecorded(claim, requester)) {
      if (await belongsTo(claim, requester, id)) return { status: "repeated", cursor: claim };
      throw new SessionError(`Cannot resume session "${claim.session}": it is not paused`, "not-paused");
    }
    if (hasRecord || !claim) {
      throw new RecordError("Cannot repeat the request: the record of its run has been deleted", "forgotten");
    }
    if (!isFirst && !host.hasStore && Date.now() < claim.at + host.lease) {
      throw new RecordError("Cannot repeat the request: its run may have begun in another process", "repeated");
    }
    return {
      status: "first",
      cursor: claim,
      requestId: id,
      keep() {
        requester.outlive(log.append(id, { ...addition, after: 1, lines: [recordedLine] }).catch(() => {})); // without it, the record tells
        unlock();
      },
      async release(error, isRefusal) {
        try {
          const mayBeRecorded = error instanceof SessionError && await isRecorded(claim, requester);
          if (mayBeRecorded && await belongsTo(claim, requester, id)) return claim;
          // without a store, nothing would tell the next request that no run has begun
          const isFree = released || !host.hasStore || isRefusal;
          if (isFirst && isFree) await log.delete(id).catch(() => {}); // the client receives the reason of the refusal
          return undefined;
        } finally {
          unlock();
        }
      },
    };
  }

  /**
   * Returns the claim of a key, and whether its run began: the record of the run may be gone before the key. The claim is missing if another process has
   * released it while this one began the run.
   */
  async function readClaim(id: string): Promise<{ readonly claim?: Claim; readonly hasRecord: boolean }> {
    const { first, last, lines: [line] } = await log.read(id, 0) ?? { first: 1, last: 0, lines: [] };
    return { ...(line !== undefined && first === 1 && { claim: JSON.parse(line) }), hasRecord: last > 1 };
  }

  const isRecorded: IdempotencyKeys["isRecorded"] = async ({ run, session, after }, requester) => {
    const live = host.get(run, requester);
    if ((await live?.untilReady() ?? -1) >= after) return true;
    await live?.untilOver(); // it has just paused, or could not begin
    const key = recordKey(run, requester);
    const page = await log.read(key, after);
    if (page && page.last > after) return true;
    const stored = await host.head(session, requester);
    const isKnown = isRunning(stored, run) || (hasEnded(stored, run) && !isUnrecorded(stored));
    const { owner } = requester;
    if (isKnown) await log.append(key, { after, lines: [], ended: false, owner }); // a live run continues here
    return isKnown;
  };

  /** Whether the run that began or resumed at the cursor did so for the request. The first event after a resume names its id. */
  async function belongsTo(
    { run, session, after }: Required<EventCursor>,
    requester: Requester,
    requestId: string,
  ): Promise<boolean> {
    if (after === 0) return true;
    const page = await log.read(recordKey(run, requester), after);
    const { first, lines: [started] } = page ?? { first: after + 1, lines: [] };
    if (started !== undefined) {
      return first > after + 1 || JSON.parse(started).request === requestId;
    }
    return requestOf(await host.head(session, requester)) === requestId;
  }

  return {
    isRecorded,
    async claimKey(request, requester) {
      const id = `${keyPrefix}${await hashOf(JSON.stringify([requester.owner, request.key]))}`;
      const unlock = await locks.take(id);
      try {
        const claimed = await claim(id, request, requester, unlock);
        if (claimed.status === "repeated") unlock();
        return claimed;
      } catch (error) {
        unlock();
        throw error;
      }
    },
  };
}
