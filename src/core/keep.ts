/**
 * What is kept of a run: its session is saved as it goes, and a paused run goes on where its record ends.
 *
 * @module
 */
import type { RunRecord } from "../protocol/session.ts";
import type { Live } from "./live.ts";
import type { Store } from "./store.ts";

/** Where a session is kept, and as of which version. */
export interface Keeping {
  readonly store: Store;
  readonly version: number;
  /** Whether it is kept as it goes; otherwise only where the run pauses. */
  readonly always: boolean;
}

/** Saves the session; gives whether it is still this run's. */
export async function save(live: Live, status: RunRecord["status"] | "ended" = "running"): Promise<boolean> {
  const { keeping, session: id, transcript: { messages } } = live;
  if (!keeping || !(keeping.always || status === "paused")) return true;
  const { store, version } = keeping;
  const saved = await store.save({ id, version, messages, ...(status !== "ended" && { run: recordOf(live, status) }) });
  if (saved === undefined) return false;
  live.keeping = { store, version: saved, always: true };
  return true;
}

function recordOf(
  { id, startedAt, until, usage, used, state, pending, transcript, events }: Live,
  status: RunRecord["status"],
): RunRecord {
  const { messages, before } = transcript;
  const since = messages.findIndex((message, index) => message !== before[index]);
  return {
    id,
    status,
    startedAt,
    ...(status === "running" && until < Infinity && { until }),
    events: status === "paused" ? events.count + 1 : events.count, // run.paused is still to come
    usage,
    used: { ...used },
    before: since < 0 ? messages.length : since,
    state: [...state],
    ...(pending && { pending }),
  };
}

/** Goes on where a record ends. */
export function restore(live: Live, { id, startedAt, events, usage, used, before, state, pending }: RunRecord): void {
  Object.assign(live, { id, startedAt, usage, used: { ...used } });
  live.events.count = events;
  live.transcript.before = live.transcript.messages.slice(0, before);
  for (const [name, value] of state) live.state.set(name, value);
  const { prompt, questions, ...where } = pending ?? { questions: [] };
  live.prompt = prompt;
  live.pending = { ...where, questions: questions.filter(({ callId }) => callId !== undefined) };
}
