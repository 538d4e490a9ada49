/**
 * Chat completions as responses: a stream of chunks or one JSON body, and questions to a person as text.
 *
 * @module
 */
import type { Event, FinishReason } from "../../protocol/event.ts";
import { noUsage, textOf, type Usage, usageSince } from "../../protocol/message.ts";
import type { AddedPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { clientTools, isForClient } from "../client_tool.ts";
import { failedResponse } from "../failed_response.ts";
import { completionReasons, finishOfRun, type NativeFinish, nativeFinish } from "../finish_reason.ts";
import { doneFrame, frameOf } from "../frames.ts";
import {
  type CallPlace,
  chatInputOf,
  type Conversation,
  type ConversationInput,
  encodeCallId,
} from "./conversation.ts";
import { encodeTokens, type EndEvent, errorOf, refusalIn, responseName } from "./run_error.ts";
import {
  askedText,
  type EventEncoder,
  type EventOf,
  type JsonResponse,
  pauseId,
  type PendingQuestions,
  questionId,
  type ResponseCollector,
  tableEncoder,
} from "../wire.ts";

// Questions to a person as text, for clients that have no other way to answer. The text ends with an id, which the client sends back with its history.

/** The questions of one pause. */
interface AskedQuestions extends PendingQuestions {
  readonly session: string;
}

/** Begins the id: the session's id, the pause, and the length of the session's id, which comes last because the text is read from its end. */
const idStart = "(request ";

/** Returns the questions as text; an empty text if there are none for a person. */
function questionText({ session, questions, ...pause }: AskedQuestions): string {
  const asked = questions.filter((question) => !isForClient(question));
  if (asked.length === 0) return "";
  const texts = asked.map(askedText);
  const isApproval = asked.some(({ tool }) => tool !== undefined);
  const hint = isApproval ? `Reply "yes" to approve, or "no" and a reason.` : "Reply with your answer.";
  return `${texts.join("\n\n")}\n\n${hint} ${idStart}${session}.${pauseId(pause)}.${session.length})`;
}

/** Returns the session and the pause of a text that `questionText()` made. */
function questionPlace(text: string): CallPlace | undefined {
  const match = /\.([^.]*)\.(\d+)\)\s*$/.exec(text);
  if (!match) return undefined;
  const [, call = "", length] = match;
  const end = match.index;
  const start = end - Number(length);
  return text.slice(0, start).endsWith(idStart) ? { session: text.slice(start, end), call } : undefined;
}

const yes = /^\s*(?:yes|y|ok|okay|approved?)(?:,? please)?[\s.!]*$/i;
const no = /^\s*no\b[\s,.:;!-]*(.*)$/is;

/** Returns the answers that a reply gives. Returns undefined if a call waits for approval and the reply is neither "yes" nor "no": nothing runs without a clear yes. */
function answersIn(text: string, questions: readonly Question[]): readonly PersonAnswer[] | undefined {
  const reason = no.exec(text)?.[1];
  const isYes = yes.test(text);
  const asked = questions.filter((question) => !isForClient(question));
  if (!isYes && reason === undefined && asked.some(({ tool }) => tool !== undefined)) return undefined;
  return asked.map(({ callId = "", tool }) => {
    if (tool === undefined) return { ...(callId !== "" && { callId }), type: "reply", text };
    return isYes ? { callId, type: "approve" } : { callId, type: "deny", ...(reason && { reason }) };
  });
}

/**
 * Returns the input of a conversation whose client holds the history and can answer only by text.
 * The input is answers if the last message replies to a question of `questionText()`, and otherwise that of `chatInputOf()`.
 */
export function textInputOf(conversation: Conversation): ConversationInput {
  const { entries, session, tools, answerFormat } = conversation;
  const input = chatInputOf(conversation);
  const asking = entries.findLastIndex(({ role }) => role === "assistant");
  const [question, ...replies] = entries.slice(Math.max(0, asking));
  const place = question?.role === "assistant" ? questionPlace(textOf(question)) : undefined;
  const messages = replies.filter((entry) => entry.role === "user");
  const reply = messages.at(-1);
  if (!place || !reply || messages.length < replies.length || place.session !== (session ?? place.session)) {
    return input;
  }
  return {
    session: place.session,
    input(pending) {
      const { questions } = pending;
      const isOpen = questions.length > 0 && place.call === pauseId(pending);
      if (!isOpen) return { newSession: session === undefined, ...input.input(pending) };
      const answers = answersIn(textOf(reply), questions);
      const forClient = clientTools(tools, questions);
      return { ...(answers ? { answers } : { messages }), tools: forClient, answerFormat };
    },
  };
}

// The parts that the stream and the JSON body share.

/** Returns the fields that every chunk of a completion repeats. The completion begins with the event `started`, whose number is `number`. */
function completionHead(started: EventOf<"run.started">, number: number, model: string): object {
  return { id: `chatcmpl-${responseName(started, number)}`, created: Math.floor(Date.now() / 1_000), model };
}

/** The end of a completion. */
interface CompletionEnd extends NativeFinish {
  /** Text to add: the question to a person, or the answer if no text was sent before. */
  readonly text: string;
  /** The calls that the client runs. */
  readonly calls: readonly object[];
  readonly finish_reason: string;
}

/** The completion so far. */
interface CompletionState {
  readonly run: string;
  readonly session: string;
  readonly finish: FinishReason;
  readonly hasText: boolean;
}

/** Returns the end of a completion; `id` is the number of the event. */
function completionEnd(
  end: EndEvent,
  id: number,
  { run, session, finish, hasText }: CompletionState,
): CompletionEnd {
  const questions = end.type === "run.paused" ? end.questions : [];
  const pause = { run, pausedAt: id };
  const calls = questions.filter(isForClient).map(({ callId, tool: name, input }) => ({
    id: encodeCallId({ session, call: questionId(callId, pause) }),
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const text = end.type === "run.finished" && !hasText ? end.text : questionText({ ...pause, session, questions });
  const reason = finishOfRun(end, finish);
  const finish_reason = calls.length > 0 ? "tool_calls" : completionReasons[reason] ?? reason;
  return { text, calls, finish_reason, ...(end.type === "run.finished" && nativeFinish(end)) };
}

/** A call that the provider has run, in the form of compatible servers. */
interface ExecutedTool {
  readonly id: string;
  readonly type: string;
  readonly arguments?: string;
  output?: string;
}

/** The fields of a message for parts that are complete at once. */
interface PartFields {
  annotations?: object[];
  images?: object[];
  audio?: object;
  refusal?: string;
  executed_tools?: ExecutedTool[];
  logprobs?: { readonly content: object[]; readonly refusal: null };
}

/**
 * Encodes sources as annotations, a recording as audio, other generated files as images, refusals, and calls that the provider runs as executed tools. The
 * images and the executed tools are extensions of compatible servers. The log probabilities belong to the choice, not to its message.
 */
function partFields(parts: readonly AddedPart[]): PartFields {
  const fields: PartFields = {};
  for (const part of parts) addPart(fields, part);
  return fields;
}

function addPart(fields: PartFields, part: AddedPart): void {
  switch (part.type) {
    case "source": {
      const { url, title = url } = part;
      const citation = { url, title, start_index: 0, end_index: 0 };
      if (url !== undefined) (fields.annotations ??= []).push({ type: "url_citation", url_citation: citation });
      break;
    }
    case "media": {
      const { mediaType, data, url = `data:${mediaType};base64,${data}` } = part;
      if (mediaType.startsWith("audio/") && data !== undefined) {
        fields.audio ??= { id: "audio", data, transcript: "", expires_at: 0 };
      } else (fields.images ??= []).push({ type: "image_url", image_url: { url } });
      break;
    }
    case "refusal":
      if (part.text !== "") fields.refusal = (fields.refusal ?? "") + part.text;
      break;
    case "provider_call":
      (fields.executed_tools ??= []).push({ ...toolOf(part), arguments: JSON.stringify(part.input) });
      break;
    case "provider_result": {
      const tools = fields.executed_tools ??= [];
      const output = JSON.stringify(part.output);
      const startedTool = tools.find(({ id }) => id === part.callId);
      if (startedTool) startedTool.output = output;
      else tools.push({ ...toolOf(part), output });
      break;
    }
    case "logprobs": {
      const { content } = fields.logprobs ??= { content: [], refusal: null };
      content.push(...encodeTokens(part.tokens));
    }
  }
}

function toolOf({ callId: id, name: type }: ProviderCallPart | ProviderResultPart): ExecutedTool {
  return { id, type };
}

/** Encodes the token usage. */
function completionUsage({ input, output, cached, cacheWrite, reasoning }: Required<Usage>): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

// Events of a run as chunks of a chat completion. The format cannot take back streamed text, so a notice tells that it was discarded.

/** The notice behind a text that was sent and is not part of the answer. */
const notice = "\n\n[The answer above was discarded.]";

/** Options of one stream. */
interface CompletionOptions {
  /** Whether the token usage is sent at its end. */
  readonly includeUsage: boolean;
  /** Whether the text is one JSON text, to which nothing is added. */
  readonly isJson: boolean;
}

/** Creates the encoder of one stream. */
export function completionEncoder(model: string, { includeUsage, isJson }: CompletionOptions): EventEncoder {
  let run = "";
  let session = "";
  let head: object | undefined;
  /** The frame of a text delta, up to the delta. */
  let beforeDelta = "";
  let finish: FinishReason = "other";
  let before = noUsage;
  const turns = turnCollector();
  let turn: number | undefined;
  /** Whether earlier turns have text, and the text of this turn that was sent. */
  let hasText = false;
  let sent = "";

  function frame(fields: object): string {
    return frameOf({ ...head, object: "chat.completion.chunk", ...fields });
  }

  function chunk(delta: object, finish_reason: string | null = null, more?: object): string {
    return frame({ choices: [{ index: 0, delta, ...more, finish_reason }] });
  }

  function textDelta(text: string): string {
    if (text === "") return "";
    const delta = sent === "" && hasText && !isJson ? `\n\n${text}` : text;
    sent += delta;
    return `${beforeDelta}${JSON.stringify(delta)}},"finish_reason":null}]}\n\n`;
  }

  function endParagraph(): void {
    hasText ||= sent !== "";
    sent = "";
  }

  /** Tells the client to discard the text of this turn, and this reasoning. A client that cannot do so shows the notice. */
  function discard(reasoning_content: string): string {
    const content = isJson ? "" : sent;
    if (!isJson) sent = "";
    if (content + reasoning_content === "") return "";
    const discarded = { ...(content && { content }), ...(reasoning_content && { reasoning_content }) };
    const delta = {
      ...(content && { content: hasText ? notice : `${notice}\n\n` }),
      ...(reasoning_content && { reasoning_content: `${notice}\n\n` }),
    };
    return frame({ discarded, choices: [{ index: 0, delta, finish_reason: null }] });
  }

  /** Begins a turn, or begins it again. */
  function startTurn(event: EventOf<"model.started" | "model.reset">): string {
    const discarded = event.turn === turn ? discard(turns.current.reasoning) : "";
    if (event.turn !== turn) endParagraph();
    ({ turn } = event);
    turns.add(event);
    return discarded;
  }

  /** Sends the rest of the final text, or the whole if it does not begin with the text that was sent. */
  function finishText(final: string): string {
    const { text } = turns.current;
    return final.startsWith(text) ? textDelta(final.slice(text.length)) : discard("") + textDelta(final);
  }

  function end(event: EndEvent, id: number): string {
    const error = errorOf(event);
    if (error) return frameOf({ error }) + doneFrame;
    endParagraph();
    const { text, calls, finish_reason, ...native } = completionEnd(event, id, { run, session, finish, hasText });
    const tool_calls = calls.map((call, index) => ({ index, ...call }));
    const { logprobs, ...parts } = partFields([...turns.all().flatMap(({ parts }) => parts), ...refusalIn(event)]);
    const hasParts = logprobs !== undefined || Object.keys(parts).length > 0;
    return [
      textDelta(text),
      hasParts ? chunk(parts, null, { logprobs }) : "",
      calls.length > 0 ? chunk({ tool_calls }) : "",
      chunk({}, finish_reason, native),
      includeUsage ? frame({ choices: [], usage: completionUsage(usageSince(event.usage, before)) }) : "",
      doneFrame,
    ].join("");
  }

  const add = (event: EventOf<"part.added" | "provider_tool.started" | "provider_tool.finished">) => {
    turns.add(event);
    return "";
  };

  return tableEncoder({
    "text.delta"(event) {
      turns.add(event);
      return textDelta(event.text);
    },
    "reasoning.delta"(event) {
      turns.add(event);
      return chunk({ reasoning_content: event.text });
    },
    "part.added": add,
    "provider_tool.started": add,
    "provider_tool.finished": add,
    "run.started"(event, id) {
      if (head) return "";
      ({ run, session, usage: before = noUsage } = event);
      head = completionHead(event, id, model);
      beforeDelta = frame({ choices: [{ index: 0, delta: { content: "" } }] }).slice(0, -'""}}]}\n\n'.length);
      return chunk({ role: "assistant", content: "" });
    },
    "turn.started"() {
      finish = "other"; // a hook may answer the turn without the model
      return "";
    },
    "model.started": startTurn,
    "model.reset": startTurn,
    "model.finished"(event) {
      finish = event.finish;
      return event.text === undefined ? "" : finishText(event.text);
    },
    "run.paused": end,
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}

// Events of a run as a chat completion with one JSON body.

/** The output of one turn. */
interface Turn {
  text: string;
  reasoning: string;
  parts: AddedPart[];
}

/** Collects the output of each turn. A turn that begins again replaces its first output. */
interface TurnCollector {
  /** The turn that the model writes. */
  readonly current: Readonly<Turn>;
  /** The turns so far. */
  all(): readonly Turn[];
  /** Adds an event of a response. */
  add(event: Event): void;
}

/** Creates the collector of one completion. */
function turnCollector(): TurnCollector {
  const turns = new Map<number, Turn>();
  const none: Turn = { text: "", reasoning: "", parts: [] };
  const collector = {
    current: none,
    all: () => [...turns.values()],
    add(event: Event): void {
      const { current } = collector;
      switch (event.type) {
        case "model.started":
        case "model.reset":
          collector.current = { text: "", reasoning: "", parts: [] };
          turns.set(event.turn, collector.current);
          break;
        case "part.added":
        case "provider_tool.started":
        case "provider_tool.finished":
          current.parts.push(event.content);
          break;
        case "text.delta":
          current.text += event.text;
          break;
        case "reasoning.delta":
          current.reasoning += event.text;
          break;
        case "model.finished":
          current.text = event.text ?? current.text;
      }
    },
  };
  return collector;
}

/** Creates the collector of one completion. */
export function completionCollector(model: string): ResponseCollector {
  let head: object | undefined;
  let run = "";
  let session = "";
  let finish: FinishReason = "other";
  let before = noUsage;
  const turns = turnCollector();

  function responseOf(end: EndEvent, id: number): JsonResponse {
    const error = errorOf(end);
    if (error) return failedResponse(end, { error });
    const all = turns.all();
    const texts = all.map(({ text }) => text).filter((text) => text !== "");
    const { text, calls, ...reasons } = completionEnd(end, id, { run, session, finish, hasText: texts.length > 0 });
    const reasoning_content = all.map(({ reasoning }) => reasoning).join("");
    const { logprobs = null, ...fields } = partFields([...all.flatMap(({ parts }) => parts), ...refusalIn(end)]);
    const message = {
      role: "assistant",
      content: [...texts, ...text === "" ? [] : [text]].join("\n\n") || null,
      ...(reasoning_content !== "" && { reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls }),
      refusal: null,
      ...fields,
    };
    const choices = [{ index: 0, message, ...reasons, logprobs }];
    const usage = completionUsage(usageSince(end.usage, before));
    return { status: 200, body: { ...head, object: "chat.completion", choices, usage } };
  }

  return (event, id) => {
    turns.add(event);
    switch (event.type) {
      case "run.started":
        if (head) break;
        head = completionHead(event, id, model);
        ({ run, session, usage: before = noUsage } = event);
        break;
      case "turn.started":
        finish = "other"; // a hook may answer the turn without the model
        break;
      case "model.finished":
        finish = event.finish;
        break;
      case "run.paused":
      case "run.finished":
      case "run.failed":
      case "run.aborted":
        return responseOf(event, id);
    }
    return undefined;
  };
}
