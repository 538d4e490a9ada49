/**
 * The stored state of runs. No other file of `session`, `http` and `testing` reads or changes the `run` of a session.
 *
 * @module
 */
import type { PositionAt } from "../../core/position.ts";
import type { Event } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { Question } from "../../protocol/question.ts";
import { questionsOf, type Session, type SessionHead } from "../../core/session.ts";

/** A session, or nothing where there is none. */
type Stored = SessionHead | undefined;

/** Returns the id of the run that has the session, running or paused. */
export function runOf(session: Stored): string | undefined {
  return session?.run?.id;
}

/** Returns the id of the run that has the session, or else of the run that ended last. */
export function latestRunOf(session: Stored): string | undefined {
  return session?.run?.id ?? session?.last?.run;
}

/** Whether `run` (default: some run) has the session and is not paused. Its process may be dead. */
export function isRunning(session: Stored, run = runOf(session)): boolean {
  return session?.run !== undefined && !session.run.exit && session.run.id === run;
}

/** Returns the number of the last event of the run that has the session, or 0. */
export function lastEventNumber(session: Stored): number {
  return session?.run?.events ?? 0;
}

/** Returns when the lease of the run ends, in milliseconds since 1970. */
export function leaseEnd(session: Stored): number {
  return session?.lease?.until ?? Infinity;
}

/** The place of a question: its call, and the pause of the run at which it was asked. */
export interface QuestionAddress {
  readonly run: string;
  /** The number of the `run.paused` event. */
  readonly at: number;
  readonly callId: string;
  /** When the question was reported, in milliseconds since 1970. */
  readonly issued: number;
}

/**
 * Returns the state of a question. "open": the run is paused, and may still ask it. "working": the run works on the answers to other questions of that pause, and
 * its call waits. "closed": it was answered, or the run went on without an answer. A session that was deleted and created again has another run with the same id.
 */
export function questionState(
  session: Stored,
  { run: id, at, callId, issued }: QuestionAddress,
): "open" | "working" | "closed" {
  const { run } = session ?? {};
  if (run?.id !== id || run.startedAt > issued || run.events < at) return "closed";
  const state = run.exit ? "open" : "working";
  if (run.exit && run.events === at) return state;
  const [call, inner] = callId.split("/");
  const record = run.position.at === "tools" ? run.position.calls.find((each) => each.call.id === call) : undefined;
  const isWaiting = record?.state === "waiting" || record?.state === "pending" ||
    (inner !== undefined && record?.state === "running");
  return isWaiting && !run.answers.some(({ answer }) => answer.callId === callId) ? state : "closed";
}

/** Returns what a client may see of the run that has the session. */
export function runView(
  session: SessionHead,
): { id: string; status: string; questions: readonly Question[] } | undefined {
  const { run } = session;
  return run && { id: run.id, status: run.exit ? "paused" : "running", questions: questionsOf(session) };
}

/** Returns the last event of a run that has paused or ended; undefined if its session does not know the run. */
export function knownEnd(session: Stored, run: string): Event | undefined {
  if (session?.run?.id === run) {
    return { type: "run.paused", questions: questionsOf(session), usage: session.run.usage };
  }
  return session?.last?.run === run ? session.last.event : undefined;
}

/** Returns the position of a run that has not accepted its prompt yet. */
export function waitingPrompt({ run }: SessionHead): PositionAt<"incoming" | "prompt"> | undefined {
  const { position } = run ?? {};
  return position?.at === "incoming" || position?.at === "prompt" ? position : undefined;
}

/** Returns the messages of a session, and the prompt that its run has not accepted yet. No client may see them: the `input` hooks may still change the prompt. */
export function allMessages(session: Session): readonly Message[] {
  const { keep, messages } = waitingPrompt(session) ?? { messages: [] };
  return [...session.messages.slice(0, keep), ...messages];
}
