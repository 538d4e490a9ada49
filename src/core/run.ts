/**
 * A run from its first event to its last: it takes a session, opens it, concludes whatever comes of it, and gives it back.
 *
 * @module
 */
import type { Event, Point } from "../protocol/event.ts";
import { type Message, textOf, type UserMessage } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/session.ts";
import type { Sink } from "../stream/channel.ts";
import { abandon } from "./abandon.ts";
import { skipped } from "./answers.ts";
import type { Blueprint } from "./blueprint.ts";
import { blame, cleanUp } from "./failure.ts";
import { leaveBatch } from "./fanout.ts";
import { End, isInterrupt, Pause } from "./interrupt.ts";
import { lawOf, merged } from "./law.ts";
import { limited, type Limits } from "./limits.ts";
import { Live, type Numbered, type OnError } from "./live.ts";
import { contextMessages } from "./loop.ts";
import type { Law } from "./onion.ts";
import type { Answer, RunResult, SessionChange, SessionContext, Settings } from "./points.ts";
import type { Scope } from "./scope.ts";
import type { Store } from "./store.ts";

/** What a run is given, whichever way it begins. */
export interface StartOptions {
  /** A new prompt: the messages that the caller holds, the last of them the person's. */
  readonly messages?: readonly Message[];
  /** A person's answers, for a run that is paused. */
  readonly answers?: readonly PersonAnswer[];
  /** The session; without one the run has one of its own, kept only if it pauses. */
  readonly session?: string | undefined;
  readonly store: Store;
  readonly signal?: AbortSignal | undefined;
  readonly vars: unknown;
  readonly limits?: Partial<Limits> | undefined;
  readonly onError?: OnError | undefined;
  readonly parent?: { readonly live: Live; readonly settings: Partial<Settings> };
}

/** A run that has begun. */
export interface Started {
  /** The session it belongs to. */
  readonly session: string;
  /** Its id, once it has its session; rejects with a `SessionError` where it may not have it. */
  readonly opened: Promise<string>;
  /** How it ended; never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops it. */
  stop(reason?: string): void;
  /** Ends it after the turn that it is in, as a limit does. */
  drain(reason: string): void;
}

/** A session that a run may not have. */
export class SessionError extends Error {
  /** The name of the class. */
  override readonly name = "SessionError";

  /** Says what could not be done, and why as a word. */
  constructor(message: string, readonly code: "busy" | "unknown" | "not-paused" | "unasked" | "lost") {
    super(message);
  }
}

/** Begins a run, or goes on with a paused one. */
export function start(blueprint: Blueprint, options: StartOptions, sink: Sink<Numbered>): Started {
  const session = options.session ?? crypto.randomUUID();
  const { vars, onError, parent, signal } = options;
  const limits = limited(blueprint.limits, options.limits);
  const live = new Live({ blueprint, session, sink, vars, limits, parent, onError });
  const opened = Promise.withResolvers<string>();
  opened.promise.catch(() => {}); // the result says it too
  const stop = (reason = "stop") => live.abort(reason);
  const onAbort = () => stop("signal");
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = conduct(live, options, opened).finally(() => signal?.removeEventListener("abort", onAbort));
  const drain = (reason: string) => {
    live.draining ??= reason;
  };
  return { session, opened: opened.promise, result, stop, drain };
}

async function conduct(live: Live, options: StartOptions, opened: PromiseWithResolvers<string>): Promise<RunResult> {
  try {
    await claim(live, options);
  } catch (error) {
    opened.reject(error);
    live.close();
    return { ...resultOf(live, "failed", "session"), error };
  }
  opened.resolve(live.id);
  await opened.promise; // who waits for it goes on before the first event
  let result: RunResult;
  try {
    live.arm();
    const { view: run, signal, emit, vars, session } = live;
    const resumed = live.pending !== undefined;
    const source = live.messages.length > 0 || resumed ? "resume" : "new";
    emit({ type: "run.started", run: live.id, session, resumed });
    emit({ type: "session.opened", source });
    const open = async () => {
      const settings = await settingsOf(live, options);
      return await live.blueprint.onions.session({
        run,
        signal,
        emit,
        vars,
        session,
        source,
        resumed,
        settings,
        context: [],
      }, live);
    };
    result = await abandon(open(), live, patience * live.limits.grace, () => {
      live.warn("hook.abandoned", "A hook did not stop when it was told to.");
    });
  } catch (error) {
    result = await conclude(live, live.scope(), error, "session");
  }
  try {
    return await end(live, result);
  } finally {
    live.close();
  }
}

/** How many times the grace of one hook the whole run has after it was told to stop: a tool, the hooks after it, the cleanup. */
const patience = 3;

/** Takes the session for this run; throws a `SessionError` where it may not. */
async function claim(live: Live, { store, session, messages, answers, parent }: StartOptions): Promise<void> {
  const kept = session === undefined ? undefined : await store.load(session);
  live.keep({ store, version: kept?.version ?? 0, always: session !== undefined && !parent });
  const named = `session "${live.session}"`;
  if (kept?.run?.status === "running") throw new SessionError(`Cannot run ${named}: another run has it`, "busy");
  live.messages = kept?.messages ?? [];
  if (answers) {
    if (!kept) throw new SessionError(`Cannot resume ${named}: there is none`, "unknown");
    if (!kept.run) throw new SessionError(`Cannot resume ${named}: it is not paused`, "not-paused");
    live.restore(kept.run);
    const asked = new Set(live.pending?.questions.map(({ callId }) => callId));
    for (const answer of answers) {
      if (!asked.has(answer.callId)) {
        throw new SessionError(`Cannot answer call ${answer.callId}: it is not asked`, "unasked");
      }
      live.answers.set(answer.callId, answer);
    }
  } else {
    live.pending = kept?.run?.pending;
    leaveBatch(live, skipped("The conversation went on without an answer."));
    live.before = live.messages;
    live.prompt = messages;
  }
  if (!await live.save()) throw new SessionError(`Cannot run ${named}: another run took it`, "busy");
}

async function settingsOf(live: Live, { parent }: StartOptions): Promise<Settings> {
  const { model, instructions, tools } = live.blueprint;
  const scope = live.scope();
  return merged<Settings>({
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools,
    limits: live.limits,
  }, parent?.settings ?? {});
}

/** The law of `session`. */
export const sessionLaw: Law<SessionContext, SessionChange, RunResult, Live> = lawOf(
  "session",
  ["settings", "context"],
  {
    derive: (beneath, { settings }) =>
      beneath.settings === settings ? beneath : { ...beneath, settings: merged(settings, beneath.settings) },
  },
);

/** The core of `session`: runs the prompt, and makes a result of whatever comes of it. */
export async function openSession(ctx: SessionContext, live: Live): Promise<RunResult> {
  const { run, signal, emit, vars, resumed, settings, context } = ctx;
  const scope: Scope = { run, signal, emit, vars };
  try {
    live.checkpoint();
    live.settle(settings, scope);
    if (live.messages.length === 0) live.push(...contextMessages(context, "session"));
    const answer = await live.blueprint.onions.prompt({
      run,
      signal,
      emit,
      vars,
      prompt: promptOf(live),
      transcript: live.messages,
      context: [],
      resumed: resumed && !live.prompt,
    }, live);
    live.checkpoint();
    return fromAnswer(live, answer);
  } catch (error) {
    return await conclude(live, scope, error, "prompt");
  }
}

/** What the person asked: in a resumed run the last that they said. */
function promptOf({ prompt, messages }: Live): UserMessage {
  const said = prompt?.at(-1) ??
    messages.findLast((message) => message.role === "user" && message.from === undefined) ??
    messages.findLast((message) => message.role === "user");
  if (said?.role !== "user") throw new TypeError("Cannot run: the last message is not the person's");
  return said;
}

function fromAnswer(live: Live, { status, text, reason, output }: Answer): RunResult {
  leaveBatch(live);
  if (status === "cancelled") live.messages = live.before;
  return { ...resultOf(live, status, reason), text, ...(output !== undefined && { output }) };
}

/** What a run comes to that did not end with an answer. */
async function conclude(live: Live, scope: Scope, error: unknown, source: Point): Promise<RunResult> {
  live.unfinished?.();
  if (live.aborted) return await cut(live, reasonOf(live.reason));
  if (error instanceof Pause && !live.pausing) live.hold(error);
  if (live.pausing) {
    if (!isInterrupt(error)) {
      live.warn("hook.failed", "A hook failed while the run paused.", { point: source, error });
    }
    return paused(live);
  }
  if (!live.ended && !(error instanceof End)) {
    try {
      await blame(live, scope, error, source);
    } catch (interrupt) {
      return await conclude(live, scope, interrupt, source); // a hook at `error` ended or paused the run
    }
  }
  const end = error instanceof End ? error : live.ended;
  if (end) return ended(live, end);
  live.failure = { error };
  live.abort("failure"); // whatever nobody waited for stops too
  return await cut(live, "failure");
}

function paused(live: Live): RunResult {
  const { questions = [], batch, prompt, stopping } = live.pending ?? {};
  const given = live.prompt?.at(-1);
  if (live.prompt) live.replace([...live.messages, ...live.prompt.slice(0, -1)], "prompt");
  live.prompt = undefined;
  const answered = !batch && !prompt && !given && live.messages.at(-1)?.role === "assistant";
  live.pending = {
    questions,
    ...(batch && { batch }),
    ...(given?.role === "user" ? { prompt: given } : prompt && { prompt }),
    ...((stopping || answered) && { stopping: true }),
  };
  return { ...resultOf(live, "paused"), questions, ...(batch && { text: textOf(batch.message) }) };
}

function ended(live: Live, end: End): RunResult {
  const { as, reason, rollback } = end;
  const partial = live.partial?.();
  if (partial && textOf(partial) !== "") live.push(partial);
  leaveBatch(live);
  if (rollback) live.messages = live.before;
  const status = as === "ended" ? "done" : as;
  return { ...resultOf(live, status, reason), ...(as === "failed" && { error: end }) };
}

/** A run that was stopped, or failed: its cleanup runs once. */
async function cut(live: Live, reason: string): Promise<RunResult> {
  const partial = live.partial?.();
  leaveBatch(live);
  await (live.cleaning ??= cleanUp(live, reason));
  const status = live.failure ? "failed" : reason === "deadline" ? "limit" : "aborted";
  return { ...resultOf(live, status, reason), ...(partial && { text: textOf(partial) }), ...live.failure };
}

function reasonOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

function resultOf(live: Live, status: RunResult["status"], reason?: string): RunResult {
  const { id: run, session, usage, messages, before } = live;
  const last = messages.findLast((message) => message.role === "assistant");
  return {
    status,
    run,
    session,
    text: last && !before.includes(last) ? textOf(last) : "",
    questions: [],
    usage,
    messages,
    ...(reason !== undefined && { reason }),
  };
}

/** The last events, and the session given back. */
async function end(live: Live, given: RunResult): Promise<RunResult> {
  const { id: run, session, usage } = live;
  const result: RunResult = { ...given, run, session, usage, messages: live.messages };
  live.emit({ type: "session.closed" });
  try {
    const saved = await live.save(live.pending ? "paused" : "ended"); // one that was refused waits on
    if (!saved) live.warn("session.unsaved", "The session was taken by somebody else.");
  } catch (error) {
    live.warn("session.unsaved", "The session could not be saved.", { error });
  }
  live.emit(lastEvent(live, result));
  return result;
}

function lastEvent(live: Live, { status, text, reason, output, questions, usage, error }: RunResult): Event {
  switch (status) {
    case "paused":
      return { type: "run.paused", questions, usage };
    case "failed":
      return { type: "run.failed", error: live.report(error), message: "The run failed.", usage };
    case "aborted":
      return { type: "run.aborted", reason: reason ?? "stop", text, usage };
    default:
      return {
        type: "run.finished",
        status,
        text,
        usage,
        ...(reason !== undefined && { reason }),
        ...(output !== undefined && { output }),
      };
  }
}
