/**
 * The collector: everything that happened in a run, in a form that is the same every time.
 *
 * @module
 */
import type { RunHandle } from "../core/agent/run_handle.ts";
import type { RunResult } from "../core/hooks/points/run.ts";
import type { Event } from "../protocol/event.ts";

/** A run, from its first event to how it ended. */
export interface Collected<O = unknown> {
  /** All that was emitted, in order. */
  readonly events: readonly Event[];
  /** How it ended. */
  readonly result: RunResult<O>;
}

/** How a run is collected. */
export interface CollectOptions {
  /** Whether a hook may leave messages that the engine has to repair. Default: false. */
  readonly repairs?: boolean;
}

/**
 * Waits for a run to end and gives all of its events, so that whole sequences can be compared. Ids that the engine made up are named after what
 * they identify: the run is `run`, its session `session`, and further ones are numbered as they appear: `batch-1`, `error-1`, `run-1` for the run of a child.
 * The time that a hook took is 0. Ids that the caller chose stay as they are; to resume, use `handle.session`.
 *
 * Throws an `Error` that names middleware and point where a hook left messages that had to be repaired.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { collect, scripted } from "@jizai/jizai/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { events, result } = await collect(agent({ model: scripted("Hello!") }).run("Hi"));
 * assertEquals(events[0], { type: "run.started", run: "run", session: "session", resumed: false });
 * assertEquals(result.text, "Hello!");
 * ```
 */
export async function collect<O>(
  handle: Pick<RunHandle<O>, "events" | "result">,
  { repairs = false }: CollectOptions = {},
): Promise<Collected<O>> {
  const events: Event[] = [];
  for await (const event of handle.events) events.push(event);
  const result = await handle.result;
  if (!repairs) { for (const event of events) refuseRepair(event); }
  const names = new Map([[result.run, "run"], [result.session, "session"]]);
  for (const event of events) learn(event, names);
  return { events: renamed(events.map(timeless), names), result: renamed(result, names) };
}

function refuseRepair(event: Event): void {
  if (event.type === "subagent.event") return refuseRepair(event.event);
  if (event.type !== "warning" || event.code !== "transcript.repaired") return;
  const { middleware = "a hook", point, message } = event;
  throw new Error(
    `Cannot accept what "${middleware}" left at ${point}. ${message}. Where that is meant: { repairs: true }`,
  );
}

const kinds: readonly string[] = ["run", "session", "batch", "error"];

/** Names the ids that an event brings. */
function learn(event: Event, names: Map<string, string>): void {
  if (event.type === "subagent.event") return learn(event.event, names);
  for (const [kind, id] of Object.entries(event)) {
    if (!kinds.includes(kind) || names.has(id)) continue;
    const known = [...names.values()].filter((name) => name.startsWith(`${kind}-`)).length;
    names.set(id, `${kind}-${known + 1}`);
  }
}

function timeless(event: Event): Event {
  if (event.type === "subagent.event") return { ...event, event: timeless(event.event) };
  return event.type === "hook.acted" ? { ...event, ms: 0 } : event;
}

/** Matches the ids that `crypto.randomUUID()` makes, and the engine's ids of batches. */
const madeUp = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(:\d+)?/g;

/** Plain data with every known id replaced, also within texts. */
function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  return rename(value) as T; // it keeps its shape

  function rename(value: unknown): unknown {
    if (typeof value === "string") {
      return value.replace(madeUp, (id, uuid, rest = "") => names.get(id) ?? (names.get(uuid) ?? uuid) + rest);
    }
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rename(each)]));
  }
}
