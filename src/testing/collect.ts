/**
 * Collects the events and the result of a run, in a form that is the same in every run.
 *
 * @module
 */
import type { RunHandle } from "../core/agent.ts";
import type { RunResult } from "../core/points.ts";
import type { Event } from "../protocol/event.ts";

/** The events and the result of a run. */
export interface Collected<O = unknown> {
  /** All events, in order. */
  readonly events: readonly Event[];
  /** The result of the run. */
  readonly result: RunResult<O>;
}

/** Options of `collect()`. */
export interface CollectOptions {
  /** Whether hooks may leave messages that the engine must repair. Default: false. */
  readonly repairs?: boolean;
}

/**
 * Waits for the end of a run and returns all its events, so that a test can assert the whole sequence. Generated ids are replaced by names: the run is `run`,
 * its session `session`, and further ids are numbered in their order: `batch-1`, `error-1`, `run-1` for the run of a child. The duration of hooks is 0. Ids
 * that the caller chose stay; to resume, use `handle.session`.
 *
 * Throws an `Error` that names the middleware and the point if a hook left messages that had to be repaired.
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
  if (!repairs) { for (const event of events) throwIfRepaired(event); }
  const names = new Map([[result.run, "run"], [result.session, "session"]]);
  for (const event of events) addNames(event, names);
  return { events: renamed(events.map(withoutDuration), names), result: renamed(result, names) };
}

function throwIfRepaired(event: Event): void {
  if (event.type === "subagent.event") return throwIfRepaired(event.event);
  if (event.type !== "warning" || event.code !== "transcript.repaired") return;
  const { middleware = "a hook", point, message } = event;
  throw new Error(
    `Cannot collect the run: "${middleware}" broke the transcript at ${point}; expected valid messages, or { repairs: true }. ${message}`,
  );
}

const kinds: readonly string[] = ["run", "session", "batch", "error"];

/** Adds names for the new ids of an event. */
function addNames(event: Event, names: Map<string, string>): void {
  if (event.type === "subagent.event") return addNames(event.event, names);
  for (const [kind, id] of Object.entries(event)) {
    if (!kinds.includes(kind) || names.has(id)) continue;
    const known = [...names.values()].filter((name) => name.startsWith(`${kind}-`)).length;
    names.set(id, `${kind}-${known + 1}`);
  }
}

function withoutDuration(event: Event): Event {
  if (event.type === "subagent.event") return { ...event, event: withoutDuration(event.event) };
  return event.type === "hook.acted" ? { ...event, ms: 0 } : event;
}

/** Matches ids of `crypto.randomUUID()`, and the engine's ids of batches. */
const generatedIds = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(:\d+)?/g;

/** Returns a copy of plain data with every known id replaced, also within texts. */
function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  return rename(value) as T; // only texts are replaced

  function rename(value: unknown): unknown {
    if (typeof value === "string") {
      if (value.length < 36) return value; // shorter than an id
      return value.replace(generatedIds, (id, uuid, rest = "") => names.get(id) ?? (names.get(uuid) ?? uuid) + rest);
    }
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rename(each)]));
  }
}
