/**
 * Idempotency: a request that is sent twice with one `Idempotency-Key` begins one run. With a log, the second request joins the run.
 *
 * @module
 */
import { SharedWork } from "../../core/lib/locks.ts";
import { RecordError } from "../../session/record/records.ts";
import type { KeyedActions, KeyedRequest } from "../../session/record/idempotency_keys.ts";
import type { RunPosition } from "../../session/record/run_host.ts";
import { invalid } from "../../protocol/shape.ts";
import type { Client } from "../identify.ts";
import type { LiveRuns } from "../launch/live_runs.ts";
import { isRefusal } from "../respond/error_response.ts";
import type { Launched, Responder } from "../respond/response_format.ts";

/** A request that may be sent again. */
export interface RepeatableRequest extends Pick<KeyedRequest, "position"> {
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
  begin(position: Required<RunPosition> | undefined, requestId?: string): Promise<Launched>;
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

  return ({ position, header, content, key: own }, client, actions) => {
    const key = own ?? header;
    if (key === undefined) return actions.begin(position);
    if (!(key.length > 0 && key.length < 256)) throw invalid("idempotency-key", "1 to 255 characters");
    if (records) {
      const request = { key, content: JSON.stringify(content), position, released: own !== undefined };
      return records.once(request, client, { ...actions, isRefusal });
    }
    return beginOnce(JSON.stringify([client.owner, key]), () => actions.begin(position));
  };
}
