/**
 * Requests that find another run: a repeated request joins it (`Idempotency-Key`), and a prompt waits for its session, replaces its run, or is refused
 * (`busy`).
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../core/lib/cancellation.ts";
import { Locks, SharedWork } from "../core/lib/locks.ts";
import { stops } from "../core/position.ts";
import { SessionError } from "../core/session.ts";
import { isRefusal } from "./error_response.ts";
import type { LiveRuns } from "./live_runs.ts";
import type { Busy } from "./options.ts";
import type { Client } from "./request.ts";
import type { Launched, Responder } from "./respond.ts";
import { invalid } from "../protocol/shape.ts";
import { ownedKey } from "../session/owned_store.ts";
import type { KeyedActions, KeyedRequest } from "../session/record/idempotency_keys.ts";
import { RecordError } from "../session/record/records.ts";
import type { EventCursor } from "../session/record/run_host.ts";

// Idempotency: a request that is sent twice with one `Idempotency-Key` begins one run. With a log, the second request joins the run.

/** A request that may be sent again. */
export interface RepeatableRequest extends Pick<KeyedRequest, "cursor"> {
  /** The key that the client sent. */
  readonly header: string | undefined;
  /** The content of the request. The same key with another content is refused. */
  readonly content: readonly unknown[];
  /** A key that identifies the request without the header. */
  readonly key?: string | undefined;
}

/** The handling of a request: the first one begins a run, and the same request joins that run later. */
export interface RepeatableActions extends Pick<KeyedActions<Responder>, "join"> {
  /** Begins or resumes a run. `requestId` is stored with the run, if there is a log. */
  begin(cursor: Required<EventCursor> | undefined, requestId?: string): Promise<Launched>;
}

/** Begins the run of a request, or joins the run that the same request has begun. */
export type Idempotency = (
  request: RepeatableRequest,
  client: Client,
  actions: RepeatableActions,
) => Promise<Responder>;

/** Returns the idempotency of a server. Without a log, a request is refused while the run of the same request continues. */
export function idempotency({ records, lease }: Pick<LiveRuns, "records" | "lease">): Idempotency {
  /** The requests whose runs begin or continue, by key, if there is no log. */
  const used = new Map<string, SharedWork>();

  async function beginOnce(id: string, begin: () => Promise<Launched>): Promise<Launched> {
    if (used.get(id)?.lives) {
      throw new RecordError("Cannot repeat the request: its run continues, and there is no log to join it", "repeated");
    }
    const work = new SharedWork(lease);
    used.set(id, work);
    const release = () => {
      work.end();
      if (used.get(id) === work) used.delete(id);
    };
    try {
      const begun = await begin();
      begun.run.untilOver().then(release); // it never rejects
      return begun;
    } catch (error) {
      release();
      throw error;
    }
  }

  return ({ cursor, header, content, key: own }, client, actions) => {
    const key = own ?? header;
    if (key === undefined) return actions.begin(cursor);
    if (!(key.length > 0 && key.length < 256)) throw invalid("idempotency-key", "1 to 255 characters");
    if (records) {
      const request = { key, content: JSON.stringify(content), cursor, released: own !== undefined };
      return records.once(request, client, { ...actions, isRefusal });
    }
    return beginOnce(JSON.stringify([client.owner, key]), () => actions.begin(cursor));
  };
}

// The `busy` option: what happens to a prompt if another run has its session.

/** A prompt that waits for its session. */
interface QueuedPrompt<T> {
  readonly cursor: Required<EventCursor>;
  readonly client: Client;
  /** The effect on the prompt if another run has the session. */
  readonly busy: Busy;
  /** Launches the run. `replace` stops the run that has the session. */
  launch(mode?: "replace"): Promise<T>;
}

/** Launches the run of a prompt when its session is free. */
export type SessionQueue = <T>(prompt: QueuedPrompt<T>) => Promise<T>;

/** The maximum number of prompts that wait for one session, unless each replaces the one before it. */
const maxWaiting = 10;

/** The maximum number of attempts to launch the run of one prompt. */
const maxAttempts = 10;

/** Returns the queue of a server. */
export function sessionQueue(runs: LiveRuns): SessionQueue {
  /** The locks of sessions. A prompt that launches its run holds one, and those that came after it wait. */
  const locks = new Locks(runs.lease);

  /** Launches the run, and tries again when the run that has the session is over. */
  async function launchWhenFree<T>({ cursor, client, busy, launch }: QueuedPrompt<T>): Promise<T> {
    let replace: "replace" | undefined;
    let missed: string | undefined;
    for (let attempt = 1;; attempt++) {
      try {
        return await launch(replace);
      } catch (error) {
        const isBusy = error instanceof SessionError && error.code === "busy" && error.run !== cursor.run;
        if (!isBusy || attempt === maxAttempts) throw error;
        if (busy === "queue") missed = await untilOver(error, client, missed);
        else replace = await stopOther(error, cursor.session, client);
        await checkWanted(cursor, client);
      }
    }
  }

  /** Throws if the client has left, or if a repetition of the request has launched the run meanwhile. */
  async function checkWanted(cursor: Required<EventCursor>, client: Client): Promise<void> {
    if (!client.leaving.aborted && !await runs.records?.hasBegun(cursor, client)) return;
    throw clientHasLeft(cursor);
  }

  /** Waits until the run that has the session is over. Returns its id if it was not found: it may have just ended. Throws if it was not found before. */
  async function untilOver(error: SessionError, client: Client, missed?: string): Promise<string | undefined> {
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
  async function stopOther({ run }: SessionError, session: string, client: Client): Promise<"replace" | undefined> {
    if (run === undefined) return undefined;
    const live = runs.get(run, client);
    if (!live && !runs.records) return "replace";
    await live?.abort(stops.replaced);
    await (live ?? await runs.records?.close(run, session, stops.replaced, client))?.untilOver();
    return undefined;
  }

  /** Launches the run after the prompts that came before it: of those that replace others, the last one wins. */
  async function enqueue<T>(prompt: QueuedPrompt<T>): Promise<T> {
    const { cursor, client, busy } = prompt;
    const key = ownedKey(client.owner, cursor.session);
    const before = locks.users(key, maxWaiting);
    if (busy === "queue" && before >= maxWaiting) {
      throw new SessionError(`Cannot run session "${cursor.session}": ${maxWaiting} prompts wait for it`, "busy");
    }
    const leaving = before > 0 ? cancellationOf(client.leaving) : undefined;
    try {
      return await locks.hold(key, leaving, async () => {
        if (leaving) await checkWanted(cursor, client);
        return await launchWhenFree(prompt);
      });
    } catch (error) {
      throw leaving?.aborted && error === leaving.reason ? clientHasLeft(cursor) : error;
    }
  }

  return (prompt) => prompt.busy === "refuse" ? prompt.launch() : enqueue(prompt);
}

function clientHasLeft({ run, session }: Required<EventCursor>): SessionError {
  return new SessionError(`Cannot run session "${session}": the client has left`, "busy", run);
}
