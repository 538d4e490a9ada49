/**
 * The form in which a run saves its session.
 *
 * @module
 */
import type { AgentDefinition } from "../agent/definition.ts";
import type { EngineRun } from "../run/run.ts";
import type { Unsaved } from "./session.ts";

/** Returns the session with the run as it is now, or as it was before a start that is undone. */
export function savedSession(run: EngineRun): Unsaved {
  const { session: id, rules, sessionState, claimed: { owner }, loop: { transcript: { messages, compactions } } } = run;
  return restoredSession(run) ?? savedForm(run.definition, {
    id,
    messages,
    run: run.snapshot(),
    ...(owner !== undefined && { owner }),
    ...(compactions > 0 && { compactions }),
    ...(sessionState.size > 0 && { state: [...sessionState] }),
    ...(rules.length > 0 && { rules }),
  });
}

/** Returns the session as it was before a start that is undone, if a run had it. A run that was to be closed is not restored. */
export function restoredSession({ control, claimed: { stored, closing } }: EngineRun): Unsaved | undefined {
  if (!control.stop.undo || !stored || closing !== undefined) return undefined;
  const { version: _, lease, ...session } = stored;
  return { ...session, ...(lease?.released && { lease }) }; // it was not lost before
}

/** True if the start of a run is undone in a session that the run has created: nothing of it is kept. */
export function leavesNothing({ control, claimed: { version } }: EngineRun): boolean {
  return control.stop.undo && version.n === 0;
}

/** Returns a session as the middleware of an agent lets the store keep it. */
export function savedForm({ savers }: Pick<AgentDefinition<never>, "savers">, session: Unsaved): Unsaved {
  return savers.reduce((form, save) => save(form), session);
}
