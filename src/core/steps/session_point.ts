/**
 * The `session` point: opens the session, runs the loop, and makes a result of its exit.
 *
 * @module
 */
import type { PointPolicy } from "../hooks/onion.ts";
import type { RunResult, SessionChange, SessionContext } from "../hooks/points/run.ts";
import { endStatuses, mergeSettings, policyOf, requireStatus } from "../hooks/policy.ts";
import { conclude, exitWith } from "../run/finish.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import { contextMessages } from "../run/transcript.ts";

/** The policy of `session`. */
export const sessionPolicy: PointPolicy<SessionContext, SessionChange, RunResult, EngineRun> = /* @__PURE__ */ policyOf(
  "session",
  ["settings", "context"],
  {
    core: runSession,
    derive: mergeSettings,
    finalize: /* @__PURE__ */ requireStatus("session", endStatuses),
  },
);

async function runSession(
  { run, signal, emit, vars, settings, context }: SessionContext,
  engine: EngineRun,
): Promise<RunResult> {
  const { loop, exit, control, arrivals, closing, definition } = engine;
  const scope: StepScope = { run, signal, emit, vars, engine, outside: emit };
  try {
    exit.check();
    engine.open(settings);
    if (loop.transcript.messages.length === 0) loop.append(contextMessages(context, "session"));
    if (closing !== undefined && !(closing === "lost" && completesFirst(engine))) control.abort(closing);
    await loop.advance(scope, definition.steps);
  } catch (error) {
    await exitWith(scope, error, "prompt");
  }
  if (exit.current?.status !== "paused") arrivals.close();
  return await conclude(engine);
}

/** True if a lost run first accepts its prompt, or records the results of its calls, before it ends. */
function completesFirst({ loop: { position } }: EngineRun): boolean {
  return position.at === "arrived" || position.at === "input" || position.at === "tools" || position.at === "turnEnd";
}
