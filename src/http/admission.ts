/**
 * Step 3 of the request path: the run that a request starts or resumes, whether its session exists, belongs to the client, and can have the run.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";
import { isPaused, questionsOf, type Session, SessionError, type SessionHead } from "../core/session.ts";
import { inputContext } from "../core/transcript.ts";
import { outsideMessages } from "./client_parts.ts";
import { notFound, RequestError } from "./error_response.ts";
import {
  type AnswersOperation,
  type ChatOperation,
  type Operation,
  type OperationOf,
  type OperationTable,
  type PromptOperation,
  type RequestScope,
  type StartOperation,
  type StartScope,
} from "./operation.ts";
import type { Busy } from "./options.ts";
import type { Message, UserMessage } from "../protocol/message.ts";
import { invalid } from "../protocol/shape.ts";
import type { ClaimedKey } from "../session/record/idempotency_keys.ts";
import type { LaunchInput } from "../session/record/run_host.ts";
import { allMessages, lastEventNumber, runOf, waitingPrompt } from "../session/record/run_state.ts";
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

// Admission: one function for each operation that starts a run.

/** A start that is admitted: the steps of the request path that follow do not depend on its operation. */
export interface AdmittedStart {
  /** The effect on the start if another run has its session. Default: "refuse". */
  readonly busy?: Busy;
  /** The content of the request. The same idempotency key with another content is refused. */
  readonly content: readonly unknown[];
  /** A key that identifies the request, in place of the one that its client sends. */
  readonly key?: string | undefined;
  /** The session: that of the request, or the id of a new one. */
  readonly session: string;
  /** Returns the input of the run. Called in turn, before each attempt to launch it. Throws if the session cannot have the run at that time. */
  input(key: ClaimedKey): Promise<LaunchInput>;
}

/** Step 3 of the request path. An admission throws if the session of the operation does not exist, or belongs to another owner. */
export const admissions: OperationTable<StartOperation["type"], AdmittedStart> = {
  prompt: admitPrompt,
  answers: admitAnswers,
  chat: admitChat,
  compact: admitCompaction,
};

/** Returns true for an operation that starts or resumes a run. */
export function startsRun(operation: Operation): operation is StartOperation {
  return operation.type in admissions;
}

/** Admits a prompt. Its session is checked in turn: it may exist or be free by then. */
function admitPrompt(scope: RequestScope, operation: PromptOperation): AdmittedStart {
  const { input, session, busy } = operation;
  return {
    busy,
    content: [session, input],
    session: session ?? crypto.randomUUID(),
    input: (key) => promptInput(scope, operation, key),
  };
}

/** Returns the input of the run of a prompt. */
export async function promptInput(
  { server: { options: { resumeTokens, sessions } } }: StartScope,
  { session: named, create, input: { replaces, ...input } }: Pick<PromptOperation, "session" | "create" | "input">,
  { session, isFirst, requestId }: ClaimedKey,
): Promise<LaunchInput> {
  return {
    ...input,
    ...("messages" in input && acceptedMessages(input.messages)),
    session,
    isNew: named === undefined && isFirst,
    mustExist: named !== undefined && !create,
    requestId,
    isRepeated: !isFirst,
    tokenSession: resumeTokens && await resumeTokens.hold(undefined, { store: sessions }),
    ...(replaces && { rewind: (stored, messages) => messagesBefore(stored, messages, replaces) }),
  };
}

/** Returns the messages that a run accepts from a client, and a warning of the provider notes that they have lost. */
function acceptedMessages(clientMessages: readonly Message[]): Partial<LaunchInput> {
  const { messages, notes } = outsideMessages(clientMessages);
  if (notes === 0) return { messages };
  const message = `Notes of a provider, which only this server may write, were left out of the messages: ${notes}`;
  return { messages, firstEvents: [{ type: "warning", code: "note.dropped", message }] };
}

/** Admits answers to the run that has the session, which may be in a resume token. With a store, a resume token is used once. */
async function admitAnswers(scope: RequestScope, operation: AnswersOperation): Promise<AdmittedStart> {
  const { server: { options: { resumeTokens, sessions }, runs }, client } = scope;
  const { session, answers, resumeToken, run: asking, seen, at = Infinity, tools, answerFormat } = operation;
  if (resumeTokens && resumeToken === undefined) throw invalid("resumeToken", "the token of the pause");
  const tokenSession = await resumeTokens?.hold(resumeToken, { session, store: sessions });
  const stored = tokenSession ? ifOwnedBy(client.owner, tokenSession.session) : await runs.head(session, client);
  if (!stored) throw notFound(`resume session "${session}"`);
  const run = runOf(stored);
  const pausedAt = lastEventNumber(stored);
  const isOther = (asking ?? run) !== run || (seen !== undefined && seen !== (run ?? ""));
  const isLate = isOther || (isPaused(stored) && at < pausedAt);
  const isPending = run !== undefined && !isLate && isPaused(stored);
  return {
    content: [answers, resumeToken, asking, operation.at],
    key: tokenSession && `resumeToken:${run}:${pausedAt}`,
    session,
    input({ requestId, isFirst }) {
      if (run === undefined || tokenSession?.isUsed || isLate) {
        throw new SessionError(`Cannot resume session "${session}": it is not paused`, "not-paused");
      }
      return Promise.resolve({
        run,
        session,
        answers,
        tokenSession,
        pausedAt: isPending ? pausedAt : at,
        ...(tools && { tools }),
        answerFormat,
        requestId,
        isRepeated: !isFirst,
      });
    },
  };
}

/** Admits a compaction. Its session is checked in turn. */
function admitCompaction(_: RequestScope, { session, instructions }: OperationOf<"compact">): AdmittedStart {
  return {
    content: [session, instructions],
    session,
    input: ({ requestId, isFirst }) =>
      Promise.resolve({ session, compact: { instructions }, requestId, isRepeated: !isFirst }),
  };
}

/** Admits a message of a wire's client: a prompt or answers, which depends on what the session asks. */
async function admitChat(scope: RequestScope, operation: ChatOperation): Promise<AdmittedStart> {
  const parsed = await operationOf(scope, operation);
  return parsed.type === "prompt" ? admitPrompt(scope, parsed) : await admitAnswers(scope, parsed);
}

/** Returns the prompt or the answers that a message of a wire's client stands for. */
async function operationOf(
  { server: { options: { resumeTokens, wireBusy: busy }, runs }, client }: RequestScope,
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
    throw unanswered(stored, pending);
  }
  if (resumeTokens && resumeToken === undefined) {
    throw new RequestError(400, "invalid", `Cannot resume session "${session}": the resume token is missing`);
  }
  return { ...parsed, type: "answers", session: session ?? "", seen: pending.run, resumeToken, format };
}

/** Returns the error for a message with answers to other questions than those that the session asks now. Another tab may have answered them. */
function unanswered({ id }: SessionHead, { questions }: PendingQuestions): SessionError {
  const why = questions.length > 0
    ? "its answers belong to questions that are no longer open"
    : "its questions were answered before, for example in another tab";
  return new SessionError(`Cannot resume session "${id}": ${why}; load the session again`, "unasked");
}

function pendingOf(session: SessionHead | undefined): PendingQuestions {
  const questions = isPaused(session) ? questionsOf(session) : [];
  return { questions, run: runOf(session) ?? "", pausedAt: lastEventNumber(session) };
}

/** Returns the session if it belongs to `owner`. Without an owner, every session is returned. */
function ifOwnedBy<S extends SessionHead>(owner: string | undefined, session: S | undefined): S | undefined {
  return owner === undefined || session?.owner === owner ? session : undefined;
}
