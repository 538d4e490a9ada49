/**
 * Runs that a hook refused.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";

/** Returns the reason why a hook refused or cancelled the run, if it gave no answer in place of the model's; undefined for another end. */
export function refusalOf(end: Event): string | undefined {
  if (end.type !== "run.finished" || end.status !== "cancelled" || end.text !== "") return undefined;
  return end.reason ?? "The prompt was refused.";
}
