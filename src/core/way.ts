/**
 * How far a run is on its way: what is kept of that, and how a run goes on from there that paused, or whose process died.
 *
 * @module
 */
import type { OpenBatch, Pending, RunRecord, Session } from "../protocol/session.ts";
import type { Live } from "./live.ts";

/** How far a run is on its way. */
export type Way =
  & Pick<Session, "messages" | "earlier">
  & Pick<RunRecord, "used" | "before" | "pending" | "inbox" | "finishing">;

/** How far a run is now. */
export function wayOf(live: Live): Way {
  const { used, transcript: { messages, earlier, began: before }, turning, inbox: { waiting, finishing } } = live;
  const pending = pendingOf(live);
  const anew = turning === "begun" && !pending?.batch;
  return {
    messages,
    ...(earlier !== undefined && { earlier }),
    used: { ...used, turns: used.turns - (anew ? 1 : 0) },
    before,
    ...(pending && { pending }),
    ...(waiting.length > 0 && { inbox: waiting }),
    ...(finishing && { finishing }),
  };
}

/** Where a run would go on. */
function pendingOf(live: Live): Pending | undefined {
  const { pending, prompt, untold, batch, answered, compacting, turning, stopping } = live;
  const where = {
    ...(prompt && { prompt }),
    ...(untold && { untold }),
    ...(compacting && { compact: compacting }),
    ...(batch && { batch: openBatch(batch) }),
    ...(answered.length > 0 && { answered }),
    ...(turning === "done" && { turned: true }),
    ...(stopping && { stopping }),
  };
  return pending || Object.keys(where).length > 0 ? { questions: [], ...pending, ...where } : undefined;
}

/** A batch that is being run. */
export interface RunningBatch {
  readonly message: OpenBatch["message"];
  readonly results: ReadonlyMap<string, OpenBatch["results"][number]>;
  readonly started: ReadonlyMap<string, NonNullable<OpenBatch["started"]>[number]>;
  readonly children: ReadonlyMap<string, Session>;
}

function openBatch({ message, results, started, children }: RunningBatch): OpenBatch {
  return {
    message,
    results: [...results.values()],
    started: [...started.values()],
    ...(children.size > 0 && { children: Object.fromEntries(children) }),
  };
}

/** Goes on where a record ends. */
export function restore(live: Live, record: RunRecord): void {
  const { id, startedAt, events, usage, used, before, state, pending, inbox = [], finishing, mail = [] } = record;
  Object.assign(live, { id, startedAt, usage, used: { ...used } });
  live.events.count = events;
  live.transcript.mark(before);
  for (const [name, value] of state) live.state.set(name, value);
  const { prompt, untold = false, compact, answered = [], turned, stopping = false, ...where } = pending ??
    { questions: [] };
  live.prompt = prompt;
  live.untold = untold;
  live.compacting = compact;
  live.answered = answered;
  live.pending = where;
  live.turning = turned ? "done" : undefined;
  live.stopping = stopping;
  live.inbox.waiting = inbox;
  if (finishing) live.inbox.finish();
  live.inbox.receive(mail);
  live.resumed = true;
}
