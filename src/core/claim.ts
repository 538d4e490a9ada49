/**
 * Claims of sessions: the saved state that a run starts from. A new prompt, answers to a pause, a crash and a compaction differ only in that state.
 *
 * @module
 */
import { skipped } from "./hook_answers.ts";
import { journalKey, runIdOf } from "./journal.ts";
import { isTraceparent } from "./lib/traceparent.ts";
import { matchAnswers, validateEdits } from "./persons_answers.ts";
import {
  type AnsweredQuestion,
  type DirectCall,
  directCall,
  type Exit,
  noCounters,
  type RunSnapshot,
  type Stop,
  stopFor,
  stops,
} from "./position.ts";
import { closingMessages } from "./run_end.ts";
import { isPaused, type Mail, mailedMessages, type Rule, type Session, SessionError, stopOf } from "./session.ts";
import { type BegunRequest, type OpenedSession, openSession, readStored, requestsIn } from "./session_version.ts";
import type { Beginning } from "./start.ts";
import { waitingMessages } from "./steering.ts";
import type { RunStore } from "./store.ts";
import { type Message, noUsage } from "../protocol/message.ts";
import { type PersonAnswer, restoreSchemas } from "../protocol/question.ts";

// The outcome of a claim: the saved state that the run starts from, by the way it starts.

/** The saved state that a run starts from: the run itself, and its session. */
interface ClaimedState {
  /** The run as it starts here. Its events, usage and answers are those so far. */
  readonly snapshot: RunSnapshot;
  /** The transcript. */
  readonly messages: readonly Message[];
  /** The number of compactions of the transcript. */
  readonly compactions: number;
  /** The key of the session's journal, if the session has a name. */
  readonly key: string | undefined;
  /** The session as its journal had it; undefined for a new one. */
  readonly opened: OpenedSession | undefined;
  /** The owner of the session, if there is one. */
  readonly owner: string | undefined;
  /** State of middleware for the session, by name. */
  readonly state: readonly (readonly [string, unknown])[];
  /** Calls that a person always allows. */
  readonly rules: readonly Rule[];
  /** Messages that other processes sent to the run. */
  readonly mail: readonly Mail[];
}

/** A pause, and what a person has answered to it. */
interface AnsweredPause {
  /** The pause. */
  readonly exit: Exit;
  /** The answers of the claim, which are the last ones in its `snapshot`. */
  readonly newAnswers: readonly AnsweredQuestion[];
}

/** The state that a run starts from, and how it starts. */
export type Claimed =
  & ClaimedState
  & (
    /** A new run, for a prompt or a compaction. All others continue a run. */
    | { readonly type: "new" }
    /** A person has answered the run's pause. */
    | { readonly type: "answered"; readonly pause: AnsweredPause }
    /** The run's process has died. */
    | { readonly type: "lost" }
    /** The run's process gave the run back when it shut down. */
    | { readonly type: "released" }
    /** The run ends with `stop` as soon as its open calls have results. With `rollback`, its transcript is restored to its start. `pause` is set if it had paused. */
    | {
      readonly type: "closing";
      readonly stop: Stop;
      readonly rollback: boolean;
      readonly pause: AnsweredPause | undefined;
    }
    /** Another process executes the run. It is only looked at, as it was saved last. */
    | { readonly type: "remote" }
  );

/** Returns the pause of a run that had paused. */
export function pauseOf(claimed: Claimed): AnsweredPause | undefined {
  return claimed.type === "answered" || claimed.type === "closing" ? claimed.pause : undefined;
}

// The options of a claim.

/** The conditions of a claim, which callers of a run may set too. */
export interface ClaimConditions {
  /** The owner of the session. Two owners may use the same id. Default: the session has no owner. */
  readonly owner?: string | undefined;
  /** Milliseconds after which a run that does not renew its lease is lost. Default: 30,000. */
  readonly lease?: number | undefined;
  /** Returns true if a run is known to be dead. `until` is the end of its lease. Default: a run is dead after its lease. */
  readonly lost?: ((run: string, until?: number) => boolean) | undefined;
  /** The action if another run holds the session. Default: "refuse". */
  readonly busy?: "refuse" | "replace" | undefined;
  /**
   * The trace that `otel()` continues, as the header `traceparent` of the W3C. It is stored with the run, for a process that takes the run over. A value that
   * is not valid is ignored. Servers pass the header of the request. Default: the trace of the current span.
   */
  readonly traceparent?: string | undefined;
}

/** The session that a run claims, and how. */
export interface ClaimOptions extends ClaimConditions {
  /** The idempotency id of the request. Default: none. */
  readonly requestId?: string | undefined;
  /** True if the request was sent before, and may have begun a run. Default: false. */
  readonly isRepeated?: boolean | undefined;
  /** The id of a new run, or of the run to continue. Default: a new id, or the run that has the session. */
  readonly run?: string | undefined;
  /** The start of a new run, in milliseconds since 1970. Default: now. */
  readonly startedAt?: number | undefined;
  /** A new prompt: messages of which the last is the person's. */
  readonly messages?: readonly Message[] | undefined;
  /** A call to make for the prompt, in place of asking the model. The run ends with its result. Default: the model is asked. */
  readonly call?: DirectCall | undefined;
  /** Returns how many messages of the session stay when the prompt, the last of `messages`, is accepted; undefined for all. Default: all. */
  readonly rewind?: ((session: Session, messages: readonly Message[]) => number | undefined) | undefined;
  /** Answers to a paused run. Empty for a run whose process died. */
  readonly answers?: readonly PersonAnswer[];
  /** Only compacts the transcript, with these instructions. Throws if a run has the session. */
  readonly compact?: { readonly instructions: string };
  /** The session. Default: a new one, which a store saves only if the run pauses. */
  readonly session?: string | undefined;
  /** True if there is no such session, so that none is read. Default: it may exist. */
  readonly isNew?: boolean | undefined;
  /** True if a prompt to a session that does not exist is refused. Default: the session is created. */
  readonly mustExist?: boolean | undefined;
  /** The store of sessions. */
  readonly store: RunStore;
  /** The number of the `run.paused` event that asked the questions. Later questions are not answered. Default: the last event. */
  readonly pausedAt?: number | undefined;
  /** Ends the run as soon as its open calls have results. Default: the run continues. */
  readonly stop?: Stop | undefined;
  /** Restores the transcript to the start of the run when it ends because of the stop. Default: false. */
  readonly rollback?: boolean | undefined;
}

// The claim: matches the options of a run to the stored session.

/** A run that must be closed before its session can be claimed. */
interface MustClose {
  /** The stop with which it ends. */
  readonly close: Stop;
}

/** The error of a request that has begun or continued a run before. */
export class RepeatedRequest extends Error {
  /** The run, and the number of the event before its first one for the request. */
  constructor(readonly run: string, readonly after: number) {
    super("Cannot run: the same request has begun a run");
  }
}

/** Claims a session: reads the state to start from. Throws a `SessionError` if the session cannot be claimed. `SessionWriter.claim()` saves the claim. */
export async function claim(beginning: Beginning): Promise<Claimed | MustClose> {
  const { options, definition, session: id } = beginning;
  const { session, store, messages, compact, owner, parent } = options;
  const key = session === undefined ? undefined : journalKey(owner, session);
  if (session !== undefined && store.unsaved) await store.unsaved.store(session);
  const opened = session === undefined || options.isNew
    ? undefined
    : await readStored(store, { id: session, owner }, openSession);
  const { session: stored } = opened ?? {};
  const repeated = key === undefined || !opened ? undefined : await begunFor(options, key, opened);
  if (key !== undefined && repeated) throw new RepeatedRequest(runIdOf({ key, run: repeated.run }), repeated.after);
  if (!stored && (!messages || options.mustExist)) {
    const verb = messages ? "run" : compact ? "compact" : "resume";
    throw new SessionError(`Cannot ${verb} session "${id}": there is none`, "unknown");
  }
  if (compact && !definition.steps.compact) {
    const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
    throw new SessionError(`Cannot compact session "${id}": ${expected}`, "invalid");
  }
  const busy = busyWith(stored, id, options);
  if (busy) return busy;
  const state = { ...stateOf(stored, owner), key, opened, ...(parent !== undefined && { state: [], rules: [] }) };
  const { messages: transcript } = state;
  if (messages) {
    const before = [...transcript, ...leftBehind(stored)];
    const keep = stored && options.rewind?.(stored, messages);
    const at = definition.reviewsInput && !parent ? "incoming" : "prompt"; // a parent's prompt to its child does not come from outside
    const position = { at, messages, ...(keep !== undefined && { keep }) } as const;
    return {
      ...state,
      type: "new",
      messages: before,
      snapshot: fresh(state, options, { position, before: before.length }),
    };
  }
  if (compact) {
    return {
      ...state,
      type: "new",
      snapshot: fresh(state, options, { position: { at: "compact", ...compact }, before: transcript.length }),
    };
  }
  return await resume(opened, state, beginning);
}

/** Returns the start of a run for the same request, if there was one. That of a repeated request may be older than the base of the session. */
async function begunFor(
  { requestId, isRepeated, store: { journal } }: ClaimOptions,
  key: string,
  { requests, head: { base } }: OpenedSession,
): Promise<BegunRequest | undefined> {
  if (requestId === undefined) return undefined;
  const start = requests.get(requestId);
  if (start || !isRepeated || base === 1) return start;
  return requestsIn(await journal.entries(key, 1, base - 1)).get(requestId);
}

/** The state of a session, without the run. */
type SessionPart = Omit<ClaimedState, "snapshot">;

/** Returns the state of a session that is only looked at. `owner` is that of a new one. */
export function stateOf(stored: Session | undefined, owner?: string): SessionPart {
  return {
    key: undefined,
    opened: undefined,
    messages: stored?.messages ?? [],
    compactions: stored?.compactions ?? 0,
    owner: stored?.owner ?? owner,
    state: stored?.state ?? [],
    rules: stored?.rules ?? [],
    mail: [],
  };
}

/** Throws if a live run has the session. Returns why the run that has it must be closed before a new prompt, if it must. */
function busyWith(stored: Session | undefined, id: string, options: ClaimOptions): MustClose | undefined {
  const { messages, compact, lost, busy } = options;
  const { run, lease } = stored ?? {};
  if (compact && run) throw new SessionError(`Cannot compact session "${id}": a run has it`, "busy", run.id);
  const runs = run !== undefined && !run.exit;
  const isLost = lost ?? ((_, until = Infinity) => Date.now() >= until);
  const lives = runs && !isLost(run.id, lease?.until);
  if (lives && busy !== "replace") {
    throw new SessionError(`Cannot run session "${id}": another run has it`, "busy", run.id);
  }
  return messages && runs ? { close: lives ? stops.replaced : stops.lost } : undefined;
}

/** Returns the messages that a run leaves behind when a new prompt ends its pause: its open calls are answered, and messages to it are kept. */
function leftBehind(stored: Session | undefined): readonly Message[] {
  const { run, mail = [] } = stored ?? {};
  if (!run) return [];
  const rest = skipped("The conversation went on without an answer.");
  return [...closingMessages(run.position, undefined, rest), ...waitingMessages(run.state), ...mailedMessages(mail)];
}

/** Returns the snapshot of a new run. The id of one in a named session tells its place there. */
function fresh(
  { key, opened }: SessionPart,
  {
    run = key && runIdOf({ key, run: (opened?.head.run ?? 0) + 1 }),
    requestId,
    startedAt = Date.now(),
    traceparent,
    call,
  }: ClaimOptions,
  place: Pick<RunSnapshot, "position" | "before">,
): RunSnapshot {
  return {
    id: run ?? crypto.randomUUID(),
    startedAt,
    ...place,
    counters: noCounters,
    usage: noUsage,
    state: call ? [[directCall, call]] : [],
    answers: [],
    events: 0,
    ...(requestId !== undefined && { request: requestId }),
    ...(isTraceparent(traceparent) && { traceparent }),
  };
}

/** Returns the state of a run that continues. */
async function resume(
  opened: OpenedSession | undefined,
  session: SessionPart,
  { definition, options, limits, session: id }: Beginning,
): Promise<Claimed> {
  const { session: stored, mail: posted = [] } = opened ?? {};
  const { run: saved, lease, mail = [] } = stored ?? {};
  const { answers = [], parent } = options;
  if (!stored || !saved || hasMovedOn(stored, options)) {
    const reason = saved ? "it has continued since" : "it is not paused";
    throw new SessionError(
      `Cannot resume session "${id}": ${reason}`,
      "not-paused",
      undefined,
      stored?.messages,
    );
  }
  const paused = isPaused(stored);
  const lost = !paused && lease?.released !== true;
  const newAnswers = matchAnswers(stored, answers);
  if (!parent) await validateEdits(stored, newAnswers, [...definition.tools, ...options.tools ?? []]);
  const earlierAnswers = saved.answers.filter(({ answer }) => !paused || answer.callId !== undefined); // a reply counts for one pause
  const { exit, request: asked, traceparent: traced, recoveries: earlier = 0, ...rest } = saved;
  const events = Math.max(rest.events, opened?.head.events ?? 0); // a claim after the pause may have been undone
  const recoveries = paused ? 0 : earlier + (lost ? 1 : 0);
  const asksStop = posted.flatMap(({ mail }) => mail.type === "stop" ? [mail] : [])[0];
  const stop = options.stop ?? (asksStop && stopFor(asksStop.reason)) ?? (lease && stopOf(lease)) ??
    (recoveries > limits.recoveries ? stops.recoveries : undefined);
  const request = options.requestId ?? (paused ? undefined : asked);
  const traceparent = isTraceparent(options.traceparent) ? options.traceparent : paused ? undefined : traced;
  const snapshot: RunSnapshot = {
    ...rest,
    events,
    answers: [...earlierAnswers, ...newAnswers],
    ...(request !== undefined && { request }),
    ...(traceparent !== undefined && { traceparent }),
    ...(recoveries > 0 && { recoveries }),
  };
  const state = { ...session, snapshot, mail };
  const pause = exit && { exit: restoreSchemas(exit), newAnswers };
  if (stop) {
    const rollback = options.rollback ?? (asksStop?.rollback || lease?.rollback === true);
    return { ...state, type: "closing", stop, rollback, pause };
  }
  if (pause) return { ...state, type: "answered", pause };
  return { ...state, type: lost ? "lost" : "released" };
}

/** Returns true if another run has the session, or this one has asked something else, since the caller looked at it. */
function hasMovedOn({ run }: Session, { run: expected = run?.id, pausedAt = run?.events ?? 0 }: ClaimOptions): boolean {
  return run?.id !== expected || (run?.exit !== undefined && pausedAt < run.events);
}
