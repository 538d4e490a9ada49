/**
 * Idempotency: a request that is sent twice with one `Idempotency-Key` begins one run. With a log, the second request joins the run.
 *
 * @module
 */
import { RecordError } from "../../session/record/record_error.ts";
import type { KeyedRequest } from "../../session/record/idempotency_keys.ts";
import type { RunPosition } from "../../session/record/run_host.ts";
import type { Records } from "../../session/record/run_records.ts";
import { invalid } from "../../protocol/shape.ts";
import type { Client } from "../identify.ts";
import type { Joined, Launched } from "../launch/launch.ts";

/** A request that may be sent again. */
export interface RepeatableRequest extends Pick<KeyedRequest, "position"> {
  /** The key that the client sent. */
  readonly header: string | undefined;
  /** The content of the request. The same key with another content is refused. */
  readonly content: readonly unknown[];
  /** A key that identifies the request without the header. */
  readonly key?: string | undefined;
}

/** Launches the run of a request, or joins the run that the same request has launched. */
export type Idempotency = (
  request: RepeatableRequest,
  client: Client,
  launch: (position: Required<RunPosition> | undefined, request?: string) => Promise<Launched>,
) => Promise<Launched | Joined>;

/** Returns the idempotency of a server. Without a log, a request is refused while the run of the same request continues. */
export function idempotency(records: Records | undefined): Idempotency {
  /** The keys of runs that continue, if there is no log. */
  const used = new Set<string>();

  return ({ position, header, content, key: own }, client, launch) => {
    const key = own ?? header;
    if (key === undefined) return launch(position);
    if (!(key.length > 0 && key.length < 256)) throw invalid("idempotency-key", "1 to 255 characters");
    if (records) {
      const request = { key, content: JSON.stringify(content), position, released: own !== undefined };
      const join = (position: RunPosition) => Promise.resolve({ position });
      return records.once<Launched | Joined>(request, client, { begin: launch, join });
    }
    return launchOnce(used, JSON.stringify([client.owner, key]), () => launch(position));
  };
}

async function launchOnce(used: Set<string>, id: string, launch: () => Promise<Launched>): Promise<Launched> {
  if (used.has(id)) {
    throw new RecordError("Cannot repeat the request: its run continues, and there is no log to join it", "repeated");
  }
  used.add(id);
  const release = () => void used.delete(id);
  try {
    const launched = await launch();
    launched.run.over.then(release); // it never rejects
    return launched;
  } catch (error) {
    release();
    throw error;
  }
}
