/**
 * Steps 4 and 5 of the request path, for requests that find another run. A repeated request joins it (`Idempotency-Key`); a prompt waits for its session,
 * replaces its run, or is refused (`busy`).
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../core/lib/cancellation.ts";
import { Locks, SharedWork } from "../core/lib/locks.ts";
import { stops } from "../core/position.ts";
import { SessionError } from "../core/session.ts";
import type { AdmittedStart } from "./admission.ts";
import type { Client } from "./identify.ts";
import type { LiveRuns } from "./live_runs.ts";
import type { Busy, ServerOptions } from "./options.ts";
import { invalid } from "../protocol/shape.ts";
import { ownedKey } from "../session/owned_key.ts";
import { type ClaimedKey, IdempotencyKeys, type KeyClaim } from "../session/record/idempotency_keys.ts";
import { RecordError } from "../session/record/records.ts";

// Idempotency: a request that is sent twice with one `Idempotency-Key` begins one run, which the second request joins.

/** The key that a request has sent, and its path: the same key with another path is refused. */
export interface SentKey {
  readonly key: string | undefined;
  readonly path: string;
}

/** The idempotency keys of a server. Without a store, a request is refused while the run of the same request continues. */
export class Idempotency {
  readonly #lease: number;
  readonly #keys: IdempotencyKeys | undefined;
  /** The requests whose runs begin or continue, by key, if there is no store. */
  readonly #used = new Map<string, SharedWork>();

  /** Keeps the keys of the requests of a server. */
  constructor({ lease, keep, sessions }: ServerOptions) {
    this.#lease = lease;
    this.#keys = sessions && new IdempotencyKeys(sessions.journal, { lease, expireIn: keep });
  }

  /** Claims the key of a request. Throws a `RecordError` if the request cannot join the run that has the key. */
  async claim(client: Client, start: AdmittedStart, sent: SentKey): Promise<KeyClaim> {
    const { session, content } = start;
    const key = start.key ?? sent.key;
    const unkeyed = {
      status: "claimed",
      session,
      isFirst: true,
      keep() {},
      release: () => Promise.resolve(undefined),
    } as const;
    if (key === undefined) return unkeyed;
    if (!(key.length > 0 && key.length < 256)) throw invalid("idempotency-key", "1 to 255 characters");
    if (!this.#keys) return { ...unkeyed, ...this.#claimHere(JSON.stringify([client.owner, key])) };
    const text = JSON.stringify([sent.path, ...content]);
    return await this.#keys.claim({ key, content: text, session }, client);
  }

  /** Claims a key in this process, until the run is over. */
  #claimHere(key: string): Pick<ClaimedKey, "keep" | "release"> {
    if (this.#used.get(key)?.lives) {
      throw new RecordError(
        "Cannot repeat the request: its run continues, and there is no store to join it",
        "repeated",
      );
    }
    const work = new SharedWork(this.#lease);
    this.#used.set(key, work);
    const release = () => {
      work.end();
      if (this.#used.get(key) === work) this.#used.delete(key);
    };
    return {
      keep: (run) => void run.untilOver().then(release), // it never rejects
      release: () => Promise.resolve(void release()),
    };
  }
}

// The `busy` option: what happens to a prompt if another run has its session.

/** The turn of a request to launch its run. */
export interface Turn {
  /**
   * Waits until the run that has the session is over, if `error` tells that there is one. Returns "replace" if only the next launch can stop it. Throws `error`
   * if the request cannot try again.
   */
  waitAfter(error: unknown): Promise<"replace" | undefined>;
  /** Lets the next prompt of the session follow. */
  end(): void;
}

/** The turn of a request that is refused if another run has its session. */
const refusing: Turn = { waitAfter: (error) => Promise.reject(error), end() {} };

/** The maximum number of prompts that wait for one session, unless each replaces the one before it. */
const maxWaiting = 10;

/** The maximum number of attempts to launch the run of one prompt. */
const maxAttempts = 10;

/** The prompts of a server that wait for their sessions. */
export class SessionQueue {
  readonly #runs: LiveRuns;
  /** The locks of sessions. A prompt that launches its run holds one, and those that came after it wait. */
  readonly #locks: Locks;
  /** The number of prompts that wait: for those before them, or for the run that has their session. */
  size = 0;

  /** Queues prompts that start `runs`. */
  constructor(runs: LiveRuns) {
    this.#runs = runs;
    this.#locks = new Locks(runs.lease);
  }

  /** Waits for the prompts that came before to the same session: of those that replace others, the last one wins. */
  async enter({ busy = "refuse" }: AdmittedStart, session: string, client: Client): Promise<Turn> {
    if (busy === "refuse") return refusing;
    const key = ownedKey(client.owner, session);
    const before = this.#locks.users(key, maxWaiting);
    if (busy === "queue" && before >= maxWaiting) {
      throw new SessionError(`Cannot run session "${session}": ${maxWaiting} prompts wait for it`, "busy");
    }
    const leaving = before > 0 ? cancellationOf(client.leaving) : undefined;
    let end = () => {};
    try {
      end = await this.#counted(this.#locks.take(key, leaving));
      if (leaving) checkWanted(session, client);
      const turn = promptTurn(this.#runs, { busy, session, client, end });
      return { end, waitAfter: (error) => this.#counted(turn.waitAfter(error)) };
    } catch (error) {
      end();
      throw leaving?.aborted && error === leaving.reason ? clientHasLeft(session) : error;
    }
  }

  /** Counts a prompt while it waits. */
  async #counted<T>(wait: T | Promise<T>): Promise<T> {
    this.size++;
    try {
      return await wait;
    } finally {
      this.size--;
    }
  }
}

/** A prompt that has its turn. */
interface PromptInTurn {
  readonly busy: Busy;
  readonly session: string;
  readonly client: Client;
  readonly end: () => void;
}

/** Returns the turn of a prompt, which waits for the run that has its session, or stops it. */
function promptTurn(runs: LiveRuns, { busy, session, client, end }: PromptInTurn): Turn {
  let attempts = 0;
  /** The run that had the session and was not found: it may have just ended. */
  let missed: string | undefined;

  /** Waits until the run that has the session is over. Returns its id if it was not found. Throws if it was not found before. */
  async function untilOver(error: SessionError): Promise<string | undefined> {
    const { run } = error;
    if (run === undefined) return undefined; // the session may be free by now
    const live = runs.get(run, client);
    if (live) {
      const over = withGracePeriod(live.untilOver(), cancellationOf(client.leaving), 0, () => {});
      return void await over.catch(() => {}); // if the client has left, checkWanted() throws
    }
    if (await runs.records?.untilOver(run, client, client.leaving)) return undefined;
    if (run === missed) throw error;
    return run;
  }

  /** Stops the run that has the session. Returns "replace" if only the next launch can stop it. */
  async function stopOther({ run }: SessionError): Promise<"replace" | undefined> {
    if (run === undefined) return undefined;
    const live = runs.get(run, client);
    if (!live && !runs.records) return "replace";
    await live?.abort(stops.replaced);
    await (live ?? await runs.records?.close(run, session, stops.replaced, client))?.untilOver();
    return undefined;
  }

  return {
    end,
    async waitAfter(error) {
      const isBusy = error instanceof SessionError && error.code === "busy";
      if (!isBusy || ++attempts === maxAttempts) throw error;
      let mode: "replace" | undefined;
      if (busy === "queue") missed = await untilOver(error);
      else mode = await stopOther(error);
      checkWanted(session, client);
      return mode;
    },
  };
}

/** Throws if the client has left. */
function checkWanted(session: string, client: Client): void {
  if (client.leaving.aborted) throw clientHasLeft(session);
}

function clientHasLeft(session: string): SessionError {
  return new SessionError(`Cannot run session "${session}": the client has left`, "busy");
}
