/**
 * Names of responses, for their ids.
 *
 * @module
 */
import type { EventOf } from "../encoder.ts";

/**
 * Returns the name of the response that begins with this event: the id of its run. A run that pauses has several responses, so the later ones are also named by
 * the number of the event.
 */
export function responseName({ run, resumed }: EventOf<"run.started">, number: number): string {
  return resumed ? `${run}.${number}` : run;
}
