/**
 * Step 3 of the request path: checks the messages of the client, and that the session exists, belongs to the client, and can have the run.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";
import { isPaused, questionsOf, type Session, SessionError, type SessionHead } from "../core/session.ts";
import { inputContext } from "../core/transcript.ts";
import { outsideMessages } from "./client_parts.ts";
import { notFound, RequestError } from "./error_response.ts";
import type { AnswersOperation, ChatOperation, OperationOf, PromptOperation, RequestScope } from "./request.ts";
import type { Message, UserMessage } from "../protocol/message.ts";
import { invalid } from "../protocol/shape.ts";
import { ifOwnedBy } from "../session/owned_store.ts";
import { loadCaughtUp } from "../session/record/records.ts";
import type { EventCursor, LaunchInput } from "../session/record/run_host.ts";
import { allMessages, lastEventNumber, runOf, waitingPrompt } from "../session/record/run_state.ts";
import type { HeldSession } from "../session/resume_token/mod.ts";
import { messageIdOf } from "../wire/frames.ts";
import type { PendingQuestions, Prompt } from "../wire/wire.ts";

// Finds the prompt of a session that a new one replaces.

/**
 * Returns the number of messages before the prompt that the last of `clientMessages` replaces: the last prompt with its id, or, with "id-or-content", else the
 * last one with its content. Undefined if there is none.
 */
function messagesBefore(
  session: Session,
  clientMessages: readonly Message[],
  replaces: NonNullable<Prompt["replaces"]>,
): number | undefined {
  const prompt = clientMessages.at(-1);
  if (prompt?.role !== "user") return undefined;
  const messages = allMessages(session);
  const lastPrompt = (matches: (message: UserMessage, index: number) => boolean) =>
    messages.findLastIndex((message, index) =>
      message.role === "user" && message.from === undefined && matches(message, index)
    );
  let index = lastPrompt((message, index) => messageIdOf(session.id, message, index) === prompt.id);
  if (index < 0 && replaces === "id-or-content") {
    const content = canonicalJson(prompt.parts);
    index = lastPrompt(({ parts }) => canonicalJson(parts) === content);
  }
  if (index < 0) return undefined;
  const before = messages[index - 1];
  const hasContext = before?.role === "user" && before.from === inputContext; // hooks add it again
  const { keep = session.messages.length } = waitingPrompt(session) ?? {};
  return Math.min(hasContext ? index - 1 : index, keep);
}

// Admission: one function for each operation that launches a run.

/** Admits a prompt to its session. A run that has the session and whose process has died is ended first. */
export async function admitPrompt(
  { server: { options, runs }, client }: RequestScope,
  { session: named, create, input: { replaces, ...input } }: PromptOperation,
  { run, session }: Required<EventCursor>,
): Promise<LaunchInput> {
  const stored = named === undefined ? undefined : await runs.head(named, client);
  if (!stored && named !== undefined && !create) throw notFound(`run session "${named}"`);
  if (stored) await runs.records?.releaseIfLost(stored, client);
  return {
    ...input,
    ...("messages" in input && acceptedMessages(input.messages)),
    run,
    session,
    tokenSession: options.resumeTokens && await options.resumeTokens.hold(),
    ...(replaces && { rewind: (stored, messages) => messagesBefore(stored, messages, replaces) }),
  };
}

/** Returns the messages that a run accepts from a client, and a warning of the provider notes that they have lost. */
function acceptedMessages(clientMessages: readonly Message[]): Partial<LaunchInput> {
  const { messages, notes } = outsideMessages(clientMessages);
  if (notes === 0) return { messages };
  const message = `Notes of a provider, which only this server may write, were left out of the messages: ${notes}`;
  return { messages, early: [{ type: "warning", code: "note.dropped", message }] };
}

/** A paused run, and the answers for it. */
interface AdmittedAnswers {
  readonly stored: SessionHead;
  readonly tokenSession: HeldSession | undefined;
  /** The run that has the session, if there is one. */
  readonly run: string | undefined;
  /** The number of the `run.paused` event. */
  readonly pausedAt: number;
  /** The cursor after the pause; undefined if the run is not paused where the answers belong. */
  readonly cursor: Required<EventCursor> | undefined;
  /** True if another run, or a later pause, has followed the one that the answers are for. */
  readonly isLate: boolean;
}

/** Admits answers to a session, which may be in a resume token. */
export async function admitAnswers(
  { server: { options: { resumeTokens }, runs }, client }: RequestScope,
  { session, resumeToken, run: asking, seen, at = Infinity }: AnswersOperation,
): Promise<AdmittedAnswers> {
  if (resumeTokens && resumeToken === undefined) throw invalid("resumeToken", "the token of the pause");
  const tokenSession = await resumeTokens?.hold(resumeToken, { session });
  const stored = tokenSession
    ? ifOwnedBy(client.owner, tokenSession.session)
    : await loadCaughtUp(runs, session, client);
  if (!stored) throw notFound(`resume session "${session}"`);
  const run = runOf(stored);
  const pausedAt = lastEventNumber(stored);
  const isOther = (asking ?? run) !== run || (seen !== undefined && seen !== (run ?? ""));
  const isLate = isOther || (isPaused(stored) && at < pausedAt);
  const isPending = run !== undefined && !isLate && isPaused(stored);
  return {
    stored,
    tokenSession,
    run,
    pausedAt,
    cursor: isPending ? { run, session, after: pausedAt } : undefined,
    isLate,
  };
}

/** Returns the input of the resumed run. Throws a `SessionError` if the pause is over. */
export async function admitResume(
  { server: { runs }, client }: RequestScope,
  { session, answers, tools, answerFormat, at = Infinity }: AnswersOperation,
  { stored, tokenSession, run, pausedAt, cursor, isLate }: AdmittedAnswers,
  requestId: string | undefined,
): Promise<LaunchInput> {
  const isUsed = tokenSession && (await runs.records?.catchUp(stored, client) ?? pausedAt) > pausedAt;
  if (run === undefined || isUsed || isLate) {
    throw new SessionError(`Cannot resume session "${session}": it is not paused`, "not-paused");
  }
  return {
    run,
    session,
    answers,
    tokenSession,
    pausedAt: cursor ? pausedAt : at,
    ...(tools && { tools }),
    answerFormat,
    requestId,
  };
}

/** Admits a compaction to its session. */
export async function admitCompaction(
  { server: { runs }, client }: RequestScope,
  { session, instructions }: OperationOf<"compact">,
  { run }: EventCursor,
): Promise<LaunchInput> {
  const stored = await runs.head(session, client);
  if (!stored) throw notFound(`compact session "${session}"`);
  await runs.records?.releaseIfLost(stored, client);
  return { run, session, compact: { instructions } };
}

/** Returns the prompt or the answers that a message of a wire's client stands for: it depends on what the session asks. */
export async function admitChat(
  { server: { options: { resumeTokens, busy = "queue" }, runs }, client }: RequestScope,
  { session, create, resumeToken, input, format }: ChatOperation,
): Promise<PromptOperation | AnswersOperation> {
  async function load(id: string): Promise<SessionHead | undefined> {
    if (!resumeTokens || resumeToken === undefined) return await runs.head(id, client);
    return ifOwnedBy(client.owner, await resumeTokens.open(resumeToken, { session: id }));
  }
  const stored = session === undefined ? undefined : await load(session);
  const pending = pendingOf(stored);
  const parsed = input(pending);
  if ("messages" in parsed) {
    const { newSession, ...prompt } = parsed;
    return { type: "prompt", input: prompt, session: newSession ? undefined : session, create, busy, format };
  }
  if (stored && parsed.answers.length === 0) {
    throw new SessionError(`Cannot resume session "${session}": none of its questions is answered`, "unasked");
  }
  if (resumeTokens && resumeToken === undefined) {
    throw new RequestError(400, "invalid", `Cannot resume session "${session}": the resume token is missing`);
  }
  return { ...parsed, type: "answers", session: session ?? "", seen: pending.run, resumeToken, format };
}

function pendingOf(session: SessionHead | undefined): PendingQuestions {
  const questions = isPaused(session) ? questionsOf(session) : [];
  return { questions, run: runOf(session) ?? "", pausedAt: lastEventNumber(session) };
}
