/**
 * Idempotency keys: a request that is sent twice with one key begins one run. Each key is a journal that is not listed.
 *
 * @module
 */
import { RepeatedRequest } from "../../core/claim.ts";
import { type Journal, journalKey, type Mark } from "../../core/journal.ts";
import { hashOf } from "../../core/lib/json.ts";
import { Locks } from "../../core/lib/locks.ts";
import { withRetries } from "../../core/store.ts";
import { RecordError } from "./records.ts";
import type { EventCursor, LiveRun, Requester } from "./run_host.ts";

/** A request with an idempotency key. */
interface KeyedRequest {
  /** The key. */
  readonly key: string;
  /** The content of the request. The same key with another content is refused. */
  readonly content: string;
  /** The session of the request. */
  readonly session: string;
}

/** The claim of a key. The first request keeps or releases it, and a repeated one joins the run after the cursor. */
export type KeyClaim = ClaimedKey | { readonly status: "repeated"; readonly cursor: EventCursor };

/** A key that a request has claimed. The same request waits until it is kept or released. */
export interface ClaimedKey {
  readonly status: "claimed";
  /** The session of the run: that of the first request with the key. */
  readonly session: string;
  /** True if no request before has had the key. */
  readonly isFirst: boolean;
  /** The id that is stored with the run, by which a repeated request finds it; undefined without a key. */
  readonly requestId?: string;
  /** Keeps the key, since its run has begun. */
  keep(run: LiveRun): void;
  /**
   * Releases the key, since its run could not begin. `isRefusal` is true for the error of a request that is refused: no run has begun, and none will. Returns the
   * cursor of the run if the same request has begun it in another process.
   */
  release(error: unknown, isRefusal: boolean): Promise<EventCursor | undefined>;
}

/** The content of a key's journal, as its head. */
interface StoredKey {
  /** The hash of the request's content. */
  readonly content: string;
  readonly session: string;
  /** The run of the request, once it has begun. */
  readonly begun?: EventCursor;
}

/** Keeps idempotency keys in a journal. */
export class IdempotencyKeys {
  readonly #journal: Journal;
  readonly #expireIn: number;
  /** Requests with one key are handled one after another. */
  readonly #locks: Locks;

  /** Keeps keys for `expireIn` milliseconds. `lease` is the longest that a request waits for another one with its key. */
  constructor(journal: Journal, { lease, expireIn }: { readonly lease: number; readonly expireIn: number }) {
    this.#journal = journal;
    this.#expireIn = expireIn;
    this.#locks = new Locks(lease);
  }

  /**
   * Claims a key for the first request that has it, and finds the run of that request for the others. If the first request has failed or its process died before the
   * run began, the next request begins one, also with another content. A request that is refused leaves no key. Throws a `RecordError` if the key belongs to
   * another request.
   */
  async claim(request: KeyedRequest, requester: Requester): Promise<KeyClaim> {
    const id = journalKey(requester.owner, `\0key${request.key}`); // no session has such a name
    const unlock = await this.#locks.take(id);
    try {
      const claimed = await this.#claim(id, request, requester, unlock);
      if (claimed.status === "repeated") unlock();
      return claimed;
    } catch (error) {
      unlock();
      throw error;
    }
  }

  async #claim(
    id: string,
    { content: text, session }: KeyedRequest,
    requester: Requester,
    unlock: () => void,
  ): Promise<KeyClaim> {
    const asked: StoredKey = { content: await hashOf(text), session };
    const isReused = () =>
      new RecordError("Cannot handle the request: another request has its idempotency key", "key-reused");
    let mark = { holder: crypto.randomUUID(), n: 1 };
    let isFirst = await this.#store(id, requester, undefined, mark, asked);
    let known = asked;
    let isReplacing = false;
    while (!isFirst) {
      const found = await this.#read(id);
      if (!found) break;
      known = found.key;
      if (known.content === asked.content) {
        if (known.begun) return { status: "repeated", cursor: known.begun };
        break;
      }
      if (known.begun) throw isReused();
      mark = { ...mark, n: found.mark.n + 1 };
      isFirst = isReplacing = await this.#store(id, requester, found.mark, mark, known = asked); // the other request has failed, unless its run tells
    }
    const note = async (run: LiveRun): Promise<void> => {
      const after = await run.untilReady();
      if (!isFirst || after === undefined) return;
      const cursor = { run: run.id, session: run.session, after };
      await this.#store(id, requester, mark, { ...mark, n: mark.n + 1 }, { ...known, begun: cursor });
    };
    return {
      status: "claimed",
      session: known.session,
      isFirst,
      requestId: id,
      keep(run) {
        requester.outlive(note(run).then(unlock, unlock)); // if it is not noted, a repeated request finds the run in its session
      },
      release: async (error, isRefusal) => {
        try {
          if (error instanceof RepeatedRequest) {
            if (isReplacing) throw isReused();
            const { run, after } = error;
            return { run, session: known.session, after };
          }
          if (isFirst && isRefusal) await this.#journal.delete(id).catch(() => {}); // the client receives the reason of the refusal
          return undefined;
        } finally {
          unlock();
        }
      },
    };
  }

  /** Stores the content of a key. Resolves to false if another request has stored it. */
  async #store(
    id: string,
    { owner }: Requester,
    from: Mark | undefined,
    to: Mark,
    key: StoredKey,
  ): Promise<boolean> {
    const head = JSON.stringify(key);
    const change = { run: 0, state: "over", base: 1, waiting: 0, head, last: 0, entries: [] } as const;
    const created = !from && { created: { owner, expireIn: this.#expireIn } };
    const outcome = await withRetries(() => this.#journal.append(id, { from, to, change, ...created }));
    return outcome?.stored === true;
  }

  async #read(id: string): Promise<{ readonly key: StoredKey; readonly mark: Mark } | undefined> {
    const { head, mark } = await this.#journal.head(id) ?? {};
    return head === undefined || !mark ? undefined : { key: JSON.parse(head), mark };
  }
}
