/**
 * The lifecycle of a run, from its first event to its last one. It works inside the `session` hooks until it has an exit, is saved for the last time, and gives
 * the session back.
 *
 * @module
 */
import { pauseOf } from "./claim.ts";
import { cleanUp, reportFatal } from "./error_hooks.ts";
import { refused } from "./hook_answers.ts";
import { Refusal } from "./input_hooks.ts";
import { withGracePeriod } from "./lib/cancellation.ts";
import type { RunResult, SessionChange, SessionContext, Settings } from "./points.ts";
import { endStatuses, mergeSettings, type PointPolicy, policyOf, requireStatus } from "./policy.ts";
import { exits, type Position, stops } from "./position.ts";
import { type EngineRun, settingsOf, type StepScope } from "./run.ts";
import { conclude, emptyResult, exitWith, lastEvent, openCalls } from "./run_end.ts";
import { savedForm, savedSession } from "./saved_session.ts";
import { SessionError } from "./session.ts";
import type { Beginning } from "./start.ts";
import { contextMessages } from "./transcript.ts";
import type { Event } from "../protocol/event.ts";
import type { UserMessage } from "../protocol/message.ts";

/** The grace periods that the hooks of an aborted run have in all: for a tool, the hooks after it, and the cleanup. */
const graceFactor = 3;

/** Runs a run from its opening to its last event. Never rejects. */
export async function live(beginning: Beginning, opening: Promise<EngineRun>): Promise<RunResult> {
  let run: EngineRun;
  try {
    run = await opening;
  } catch (error) {
    return unopened(beginning, error);
  }
  try {
    let result: RunResult;
    try {
      emitFirstEvents(run, beginning.firstEvents);
      const endResult = run.claimed.type === "new" ? undefined : await takeUp(run);
      result = endResult ?? await enterSession(run, beginning);
    } catch (error) {
      await exitWith({ ...run.scope(), engine: run }, error, "session");
      run.steering.close();
      result = await conclude(run);
    }
    return await end(run, result);
  } finally {
    const { handedOver } = run.control;
    if (handedOver) await handedOver;
    else {
      run.writer.close();
      run.close();
    }
  }
}

/** Returns the result of a run that could not open its session. */
function unopened({ control, steering, sink, options, session }: Beginning, error: unknown): RunResult {
  control.close();
  steering.close();
  sink.close();
  const messages = error instanceof SessionError ? error.messages : [];
  return { ...refused("session"), status: "failed", run: options.run ?? "", session, messages, error };
}

/** Returns the first events, which are stored with the claim. */
export function firstEventsOf(engine: EngineRun, firstEvents: readonly Event[]): readonly Event[] {
  const { id: run, session, usage, claimed } = engine;
  const { snapshot: { request } } = claimed;
  const resumed = claimed.type !== "new";
  const before = resumed && { ...(request !== undefined && { request }), usage };
  return [
    { type: "run.started", run, session, resumed, ...before },
    { type: "session.opened", source: sourceOf(engine) },
    ...firstEvents,
  ];
}

/** Emits the first events. */
function emitFirstEvents(engine: EngineRun, firstEvents: readonly Event[]): void {
  engine.events.gather();
  for (const event of firstEventsOf(engine, firstEvents)) engine.events.emit(event);
}

/** Prepares a run that continues. Returns its result if it ends, or is left to another process, before its hooks begin. */
async function takeUp(engine: EngineRun): Promise<RunResult | undefined> {
  const { writer, work, loop, claimed } = engine;
  const endResult = pauseOf(claimed) ? undefined : await writer.takeOver();
  if (endResult || claimed.type !== "closing") return endResult;
  const { reason, exit } = claimed.stop;
  const cause = { reason, source: "stop", status: exits[exit].result } as const;
  await work.cleanUp(() => cleanUp(engine, cause, openCalls(engine, loop.position))); // there is one cleanup
  return undefined;
}

/** Reviews what the client of a new run gave beside its messages, before a hook receives it. Returns the result of a run that is refused. */
async function refusalOf(
  engine: EngineRun,
  review: NonNullable<Beginning["options"]["review"]>,
): Promise<RunResult | undefined> {
  const scope = engine.scope();
  const work = review(engine, scope).catch((error) => {
    if (error instanceof Refusal) return error.reason;
    throw error;
  });
  const reason = await reportFatal({ ...scope, engine }, "input", work);
  return reason === undefined ? undefined : emptyResult(engine, "cancelled", reason);
}

/** Runs the hooks of a run, and waits for those that ignore an abort no longer than the grace periods. */
function enterSession(engine: EngineRun, beginning: Beginning): Promise<RunResult> {
  const { control, limits, claimed } = engine;
  const { review } = beginning.options;
  const result = review && claimed.type === "new"
    ? refusalOf(engine, review).then((refused) => refused ?? runSessionHooks(engine, beginning))
    : runSessionHooks(engine, beginning);
  return withGracePeriod(result, control, graceFactor * limits.grace, () => {
    engine.events.warn("hook.abandoned", "A hook did not stop when its signal aborted.");
  });
}

/** Runs the `session` onion with the settings of the run. */
function runSessionHooks(engine: EngineRun, { options: { parent } }: Beginning): Promise<RunResult> {
  const settings = settingsOf(engine, parent?.settings);
  return settings instanceof Promise
    ? settings.then((settings) => sessionResult(engine, settings))
    : sessionResult(engine, settings);
}

/** Runs the `session` onion. */
function sessionResult(engine: EngineRun, settings: Settings): Promise<RunResult> {
  const { session, loop, definition, claimed } = engine;
  const source = sourceOf(engine);
  const resumed = claimed.type !== "new";
  const prompt = waitingPrompt(loop.position);
  const ctx = { ...engine.scope(), session, source, resumed, ...prompt, settings, context: [] };
  return definition.onions.session(ctx, engine, policy);
}

/** Whether the session of a run is new. */
function sourceOf({ loop, claimed }: EngineRun): SessionContext["source"] {
  return loop.transcript.messages.length > 0 || claimed.type !== "new" ? "resume" : "new";
}

const policy: PointPolicy<SessionContext, SessionChange, RunResult, EngineRun> = /* @__PURE__ */ policyOf("session", {
  core: runSession,
  derive: mergeSettings,
  finalize: /* @__PURE__ */ requireStatus("session", endStatuses),
});

/** The core of `session`: runs the loop, and makes a result of its exit. */
async function runSession(
  { run, signal, emit, vars, settings, context }: SessionContext,
  engine: EngineRun,
): Promise<RunResult> {
  const { loop, exit, control, steering, claimed, definition } = engine;
  const scope: StepScope = { run, signal, emit, vars, engine, outside: emit };
  try {
    exit.check();
    engine.applySettings(settings);
    if (loop.transcript.messages.length === 0) loop.append(contextMessages(context, "session"));
    if (claimed.type === "closing" && !(claimed.stop === stops.lost && completesFirst(engine))) {
      control.abort(claimed.stop);
    }
    await loop.advance(scope, definition.steps);
  } catch (error) {
    await exitWith(scope, error, "prompt");
  }
  if (exit.current?.status !== "paused") steering.close();
  return await conclude(engine);
}

/** True if a lost run first accepts its prompt, or records the results of its calls, before it ends. */
function completesFirst({ loop: { position } }: EngineRun): boolean {
  return position.at === "incoming" || position.at === "prompt" || position.at === "tools" || position.at === "turnEnd";
}

/** Returns the prompt that was not accepted yet, as a field of the context of `session`. */
function waitingPrompt(position: Position): { readonly prompt?: UserMessage } {
  const prompt = position.at === "incoming" || position.at === "prompt" ? position.messages.at(-1) : undefined;
  return prompt?.role === "user" ? { prompt } : {};
}

/** Emits the last events, and gives the session back. */
async function end(engine: EngineRun, hookResult: RunResult): Promise<RunResult> {
  const { id: run, session, events, loop, work, writer, steering, claimed, exit } = engine;
  if (work.resultsEmitted) await work.resultsEmitted; // before the last messages are taken: the save may bring some
  steering.close();
  if (engine.control.handedOver) return hookResult;
  const pause = pauseOf(claimed);
  if (!exit.current && pause) exit.offer(pause.exit, undefined); // a hook refused to continue a paused run, which stays paused
  const pauses = exit.current?.status === "paused";
  if (!pauses) loop.append(steering.take()); // the next run reads them, except after a rollback
  const { finish, transcript: { messages } } = loop;
  const raw: RunResult = { ...hookResult, run, session, ...(finish && { finish }), usage: engine.usage, messages };
  events.emit({ type: "session.closed" });
  let { result, last } = shownForm(engine, raw, lastEvent(engine, raw));
  try {
    if (!await writer.end(last, pauses)) {
      events.warn("session.unsaved", "The session was taken by another process.");
    }
  } catch (error) {
    const id = events.report(error);
    const isDropped = writer.dropRefused();
    events.emit({ type: "warning", code: "session.unsaved", message: "The session could not be saved.", error: id });
    if (isDropped || last.type === "run.paused") { // no answer would find the question
      const verb = last.type === "run.paused" ? "pause" : "end";
      const message = `The run cannot ${verb}: its session could not be saved.`;
      last = { type: "run.failed", error: id, message, code: "internal", usage: result.usage };
      result = { ...result, status: "failed", reason: "failure", questions: [], error };
    }
    await writer.endRefused(last);
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
  const { messages, last: form } = savedForm(run, { ...savedSession(run), last: { run: run.id, event: last } });
  const event = form?.event ?? last;
  const reason = "reason" in event && event.reason !== undefined && { reason: event.reason };
  return { result: { ...result, messages, ...("text" in event && { text: event.text }), ...reason }, last: event };
}
