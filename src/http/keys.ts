/**
 * Keys of requests: one that is sent again is the same.
 *
 * @module
 */
import type { Context } from "hono";
import { RecordError } from "../session/record/record_error.ts";
import type { Keyed } from "../session/record/keys.ts";
import type { Place } from "../session/record/host.ts";
import type { Caller } from "./caller.ts";
import type { Form } from "./form.ts";
import { invalid } from "../protocol/shape.ts";
import { type Served, streamRecord } from "./served.ts";

/** What a request asks for. */
export interface Asked extends Pick<Keyed, "place"> {
  /** Its body, as it was read. */
  readonly body: unknown;
  /** By what it is known again, whatever key it brings. Default: the key that it brings. */
  readonly key?: string | undefined;
  /** How its response tells of the run. Default: natively. */
  readonly form?: Form | undefined;
}

/** Begins what a request asks for; where that has begun, joins it. */
export type Once = (
  c: Context,
  caller: Caller,
  asked: Asked,
  begin: (place: Required<Place> | undefined, request?: string) => Promise<Response>,
) => Promise<Response>;

/** Knows requests again by their keys. */
export function onceOf(served: Served): Once {
  const { runs } = served;
  const { records } = runs;
  /** The keys of runs that go on, where nothing is on record. */
  const using = new Set<string>();

  return async (c, caller, { place, body, key: own, form }, begin) => {
    const key = own ?? c.req.header("idempotency-key");
    if (key === undefined) return await begin(place);
    if (!(key.length > 0 && key.length < 256)) throw invalid("idempotency-key", "1 to 255 characters");
    if (records) {
      const request = { key, content: JSON.stringify([c.req.path, body]), place, released: own !== undefined };
      const join = (place: Place) => streamRecord(c, served, (leaving) => records.follow(place, caller, leaving), form);
      return await records.once(request, caller, { begin, join });
    }
    const id = JSON.stringify([caller.owner, key]);
    if (using.has(id)) {
      throw new RecordError("Cannot do this again: it goes on, and there is no record of it to join", "repeated");
    }
    using.add(id);
    const free = () => void using.delete(id);
    try {
      const response = await begin(place);
      Promise.resolve(place && runs.get(place.run, caller)?.over).then(free); // it never rejects
      return response;
    } catch (error) {
      free();
      throw error;
    }
  };
}
