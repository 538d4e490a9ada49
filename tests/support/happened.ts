/**
 * What happened in a run, so that a test asserts all of it: what differs from run to run has a name instead.
 *
 * @module
 */
import type { Event, RunHandle } from "@jizai/jizai";

/** All events of a run, once it has ended. */
export async function happened({ events, result }: Pick<RunHandle<unknown>, "events" | "result">): Promise<Event[]> {
  const [all, { run, session }] = await Promise.all([Array.fromAsync(events), result]);
  return named(all, { run, session });
}

/** `value` as JSON, its ids and milliseconds named, and without the requests that runs go on with. */
export function named<T>(value: T, { run, session }: { readonly run: string; readonly session: string }): T {
  const uuid = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
  const names = new Map([[session, "session"], [run, "run"]]);
  const text = JSON.stringify(value)
    .replace(uuid, (id) => names.get(id) ?? "uuid")
    .replace(/"ms":[\d.]+/g, `"ms":0`)
    .replace(/,"request":"[^"]*"/g, "");
  return JSON.parse(text);
}

/** Each event in one line: its type, and every text and number it carries. */
export function told(events: readonly Event[]): string[] {
  return events.map((event) => Object.values(event).filter((value) => typeof value !== "object").join(" "));
}

/** What is told of a run whose model had `shown` this when it failed, and then was asked again and said "Hello!". */
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
    "run.finished done Hello!",
  ];
}
