/**
 * Collects the events of a run over several connections, and from several processes.
 *
 * @module
 */
import { outline } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { type App, eventsOf, first, type Framed, framesOf, piecesOf, post } from "../support/requests.ts";

/** A client of a process that can be killed. */
export interface KillableApp extends App {
  /** Ends the process with SIGKILL. */
  kill(): Promise<void>;
}

/** Begins a run, and kills the process as soon as an event contains `text`. Returns the received events. */
export async function cut(app: KillableApp, prompt: string, text: string): Promise<Framed[]> {
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  let received = await pieces.until(text);
  await app.kill();
  try {
    for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) received += piece;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the connection was cut
  }
  return framesOf(received);
}

/** Requests the events after these. */
export function rest(app: App, received: readonly Framed[]): Promise<Framed[]> {
  const headers = { "last-event-id": String(received.length) };
  return eventsOf(app.request(`/runs/${first("run.started", received).run}`, { headers }));
}

/** Returns the text of these events, and checks that each occurs once. */
export function linesOf(events: readonly Framed[]): readonly string[] {
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  return outline(events);
}
