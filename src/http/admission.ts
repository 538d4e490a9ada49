/**
 * Step 3 of the request path: checks the messages of the client, and that the session exists, belongs to the client, and can have the run.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";
import { isPaused, questionsOf, type Session, SessionError, type SessionHead } from "../core/session.ts";
import { inputContext } from "../core/transcript.ts";
import { notFound, RequestError } from "./error_response.ts";
import type { AnswersOperation, ChatOperation, OperationOf, PromptOperation, RequestScope } from "./request.ts";
import type { Message, UserMessage } from "../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../protocol/part.ts";
import { invalid } from "../protocol/shape.ts";
import { ifOwnedBy } from "../session/owned_store.ts";
import { loadCaughtUp } from "../session/record/records.ts";
import type { EventCursor, LaunchInput } from "../session/record/run_host.ts";
import { allMessages, lastEventNumber, runOf, waitingPrompt } from "../session/record/run_state.ts";
import type { HeldSession } from "../session/resume_token/mod.ts";
import { messageIdOf } from "../wire/frames.ts";
import type { PendingQuestions, Prompt } from "../wire/wire.ts";

// The content of messages from outside: texts, files, calls and results. All that only this server or its providers write is left out.

/** The authors of the messages that the engine and `compaction()` add, by which they recognise them. */
const reservedAuthors: readonly unknown[] = [
  "compaction",
  "context",
  "input",
  "output",
  "prompt",
  "session",
  "stop",
  "turn",
];

/** Counts the provider notes that are left out. */
interface Dropped {
  notes: number;
}

/** Messages from outside, and the number of provider notes that they had. */
export interface OutsideMessages extends Readonly<Dropped> {
  readonly messages: readonly Message[];
}

/**
 * Returns the messages of a client without their provider notes. Adapters make raw items for a provider of notes, so only those that this server has written
 * count: they are in the stored session. Messages that are empty then, and reserved authors, are left out. Throws a `ShapeError` for the address of a file
 * that a provider would open with the server's own rights.
 */
function outsideMessages(given: readonly Message[]): OutsideMessages {
  const dropped: Dropped = { notes: 0 };
  const messages = given.flatMap((message, index): readonly Message[] => {
    const path = `messages.${index}`;
    if (message.role === "user") return [userMessageOf(message, path, dropped)];
    if (message.role === "tool") {
      const results = message.results.map((result, index) => ({
        ...result,
        parts: partsOf(result.parts, `${path}.results.${index}.parts`, dropped),
      }));
      return [{ ...message, results }];
    }
    const parts = partsOf(message.parts, `${path}.parts`, dropped);
    return parts.length > 0 ? [{ ...message, parts }] : [];
  });
  return { messages, ...dropped };
}

/** Returns one message of a client in the same way. */
export function outsideMessage(message: UserMessage): UserMessage {
  return userMessageOf(message, "", { notes: 0 });
}

function userMessageOf({ from, ...message }: UserMessage, path: string, dropped: Dropped): UserMessage {
  const author = from !== undefined && !reservedAuthors.includes(from) && { from };
  return { ...message, ...author, parts: partsOf(message.parts, path === "" ? "parts" : `${path}.parts`, dropped) };
}

/** Returns the parts without notes. Reasoning that is nothing but a note is left out. */
function partsOf<P extends AnswerPart | ContentPart>(parts: readonly P[], path: string, dropped: Dropped): P[] {
  return parts.flatMap((part, index): P[] => {
    if (part.type === "media" && part.url !== undefined) checkAddress(part.url, `${path}.${index}.url`);
    if (!("meta" in part) || part.meta === undefined) return [part];
    dropped.notes++;
    const { meta: _, ...rest } = part;
    return part.type === "reasoning" && part.text === "" ? [] : [rest as P]; // the same part, without its optional field
  });
}

/** Throws unless an address is public: a provider opens others, such as `gs:` and its own files, with the server's rights. */
function checkAddress(url: string, path: string): void {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  const isOfProvider = /generativelanguage|(^|\.)storage\.(mtls\.)?cloud\.google\.com\.?$/.test(hostname);
  if (isOfProvider || !/^(https?|data):$/.test(protocol)) throw invalid(path, "a public http, https or data URL");
}

// Finds the prompt of a session that a new one replaces.

/**
 * Returns the number of messages before the prompt that the last of `given` replaces: the last prompt with its id, or, with "id-or-content", else the
 * last one with its content. Undefined if there is none.
 */
function messagesBefore(
  session: Session,
  given: readonly Message[],
  replaces: NonNullable<Prompt["replaces"]>,
): number | undefined {
  const prompt = given.at(-1);
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
    held: options.resumeTokens && await options.resumeTokens.hold(),
    ...(replaces && { rewind: (stored, messages) => messagesBefore(stored, messages, replaces) }),
  };
}

/** Returns the messages that a run accepts from a client, and a warning of the provider notes that they have lost. */
function acceptedMessages(given: readonly Message[]): Partial<LaunchInput> {
  const { messages, notes } = outsideMessages(given);
  if (notes === 0) return { messages };
  const message = `Notes of a provider, which only this server may write, were left out of the messages: ${notes}`;
  return { messages, early: [{ type: "warning", code: "note.dropped", message }] };
}

/** A paused run, and the answers for it. */
export interface AdmittedAnswers {
  readonly stored: SessionHead;
  readonly held: HeldSession | undefined;
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
  const held = await resumeTokens?.hold(resumeToken, { session });
  const stored = held ? ifOwnedBy(client.owner, held.session) : await loadCaughtUp(runs, session, client);
  if (!stored) throw notFound(`resume session "${session}"`);
  const run = runOf(stored);
  const pausedAt = lastEventNumber(stored);
  const isOther = (asking ?? run) !== run || (seen !== undefined && seen !== (run ?? ""));
  const isLate = isOther || (isPaused(stored) && at < pausedAt);
  const isPending = run !== undefined && !isLate && isPaused(stored);
  return { stored, held, run, pausedAt, cursor: isPending ? { run, session, after: pausedAt } : undefined, isLate };
}

/** Returns the input of the resumed run. Throws a `SessionError` if the pause is over. */
export async function admitResume(
  { server: { runs }, client }: RequestScope,
  { session, answers, tools, answerFormat, at = Infinity }: AnswersOperation,
  { stored, held, run, pausedAt, cursor, isLate }: AdmittedAnswers,
  requestId: string | undefined,
): Promise<LaunchInput> {
  const isUsed = held && (await runs.records?.catchUp(stored, client) ?? pausedAt) > pausedAt;
  if (run === undefined || isUsed || isLate) {
    throw new SessionError(`Cannot resume session "${session}": it is not paused`, "not-paused");
  }
  return {
    run,
    session,
    answers,
    held,
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
