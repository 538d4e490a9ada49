/**
 * A run from its first event to its last: it takes a session, opens it, concludes whatever comes of it, and gives it back.
 *
 * @module
 */
import type { Event, Point } from "../protocol/event.ts";
import { type AssistantMessage, type CallResult, callsOf, type Message, textOf, user } from "../protocol/message.ts";
import type { PersonAnswer, Session } from "../protocol/session.ts";
import type { Sink } from "../stream/channel.ts";
import { abandon } from "./abandon.ts";
import type { Blueprint } from "./blueprint.ts";
import { cleanUp, judge } from "./failure.ts";
import { End, Pause, Paused } from "./interrupt.ts";
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
  readonly session: string;
  /** Its id, once it has its session; rejects with a `SessionError` where it may not have it. */
  readonly opened: Promise<string>;
  readonly result: Promise<RunResult>;
  /** Stops it. */
  stop(reason?: string): void;
  /** Ends it after the turn that it is in, as a limit does. */
  drain(reason: string): void;
}

/** A session that a run may not have. */
export class SessionError extends Error {
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
  let result: RunResult;
  try {
    live.arm();
    const { view: run, signal, emit, vars, session } = live;
    const resumed = live.pending !== undefined;
    const source = live.base > 0 || resumed ? "resume" : "new";
    emit({ type: "run.started", run: live.id, session, resumed });
    emit({ type: "session.opened", source });
    const settings = await settingsOf(live, options);
    const work = live.blueprint.onions.session({
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
    result = await abandon(work, live, patience * live.limits.grace, () => {
      live.warn("hook.abandoned", "A hook did not stop when it was told to.");
    });
  } catch (error) {
    result = await conclude(live, live.scope(), error, "session");
  }
  return await end(live, result);
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
    if (live.pending?.prompt) live.prompt = [live.pending.prompt];
  } else {
    if (kept?.run) live.messages = moveOn(live.messages, kept);
    live.prompt = messages;
  }
  live.base = live.messages.length;
  if (!await live.save()) throw new SessionError(`Cannot run ${named}: another run took it`, "busy");
}

/** A paused run that nobody answered: its open calls are answered as skipped. */
function moveOn(messages: readonly Message[], { run }: Session): readonly Message[] {
  const { batch, prompt } = run?.pending ?? {};
  const before = prompt ? [...messages, prompt] : messages;
  if (!batch) return before;
  const given = new Map(batch.results.map((result) => [result.callId, result]));
  const results = callsOf(batch.message).map(({ id, name }): CallResult => {
    const { callId, status, parts } = given.get(id) ??
      { callId: id, status: "skipped", parts: user("The conversation went on without an answer.").parts };
    return { callId, name, status, parts };
  });
  return [...before, batch.message, { role: "tool", results }];
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
    live.settle(settings, scope);
    const prompt = live.prompt?.at(-1) ?? live.messages.findLast((message) => message.role === "user");
    if (prompt?.role !== "user") throw new TypeError("Cannot run: the last message is not the person's");
    if (!resumed && live.base === 0) live.push(...contextMessages(context, "session"));
    const transcript = live.messages;
    const answer = await live.blueprint.onions.prompt({
      run,
      signal,
      emit,
      vars,
      prompt,
      transcript,
      context: [],
      resumed: resumed && !live.prompt,
    }, live);
    live.checkpoint();
    return fromAnswer(live, answer);
  } catch (error) {
    return await conclude(live, scope, error, "prompt");
  }
}

function fromAnswer(live: Live, { status, text, reason, output }: Answer): RunResult {
  return { ...resultOf(live, status, reason), text, ...(output !== undefined && { output }) };
}

/** What a run comes to that did not end with an answer. */
async function conclude(live: Live, scope: Scope, error: unknown, source: Point): Promise<RunResult> {
  if (live.unfinished) answerOpen(live, live.unfinished);
  if (live.aborted) return await cut(live, reasonOf(live.reason));
  if (live.pending && !(error instanceof Pause || error instanceof Paused) && live.paused) {
    live.warn("hook.failed", "A hook failed while the run paused.", { point: source, error });
    return paused(live);
  }
  if (error instanceof Pause) {
    live.pending ??= { questions: error.questions };
    return paused(live);
  }
  const end = error instanceof End ? error : live.ended;
  if (end) return ended(live, end);
  if (live.judged?.error !== error) await judge(live, scope, { error, source, recoverable: false, attempt: 1 });
  return { ...await cut(live, "failure"), error };
}

function paused(live: Live): RunResult {
  live.paused = true;
  if (live.prompt) {
    live.push(...live.prompt.slice(0, -1));
    const prompt = live.prompt.at(-1);
    if (live.pending && prompt?.role === "user") live.pending = { ...live.pending, prompt };
  }
  return { ...resultOf(live, "paused"), questions: live.pending?.questions ?? [] };
}

function ended(live: Live, { as, reason, rollback }: End): RunResult {
  if (rollback) live.messages = live.messages.slice(0, live.base);
  const status = as === "ended" ? "done" : as;
  return resultOf(live, status, reason);
}

/** A run that was stopped, or failed: its cleanup runs once. */
async function cut(live: Live, reason: string): Promise<RunResult> {
  const partial = live.partial?.();
  await (live.cleaning ??= cleanUp(live, reason));
  const status = reason === "failure" ? "failed" : reason === "deadline" ? "limit" : "aborted";
  return { ...resultOf(live, status, reason), ...(partial && { text: textOf(partial) }) };
}

function reasonOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** The calls of a batch that did not come to its end are answered all the same. */
function answerOpen(live: Live, message: AssistantMessage): void {
  const results = callsOf(message).map(({ id, name }): CallResult => ({
    callId: id,
    name,
    status: "aborted",
    parts: user("Stopped before it was done.").parts,
  }));
  live.unfinished = undefined;
  live.push(message, { role: "tool", results });
}

function resultOf(live: Live, status: RunResult["status"], reason?: string): RunResult {
  const { id: run, session, usage, messages } = live;
  const last = messages.slice(live.base).findLast((message) => message.role === "assistant");
  return {
    status,
    run,
    session,
    text: last ? textOf(last) : "",
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
    const saved = await live.save(result.status === "paused" ? "paused" : "ended");
    if (!saved) live.warn("session.unsaved", "The session was taken by somebody else.");
  } catch (error) {
    live.warn("session.unsaved", "The session could not be saved.", { error });
  }
  live.emit(lastEvent(live, result));
  live.close();
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
