/**
 * Reconciliation: the results that a log has and a store has not, because the process of the run died between the two writes.
 *
 * @module
 */
import type { CallRecord, Position, ReviewedResult, RunSnapshot } from "../../core/position.ts";
import type { Event } from "../../protocol/event.ts";
import type { CallResult } from "../../protocol/message.ts";
import type { Log } from "../log.ts";
import { loggedPages } from "./logged_pages.ts";

/** A result, as clients have read it. */
type Finished = Extract<Event, { readonly type: "tool.finished" }>;

/** The text for the model in place of a result that has no parts in the log: clients did not receive them, or there are none. */
const lostText = "Its result is not available.";

/**
 * Returns a snapshot with the events that were logged after it was saved. A call whose result is among them has this result: clients have read it, and the
 * hooks have reviewed it. What else they did with the result in that turn is lost: texts for the model, a changed input, and the end of the run.
 */
export async function reconcile(log: Log, key: string, run: RunSnapshot): Promise<RunSnapshot> {
  const { unsent, position, ...rest } = run;
  const logged = await resultsAfter(log, key, run.events);
  if (!logged) return run;
  const isUnsent = unsent && logged.last === run.events; // otherwise they were logged
  return {
    ...rest,
    ...(isUnsent && { unsent }),
    events: logged.last,
    position: fillResults(position, logged.results),
  };
}

/** Returns the results in the log after event `after`, and the number of the last event; undefined if there is no record. */
async function resultsAfter(log: Log, key: string, after: number) {
  const results: Finished[] = [];
  let end: number | undefined;
  for await (const { lines, last } of loggedPages(log, key, after)) {
    for (const line of lines) if (line.startsWith(`{"type":"tool.finished"`)) results.push(JSON.parse(line));
    end = last;
  }
  return end === undefined ? undefined : { results, last: end };
}

/** Gives the open calls of a position their logged results, in order: calls of one batch may have the same id. */
function fillResults(position: Position, results: Finished[]): Position {
  if (position.at !== "tools") return position;
  const calls = position.calls.map((record): CallRecord => {
    const { call, state } = record;
    const found = results.findIndex((event) => event.turn === position.turn && event.call === call.id);
    const [finished] = state === "done" || found < 0 ? [] : results.splice(found, 1);
    return finished ? { call, state: "done", result: reviewed(finished.result, record) } : record;
  });
  return { ...position, calls };
}

/** Returns a logged result as the run keeps it, with the note that a person changed the input. */
function reviewed(result: CallResult, record: CallRecord): ReviewedResult {
  const note = "note" in record ? record.note : undefined;
  const text = result.status === "ok" ? `It is done. ${lostText}` : lostText;
  return {
    ...result,
    ...(result.parts.length === 0 && { parts: [{ type: "text", text }] }),
    ...(note !== undefined && { context: [note] }),
  };
}
