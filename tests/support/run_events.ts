/**
 * The events of a run, with fixed names for ids and times, so that a test asserts all of them.
 *
 * @module
 */
import type { Event, RunHandle } from "@jizai/jizai";

/** Returns all events of a run once it has ended. */
export async function eventsOfRun({ events, result }: Pick<RunHandle<unknown>, "events" | "result">): Promise<Event[]> {
  const [all, { run, session }] = await Promise.all([Array.fromAsync(events), result]);
  return named(all, { run, session });
}

/** Returns a JSON copy of `value` with fixed ids and milliseconds, and without the ids of requests that resume runs. */
export function named<T>(value: T, { run, session }: { readonly run: string; readonly session: string }): T {
  const uuid = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![\w-])[\w-]{22}-\d+(?![\w-])/g;
  const names = new Map([[session, "session"], [run, "run"]]);
  const text = JSON.stringify(value)
    .replace(uuid, (id) => names.get(id) ?? "uuid")
    .replace(/"ms":[\d.]+/g, `"ms":0`)
    .replace(/,"request":"[^"]*"/g, "");
  return JSON.parse(text);
}

/** Returns a line for each event: its type, and its texts and numbers. */
export function eventLines(events: readonly Event[]): string[] {
  return events.map((event) => Object.values(event).filter((value) => typeof value !== "object").join(" "));
}

/** Returns the lines of a run whose model failed after the events `shown`, and answered "Hello!" when it was asked again. */
export function startedOver(...shown: readonly string[]): string[] {
  return [
    "run.started run session false",
    "session.opened new",
    "prompt.accepted",
    "turn.started 1",
    "model.started 1 scripted",
    ...shown,
    "model.reset 1",
    "text.delta 1 0 Hello!",
    "model.finished 1 stop 2",
    "turn.finished 1",
    "session.closed",
    "run.finished done Hello! stop",
  ];
}
