/**
 * The life of a run that `open()` opens: it works inside the `session` hooks until it has an exit, and gives the session back.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { settingsOf } from "../agent/settings.ts";
import type { PointPolicy } from "../hooks/onion.ts";
import type { RunResult, SessionChange, SessionContext } from "../hooks/points/run.ts";
import { endStatuses, mergeSettings, policyOf, requireStatus } from "../hooks/policy.ts";
import { refused } from "../hooks/results.ts";
import { withGracePeriod } from "../lib/cancellation.ts";
import { restoredSession, savedForm, savedSession } from "../persistence/saved_session.ts";
import { SessionError } from "../persistence/session_error.ts";
import { cleanUp } from "../run/failure.ts";
import { conclude, exitWith, lastEvent, openCalls } from "../run/finish.ts";
import type { Position } from "../run/position.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import { contextMessages } from "../run/transcript.ts";
import type { Beginning } from "./options.ts";

/** The grace periods that the hooks of an aborted run have in all: for a tool, the hooks after it, and the cleanup. */
const graceFactor = 3;

/** Runs a run from its opening to its last event. Never rejects. */
export async function live(
  beginning: Beginning,
  ready: Promise<EngineRun>,
  opened: Promise<unknown>,
): Promise<RunResult> {
  const { control, arrivals, sink, options, session } = beginning;
  let run: EngineRun;
  try {
    run = await ready;
  } catch (error) {
    control.close();
    arrivals.close();
    sink.close();
    const messages = error instanceof SessionError ? error.messages : [];
    return { ...refused("session"), status: "failed", run: options.run ?? "", session, messages, error };
  }
  await opened; // callers that wait for it continue before the first event
  try {
    return await end(run, await work(run, beginning));
  } finally {
    const { handOver } = control.stop;
    if (handOver) await handOver;
    else {
      run.writer.close?.();
      run.close();
    }
  }
}

/** Runs the `session` onion. */
async function work(engine: EngineRun, { options, early }: Beginning): Promise<RunResult> {
  const { id: run, session, events, loop, control, arrivals, definition, writer } = engine;
  const { claimed: { start: { request }, resumed, closing, pause } } = engine;
  const scope = engine.scope();
  try {
    events.gather();
    const source = loop.transcript.messages.length > 0 || resumed ? "resume" : "new";
    const before = { ...(request !== undefined && { request }), ...(resumed && { usage: engine.usage }) };
    events.emit({ type: "run.started", run, session, resumed, ...before });
    events.emit({ type: "session.opened", source });
    for (const event of early) events.emit(event);
    const left = resumed && !pause ? await writer.takeOver?.() : undefined;
    if (left) return left;
    if (closing !== undefined) {
      const cause = { reason: closing, source: "stop" } as const;
      await engine.work.cleanUp(() => cleanUp(engine, cause, openCalls(engine, loop.position))); // there is one cleanup
    }
    const given = { limits: engine.limits, tools: options.tools, inherited: options.parent?.settings };
    const opening = settingsOf(definition, scope, given).then((settings) =>
      definition.onions.session(
        { ...scope, session, source, resumed, ...arrivedPrompt(loop.position), settings, context: [] },
        engine,
        policy,
      )
    );
    return await withGracePeriod(opening, control, graceFactor * engine.limits.grace, () => {
      events.warn("hook.abandoned", "A hook did not stop when its signal aborted.");
    });
  } catch (error) {
    await exitWith({ ...scope, engine }, error, "session");
    arrivals.close();
    return await conclude(engine);
  }
}

const policy: PointPolicy<SessionContext, SessionChange, RunResult, EngineRun> = /* @__PURE__ */ policyOf(
  "session",
  ["settings", "context"],
  {
    core: runSession,
    derive: mergeSettings,
    finalize: /* @__PURE__ */ requireStatus("session", endStatuses),
  },
);

/** The core of `session`: runs the loop, and makes a result of its exit. */
async function runSession(
  { run, signal, emit, vars, settings, context }: SessionContext,
  engine: EngineRun,
): Promise<RunResult> {
  const { loop, exit, control, arrivals, claimed: { closing }, definition } = engine;
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

/** Returns the prompt that was not accepted yet, as a field of the context of `session`. */
function arrivedPrompt(position: Position): Pick<SessionContext, "prompt"> {
  const prompt = position.at === "arrived" || position.at === "input" ? position.messages.at(-1) : undefined;
  return prompt?.role === "user" ? { prompt } : {};
}

/** Emits the last events, and gives the session back. */
async function end(engine: EngineRun, given: RunResult): Promise<RunResult> {
  const { id: run, session, events, loop, work, writer, arrivals, claimed, exit } = engine;
  if (work.announced) await work.announced; // before the last messages are taken: the save may bring some
  arrivals.close();
  if (engine.control.stop.handOver) return given;
  if (!exit.current && claimed.pause) exit.offer(claimed.pause, undefined); // a hook refused to continue a paused run, which stays paused
  const stays = restoredSession(engine) !== undefined || exit.current?.status === "paused";
  if (!stays) loop.append(arrivals.take()); // the next run reads them, except after a rollback
  const { messages } = loop.transcript;
  const raw: RunResult = { ...given, run, session, usage: engine.usage, messages };
  events.emit({ type: "session.closed" });
  let { result, last } = shownForm(engine, raw, lastEvent(engine, raw));
  try {
    if (!await writer.end(stays ? undefined : last)) {
      events.warn("session.unsaved", "The session was taken by another process.");
    }
  } catch (error) {
    const id = events.report(error);
    events.emit({ type: "warning", code: "session.unsaved", message: "The session could not be saved.", error: id });
    if (last.type === "run.paused") { // no answer would find the question
      const message = "The run cannot pause: its session could not be saved.";
      last = { type: "run.failed", error: id, message, code: "internal", usage: last.usage };
      result = { ...result, status: "failed", reason: "failure", questions: [], error };
    }
  }
  events.emit(last);
  return result;
}

/** Returns a result and its last event as the middleware of the agent lets callers and clients see them: also if no hook has seen the end. */
function shownForm(
  run: EngineRun,
  result: RunResult,
  last: Event,
): { readonly result: RunResult; readonly last: Event } {
  const { definition } = run;
  if (definition.savers.length === 0) return { result, last };
  const { messages, last: form } = savedForm(definition, { ...savedSession(run), last: { run: run.id, event: last } });
  const event = form?.event ?? last;
  const reason = "reason" in event && event.reason !== undefined && { reason: event.reason };
  return { result: { ...result, messages, ...("text" in event && { text: event.text }), ...reason }, last: event };
}
