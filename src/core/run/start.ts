/**
 * The life of a run: it claims its session, opens it, works until it has an exit, and gives the session back.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { noUsage, user, type UserMessage } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import type { AnyTool } from "../agent/tool.ts";
import { type SendOptions, Steering } from "../features/steering.ts";
import type { RunResult, Settings } from "../hooks/points.ts";
import { merged } from "../hooks/policy.ts";
import { reasonOf, withGracePeriod } from "../lib/cancellation.ts";
import { claim, type Claimed, type ClaimOptions, SessionError } from "../persistence/claim.ts";
import type { Session } from "../persistence/session.ts";
import type { SessionWriter, WriterRun } from "../persistence/store.ts";
import { RunControl, type StopOptions } from "./control.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import { cleanUp } from "./failure.ts";
import { conclude, exitWith, lastEvent, openCalls } from "./finish.ts";
import { limited, type Limits } from "./limits.ts";
import type { Exit } from "./position.ts";
import { hasInputHooks, reviewAnswers, reviewMessage } from "./review.ts";
import { EngineRun, type StepScope } from "./run.ts";
import { sessionPolicy } from "../steps/session_point.ts";
import { Transcript } from "./transcript.ts";

/** The options of a run, however it starts. */
export interface StartOptions extends ClaimOptions {
  readonly signal?: AbortSignal | undefined;
  readonly vars: unknown;
  readonly limits?: Partial<Limits> | undefined;
  /** Tools of this run only, such as those that its client runs. None may have the name of an agent's own tool. */
  readonly tools?: readonly AnyTool[] | undefined;
  readonly onError?: OnError | undefined;
  readonly parent?: { readonly run: EngineRun; readonly call: string; readonly settings: Partial<Settings> };
}

/** The first event of a run that has its session. */
export interface Opened {
  /** The run's id. */
  readonly run: string;
  /** The number of the event before the first one: 0 unless the run continues. */
  readonly after: number;
}

/** A run that has started. */
export interface Started {
  /** The session's id. */
  readonly session: string;
  /** Resolves once the run has its session. Rejects with a `SessionError` if it cannot have it. */
  readonly opened: Promise<Opened>;
  /** The result. Never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops the run. Default reason: "stop". */
  stop(reason?: string, options?: StopOptions): void;
  /**
   * Sends a message to the run, which receives it at the next safe place. Resolves once it is saved. Rejects with a `RangeError` if ten messages wait,
   * and with a `SessionError` if the run is over or an `input` hook refuses the message.
   */
  send(message: string | UserMessage, options?: SendOptions): Promise<void>;
  /** Asks the run to end with one more answer, without tools. Calls that have not begun are skipped. */
  finish(): void;
  /** Ends the run after its turn, as a limit does. */
  drain(reason: string): void;
}

/** How many grace periods the hooks of an aborted run have in all: for a tool, the hooks after it, and the cleanup. */
const graceFactor = 3;

/** Starts a run, or continues one that has paused or whose process died. */
export function start(
  definition: AgentDefinition<StepScope>,
  options: StartOptions,
  sink: Sink<NumberedEvent>,
): Started {
  const { signal, session = crypto.randomUUID() } = options;
  const limits = limited(definition.limits, options.limits);
  const control = new RunControl();
  const steering = new Steering();
  const ready = Promise.withResolvers<Ready>();
  const opened = ready.promise.then(({ engine, after }): Opened => ({ run: engine.id, after }));
  opened.catch(() => {}); // the result reports it too
  const onAbort = () => control.abort("signal");
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = live({ definition, options, limits, session, sink, control, steering, opened }, ready)
    .finally(() => signal?.removeEventListener("abort", onAbort));

  let reviewed: Promise<unknown> = Promise.resolve();
  /** Runs the `input` hooks for one message after another, so that messages stay in order. */
  function review(engine: EngineRun, message: UserMessage): Promise<UserMessage> {
    const next = reviewed.then(() => reviewMessage(engine, engine.scope(), "steering", message));
    reviewed = next.catch(() => {}); // the caller of send() receives the failure
    return next;
  }

  return {
    session,
    opened,
    result,
    stop: (reason = "stop", stopOptions) => control.abort(reason, stopOptions),
    drain: (reason) => steering.drain(reason),
    finish: () => steering.finish(),
    async send(message, sendOptions) {
      const { engine, writer } = await ready.promise; // messages that waited before come first
      const named = `Cannot send a message to run "${engine.id}"`;
      const over = () => new SessionError(`${named}: it is over`, "unknown");
      if (steering.closed) throw over();
      const given = typeof message === "string" ? user(message) : message;
      const accepted = hasInputHooks(definition) ? await review(engine, given) : given;
      if (steering.closed) throw over();
      steering.add(accepted, sendOptions);
      if (!writer.durable) return;
      await writer.checkpoint(engine.loop.position, true);
      if (control.aborted) throw new SessionError(`${named}: it ends`, "busy");
    },
  };
}

/** The parts of a run that exist before it has its session. */
interface Beginning {
  readonly definition: AgentDefinition<StepScope>;
  readonly options: StartOptions;
  readonly limits: Limits;
  readonly session: string;
  readonly sink: Sink<NumberedEvent>;
  readonly control: RunControl;
  readonly steering: Steering;
  readonly opened: Promise<Opened>;
}

/** A run that has its session. */
interface Ready {
  readonly engine: EngineRun;
  readonly writer: SessionWriter;
  readonly claimed: Claimed;
  /** Saves the run as paused as it was before. */
  readonly keepPause: () => void;
  /** The number of the event before its first one. */
  readonly after: number;
  /** Events of the `input` hooks that ran before the first event. */
  readonly early: Event[];
}

/** Runs a run from its claim to its last event. Never rejects. */
async function live(beginning: Beginning, ready: PromiseWithResolvers<Ready>): Promise<RunResult> {
  const { control, steering, sink, limits, options, session } = beginning;
  let run: Ready;
  try {
    control.setDeadline(limits.time);
    run = await take(beginning);
  } catch (error) {
    ready.reject(error);
    control.close();
    steering.close();
    sink.close();
    const run = options.run ?? "";
    const messages = error instanceof SessionError ? error.messages : [];
    return {
      status: "failed",
      reason: "session",
      run,
      session,
      text: "",
      questions: [],
      usage: noUsage,
      messages,
      error,
    };
  }
  ready.resolve(run);
  await beginning.opened; // callers that wait for it continue before the first event
  try {
    return await end(run, steering, await work(run, beginning));
  } finally {
    run.writer.close();
    run.engine.close();
  }
}

/** Claims the session. A run that has it and must be closed is closed before. */
async function take(beginning: Beginning): Promise<Ready> {
  const { definition, options, session } = beginning;
  const tools = [...definition.tools, ...options.tools ?? []];
  const about = { tools, session, child: options.parent !== undefined, arrival: arrivalOf(beginning) };
  const busy = new SessionError(`Cannot run session "${session}": another run took it`, "busy");
  if (options.compact && !definition.steps.compact) {
    const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
    throw new SessionError(`Cannot compact session "${session}": ${expected}`, "invalid");
  }
  let claimed = await claim(options, about);
  if ("close" in claimed) {
    const { messages: _, run: __, ...rest } = options;
    await start(definition, { ...rest, answers: [], closing: claimed.close }, nullSink).result;
    claimed = await claim({ ...options, busy: "refuse" }, about);
    if ("close" in claimed) throw busy;
  }
  checkTools(beginning, claimed);
  const run = engineOf(beginning, claimed);
  if (!options.parent) await reviewGiven(run);
  if (!await run.writer.claim()) throw busy;
  return run;
}

/** Throws if a tool of this run has the name of an agent's own tool, which would run in its place. */
function checkTools({ definition, options, session }: Beginning, { exit }: Claimed): void {
  for (const { name } of options.tools ?? []) {
    const isOwn = definition.tools.some((own) => own.name === name);
    const isAsked = exit?.questions?.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if (isOwn && !isAsked) {
      const why = `the agent has a tool "${name}"; expected another name`;
      throw new SessionError(`Cannot add a tool to session "${session}": ${why}`, "invalid");
    }
  }
}

/** Returns the first position of a prompt. A parent's prompt to its child does not come from outside. */
function arrivalOf({ definition, options: { parent } }: Beginning): "arrived" | "input" {
  return hasInputHooks(definition) && !parent ? "arrived" : "input";
}

/** Runs the `input` hooks for the answers that a run continues with. Nothing is stored before. */
async function reviewGiven({ engine, claimed: { start, given }, early }: Ready): Promise<void> {
  if (given.length === 0) return;
  const scope = { ...engine.scope(), emit: (event: Event) => void early.push(event) };
  const earlier = start.answers.slice(0, start.answers.length - given.length);
  engine.loop.receive([...earlier, ...await reviewAnswers(engine, scope, given)]);
}

function engineOf(beginning: Beginning, claimed: Claimed): Ready {
  const { definition, options, limits, session, sink, control, steering } = beginning;
  const { store, parent, lease = 30_000, vars, onError } = options;
  const { start } = claimed;
  let pause: Exit | undefined;
  const writerRun: WriterRun = {
    read: () => sessionOf(engine, claimed.owner, pause),
    abort: (reason) => control.abort(reason),
    get leave() {
      return control.leave;
    },
    get closing() {
      return control.aborted && engine.loop.exit?.status !== "failed" ? reasonOf(control.reason) : claimed.closing;
    },
    receive: (mail) => steering.receive(mail),
    report: (error) => void engine.events.report(error),
    logged: () => sink.settled?.() ?? Promise.resolve(),
    stopLogging: () => sink.yield?.(),
  };
  const always = options.session !== undefined && !parent;
  if (!store.writer) {
    throw new TypeError('Cannot use the store: expected durable(store) of "@jizai/jizai/session/durable"');
  }
  const writer = store.writer(store, writerRun, { version: claimed.version, always, lease, session, run: start.id });
  const engine = new EngineRun({
    definition,
    session,
    sink,
    vars,
    limits,
    control,
    arrivals: steering,
    start,
    transcript: (events) => new Transcript({ ...claimed, before: start.before }, events),
    rules: parent?.run.rules ?? [...claimed.rules],
    sessionState: parent?.run.sessionState ?? new Map(claimed.state),
    parent,
    onError,
    save: (position, urgent) => writer.checkpoint(position, urgent),
    archive: () => writer.archive(),
    durable: writer.durable,
    closing: claimed.closing,
  });
  steering.attach(engine.state);
  steering.receive(claimed.mail);
  const keepPause = () => void (pause = claimed.exit);
  return { engine, writer, claimed, keepPause, after: start.events, early: [] };
}

/** Returns the session of a run as it is now. */
function sessionOf(engine: EngineRun, owner: string | undefined, pause: Exit | undefined): Omit<Session, "version"> {
  const { session: id, rules, sessionState, loop: { transcript: { messages, archive } } } = engine;
  return {
    id,
    messages,
    run: pause ? { ...engine.snapshot(), exit: pause } : engine.snapshot(),
    ...(owner !== undefined && { owner }),
    ...(archive !== undefined && { archive }),
    ...(sessionState.size > 0 && { state: [...sessionState] }),
    ...(rules.length > 0 && { rules }),
  };
}

/** Discards events. */
export const nullSink: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };

/** Runs the `session` onion. */
async function work({ engine, claimed, early }: Ready, { options, steering }: Beginning): Promise<RunResult> {
  const { id: run, session, request, events, loop, control, definition } = engine;
  const { resumed, lost, closing } = claimed;
  const scope = engine.scope();
  try {
    engine.gather();
    const source = loop.transcript.messages.length > 0 || resumed ? "resume" : "new";
    events.emit({ type: "run.started", run, session, resumed, ...(request !== undefined && { request }) });
    events.emit({ type: "session.opened", source });
    for (const event of early) events.emit(event);
    if (lost || closing !== undefined) await recover(engine, closing);
    const opening = settingsOf(engine, options).then((settings) =>
      definition.onions.session(
        { ...scope, session, source, resumed, settings, context: [] },
        { engine, close: () => steering.close() },
        sessionPolicy,
      )
    );
    return await withGracePeriod(opening, control, graceFactor * engine.limits.grace, () => {
      events.warn("hook.abandoned", "A hook did not stop when its signal aborted.");
    });
  } catch (error) {
    await exitWith({ ...scope, engine }, error, "session");
    steering.close();
    return await conclude(engine);
  }
}

/** Runs the cleanup of a run whose process died, or that is to be closed. A run that is closed ends without another one. */
async function recover(engine: EngineRun, closing: string | undefined): Promise<void> {
  const clean = () =>
    cleanUp(engine, { reason: closing ?? "lost", source: "stop" }, openCalls(engine, engine.loop.position));
  await (closing === undefined ? clean() : engine.cleanUp(clean));
}

async function settingsOf(engine: EngineRun, { parent, tools: more = [] }: StartOptions): Promise<Settings> {
  const { definition: { model, instructions, tools }, limits } = engine;
  const scope = engine.scope();
  return merged<Settings>({
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools: [...tools, ...more.filter(({ name }) => !tools.some((own) => own.name === name))],
    limits,
  }, parent?.settings ?? {});
}

/** Emits the last events, and gives the session back. */
async function end(
  { engine, writer, claimed, keepPause }: Ready,
  steering: Steering,
  given: RunResult,
): Promise<RunResult> {
  const { id: run, session, events, loop } = engine;
  steering.close();
  const refused = !loop.exit && claimed.exit !== undefined; // a hook refused to continue a paused run, which stays paused
  if (refused) keepPause();
  const pauses = refused || loop.exit?.status === "paused";
  if (!pauses) loop.append(steering.take()); // the next run reads them
  const result: RunResult = { ...given, run, session, usage: engine.usage, messages: loop.transcript.messages };
  events.emit({ type: "session.closed" });
  const last = lastEvent(engine, result);
  try {
    if (!await writer.end(pauses ? undefined : last)) {
      events.warn("session.unsaved", "The session was taken by another process.");
    }
  } catch (error) {
    events.warn("session.unsaved", "The session could not be saved.", { error });
  }
  events.emit(last);
  return result;
}
