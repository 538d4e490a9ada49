/**
 * Steering: what a person says to a run while it runs, and how it is asked to come to an end.
 *
 * @module
 */
import type { Live } from "./live.ts";
import type { Scope } from "./scope.ts";

/** Says to the model what waits to be said. Gives whether there was anything. */
export function steer(live: Live, { emit }: Scope): boolean {
  const messages = live.inbox.take();
  if (messages.length === 0) return false;
  live.stopping = false;
  live.transcript.push(...messages);
  live.events.announce(emit, { type: "steering.injected", messages });
  return true;
}

/** What the model is told that is to answer once more and end. */
export const lastWords = "Finish now: answer with what you have, without tools.";
