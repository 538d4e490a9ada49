/**
 * Collects the events of a run over several connections, and from several processes.
 *
 * @module
 */
import { outline } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { type App, eventsOf, first, type Framed, framesOf, piecesOf, post } from "../support/requests.ts";

/** An app in a process that can be killed. */
export interface Mortal extends App {
  /** Ends it with a SIGKILL. */
  kill(): Promise<void>;
}

/** Asks for a run, and kills as soon as that says `text`. Gives what was heard. */
export async function cut(app: Mortal, prompt: string, text: string): Promise<Framed[]> {
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  let heard = await pieces.until(text);
  await app.kill();
  try {
    for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) heard += piece;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the connection is cut
  }
  return framesOf(heard);
}

/** The rest of the run of which this was heard. */
export function rest(app: App, heard: readonly Framed[]): Promise<Framed[]> {
  const headers = { "last-event-id": String(heard.length) };
  return eventsOf(app.request(`/runs/${first("run.started", heard).run}`, { headers }));
}

/** Returns the text of these events, and checks that each occurs once. */
export function told(events: readonly Framed[]): readonly string[] {
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  return outline(events);
}
