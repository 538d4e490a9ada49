/**
 * The opening of a run: it claims its session, and prepares the engine.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { expectJson } from "../lib/json_value.ts";
import { rulesOf, validateEdits } from "../persistence/answers.ts";
import { claim } from "../persistence/claim.ts";
import { SessionError } from "../persistence/session_error.ts";
import type { SessionWriter } from "../persistence/writer.ts";
import { EngineRun } from "../run/run.ts";
import type { Beginning } from "./options.ts";
import { orRefuse, reviewAnswers } from "./review.ts";

/** Closes the run that has the session, with a reason. */
export type CloseOther = (reason: string) => Promise<{ readonly error?: unknown }>;

/** Claims the session. A run that has it and must be closed is closed before. */
export async function open(beginning: Beginning, closeOther: CloseOther): Promise<EngineRun> {
  const { definition, options, session } = beginning;
  const busy = () => new SessionError(`Cannot run session "${session}": another run took it`, "busy");
  if (options.compact && !definition.steps.compact) {
    const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
    throw new SessionError(`Cannot compact session "${session}": ${expected}`, "invalid");
  }
  for (const answer of options.answers ?? []) {
    if (answer.type === "approve") expectJson(`Cannot resume session "${session}" with an edited input`, answer.input);
  }
  let claimed = await claim(beginning);
  if ("close" in claimed) {
    const { error } = await closeOther(claimed.close);
    if (error !== undefined && !(error instanceof SessionError)) throw error; // the session would stay busy for ever
    claimed = await claim({ ...beginning, options: { ...options, busy: "refuse" } });
    if ("close" in claimed) throw busy();
  }
  options.check?.(beginning, claimed);
  const run = new EngineRun(beginning, claimed, (run) => writerOf(beginning, run));
  if (claimed.rollback) run.control.rollBack();
  if (!options.parent && claimed.resumed) await orRefuse(`Cannot resume run "${run.id}"`, reviewGiven(run, beginning));
  if (!await run.writer.claim()) throw busy();
  return run;
}

/** Opens the writer of the session. Without a named session, and in a child, only a pause is saved; the memory of an agent keeps the end too. */
function writerOf({ options: { store, session, parent, lease = 30_000 } }: Beginning, run: EngineRun): SessionWriter {
  if (!store.writer) {
    throw new TypeError('Cannot use the store: expected durable(store) of "@jizai/jizai/session/durable"');
  }
  return store.writer(store, run as never, { always: session !== undefined && !parent, lease }); // the writers of this package read runs
}

/** Runs the `input` hooks for what a run continues with. Nothing is stored before. Their events are added to `early`. */
async function reviewGiven(run: EngineRun, { definition, options, early }: Beginning): Promise<void> {
  const { claimed: { start: { answers }, given }, rules, loop } = run;
  const scope = { ...run.scope(), emit: (event: Event) => void early.push(event) };
  const accepted = await reviewAnswers(run, scope, given);
  await options.review?.(run, scope);
  if (definition.reviewsInput) await validateEdits(loop.transcript, accepted, [...definition.tools, ...run.tools]);
  loop.receive([...answers.slice(0, answers.length - given.length), ...accepted]);
  rules.push(...accepted.flatMap(rulesOf));
}
