/**
 * Masks JSON values, messages and results, events, and the requests to the model.
 *
 * @module
 */
import { cover, type Mask, maxRounds, type Span } from "./mask.ts";
import type {
  AnswerPart,
  Call,
  CallResult,
  ContentPart,
  Event,
  Message,
  ModelRequest,
  Question,
  ToolResult,
} from "../../../mod.ts";
import type {
  HookChange,
  InnerCall,
  InnerCalls,
  LogprobsPart,
  ProviderCallPart,
  ProviderResultPart,
} from "../../../src/core/engine.ts";
import { mapLeaves } from "../../../src/core/kit.ts";

/** Masks every text, number and key in a value, whatever its shape. Returns the same value if nothing changes. */
export function maskValue<T>(value: T, { whole }: Pick<Mask, "whole">): T {
  return mapLeaves(value, (leaf) => maskLeaf(leaf, whole), whole) as T; // of the same shape; a number that is a secret becomes a text
}

/** Masks the name of a tool, which a model may have made up. The new name is one that providers accept. */
export function maskName(name: string, { whole }: Pick<Mask, "whole">): string {
  return whole(name) === name ? name : "redacted";
}

function maskLeaf(leaf: unknown, whole: Mask["whole"]): unknown {
  if (typeof leaf === "string") return whole(leaf);
  if (typeof leaf !== "number" && typeof leaf !== "bigint") return leaf;
  const text = whole(String(leaf));
  return text === String(leaf) ? leaf : text;
}

/** Masks the values of some fields of an object; its other fields, such as ids and types, stay as they are. */
export function maskFields<T extends object>(value: T, fields: readonly string[], mask: Pick<Mask, "whole">): T {
  let masked = value;
  for (const [key, field] of Object.entries(value)) {
    const kept = fields.includes(key) ? maskValue(field, mask) : field;
    if (!Object.is(kept, field)) masked = { ...masked, [key]: kept };
  }
  return masked;
}

/** Fields of questions that contain text or JSON. The others are ids, and names of agents. */
const questionFields = ["input", "questions", "schema", "suggestions"];

/** Masks a question to a person. */
export function maskQuestion<Q extends Partial<Question>>(question: Q, mask: Mask): Q {
  const masked = maskFields(question, questionFields, mask);
  const tool = question.tool === undefined ? undefined : maskName(question.tool, mask);
  return tool === question.tool ? masked : { ...masked, tool };
}

/** Masks each item of a list. Returns the same list if nothing changes. */
export function maskEach<T>(items: readonly T[], masked: (item: T) => T): readonly T[] {
  const all = items.map(masked);
  return all.every((each, index) => Object.is(each, items[index])) ? items : all;
}

type Part = AnswerPart | ContentPart;

/**
 * Masks the texts, the thoughts, the calls, the sources and the provider's calls and results of parts. A secret that is split over several texts is found
 * too. Of media, only the provider's own data is masked.
 */
export function maskParts<P extends Part>(parts: readonly P[], mask: Mask): readonly P[] {
  let clean = true;
  const calls = parts.map((part) => {
    const masked = part.type === "call"
      ? maskCall<Call>(part, mask)
      : part.type === "source"
      ? maskFields(part, ["url", "title", "text"], mask)
      : part.type === "media" && part.meta !== undefined
      ? maskFields(part, ["meta"], mask)
      : part.type === "refusal"
      ? maskFields(part, ["text", "category"], mask)
      : part.type === "logprobs"
      ? maskTokens(part, mask)
      : part.type === "provider_call" || part.type === "provider_result"
      ? maskProvider(part, mask)
      : isFromClient(part)
      ? maskFields(part, ["meta"], mask)
      : part;
    if (masked === part) return part;
    clean = false;
    return { ...part, ...masked };
  });
  return maskTexts<P>(maskTexts<P>(clean ? parts : calls, "text", mask), "reasoning", mask);
}

/** True for a thought with an item that a client sent. A provider's own thoughts name its model; they may be signed, and stay as they are. */
function isFromClient(part: Part): part is Extract<Part, { readonly type: "reasoning" }> {
  const meta = part.type === "reasoning" ? Object(part.meta) : {};
  return "item" in meta && !("model" in meta);
}

/** Leaves out the tokens if their text, or one of them, contains a secret: its parts cannot be told from the rest. */
function maskTokens(part: LogprobsPart, mask: Mask): LogprobsPart {
  const texts = part.tokens.flatMap(({ token, top = [] }) => [token, ...top.map((each) => each.token)]);
  const all = [part.tokens.map(({ token }) => token).join(""), ...texts];
  return all.some((text) => mask.whole(text) !== text) ? { ...part, tokens: [] } : part;
}

/** Masks a call that the provider runs, or its result. Its id stays. */
function maskProvider<P extends ProviderCallPart | ProviderResultPart>(part: P, mask: Mask): P {
  const name = maskName(part.name, mask);
  const masked = maskFields(part, ["server", "input", "output", "meta"], mask);
  return name === part.name ? masked : { ...masked, name };
}

/** Masks the texts of one type as if they were one text, until masking them again changes nothing. */
function maskTexts<P extends Part>(parts: readonly P[], type: "text" | "reasoning", mask: Mask): readonly P[] {
  let masked = parts;
  for (let round = 0; round < maxRounds; round++) {
    const next = maskTextsOnce(masked, type, mask);
    if (next === masked) break;
    masked = next;
  }
  return masked;
}

/** Masks the texts of one type. The mask takes the place of the end of a secret; a text that becomes empty is left out. */
function maskTextsOnce<P extends Part>(parts: readonly P[], type: "text" | "reasoning", mask: Mask): readonly P[] {
  const texts = parts.map((part) => part.type === type ? part.text : "");
  const joined = texts.join("");
  const spans = mask.find(joined);
  if (spans.length === 0) return parts;
  let start = 0;
  const masked = parts.flatMap((part, index) => {
    const text = texts[index] ?? "";
    const range: Span = [start, start += text.length];
    if (text === "") return [part];
    const masked = coverRange(joined, spans, range);
    return masked === "" ? [] : [masked === text ? part : { ...part, text: masked }];
  });
  return masked.length === parts.length && masked.every((part, index) => part === parts[index]) ? parts : masked;
}

/** Covers the part of `text` in a range. A span that ends after the range is left out of it. */
function coverRange(text: string, spans: readonly Span[], [from, to]: Span): string {
  const inside = spans.filter(([, end]) => end > from && end <= to).map(([start, end]) =>
    [Math.max(start, from), end] as const
  );
  const cut = spans.find(([start, end]) => start < to && end > to)?.[0] ?? to;
  return cover(text, inside, from, Math.max(from, cut));
}

/** Masks the name and the input of a call. The reason why an input is not JSON is replaced, because it quotes the input. */
export function maskCall<C extends Call>(call: C, mask: Mask): C {
  const name = maskName(call.name, mask);
  const input = maskValue(call.input, mask);
  if (call.malformed !== undefined) return { ...call, name, input, malformed: "not JSON" };
  return name === call.name && Object.is(input, call.input) ? call : { ...call, name, input };
}

// Masks messages and results, each message once.

/** Masks a message. */
function maskMessage(message: Message, mask: Mask): Message {
  if (message.role !== "tool") return maskContent(message, mask);
  const results = maskEach(message.results, (result) => maskCallResult(result, mask));
  return results === message.results ? message : { ...message, results };
}

/** Masks messages. Returns the same list if nothing changes. */
export type MaskMessages = (messages: readonly Message[]) => readonly Message[];

/** Returns a function that masks each message once, although it is in every request and in every save. */
export function messagesMask(mask: Mask): MaskMessages {
  const known = new WeakMap<Message, Message>();
  const maskOnce = (message: Message) => {
    const earlier = known.get(message);
    if (earlier) return earlier;
    const masked = maskMessage(message, mask);
    known.set(message, masked).set(masked, masked);
    return masked;
  };
  return (messages) => maskEach(messages, maskOnce);
}

/** A message or a result. */
interface Content {
  readonly parts: readonly Part[];
  readonly from?: string;
}

/** Masks the parts of a message or a result, and the author that a message names. */
export function maskContent<T extends Content>(original: T, mask: Mask): T {
  const content = maskFields(original, ["from"], mask);
  const parts = maskParts(content.parts, mask);
  return parts === content.parts ? content : { ...content, parts };
}

/** Masks the result of a call as the transcript and events have it. */
export function maskCallResult<R extends CallResult>(result: R, mask: Mask): R {
  const name = maskName(result.name, mask);
  const artifacts = maskValue(result.artifacts, mask);
  const masked = maskInner(maskContent(result, mask), mask);
  return name === result.name && artifacts === result.artifacts
    ? masked
    : { ...masked, name, ...(artifacts && { artifacts }) };
}

/** Masks the calls inside the subagent of a call. */
export function maskInner<T extends { readonly inner?: InnerCalls }>(value: T, mask: Mask): T {
  const { inner } = value;
  if (!inner) return value;
  const calls = maskEach(inner.calls, (call) => maskInnerCall(call, mask));
  return calls === inner.calls ? value : { ...value, inner: { ...inner, calls } };
}

function maskInnerCall(call: InnerCall, mask: Mask): InnerCall {
  const name = maskName(call.name, mask);
  const parts = call.parts && maskParts(call.parts, mask);
  const answer = call.answer && maskFields(call.answer, ["reason"], mask);
  const masked = maskFields(call, ["input", "questions", "output"], mask);
  const isClean = name === call.name && parts === call.parts && answer === call.answer;
  return isClean ? masked : { ...masked, name, ...(parts && { parts }), ...(answer && { answer }) };
}

/** Masks texts that the model reads one after another. A secret that is split over several texts is found too. */
export function maskContext(context: readonly string[], mask: Mask): readonly string[] {
  const textParts = context.map((text) => ({ type: "text", text }) as const);
  const parts = maskParts(textParts, mask);
  return parts === textParts ? context : parts.map(({ text }) => text);
}

/** Masks a tool's result: its parts, its context, its artifacts, the text for the person, and the input. */
export function maskResult(result: ToolResult, mask: Mask): ToolResult {
  const { artifacts, person, input } = result;
  const fields = { artifacts, person, input };
  const kept = maskValue(fields, mask);
  const parts = maskParts(result.parts, mask);
  const context = result.context && maskContext(result.context, mask);
  if (kept === fields && parts === result.parts && context === result.context) return result;
  return {
    ...result,
    parts,
    ...(context && { context }),
    ...(kept.artifacts && { artifacts: kept.artifacts }),
    ...(kept.person !== undefined && { person: kept.person }),
    ...(kept.input !== undefined && { input: kept.input }),
  };
}

// Masks events: every field that is not known to be an id, a name or a number.

const ids = ["run", "session", "request", "call", "batch", "error", "resumeToken"];
/** Names that the application chose. */
const names = ["agent", "middleware", "model", "name"];
const enumerations = ["code", "point", "status", "finish", "decision", "by", "source", "trigger", "change"];
/** The acts of a hook, in words of the engine. */
const acts = ["did", "changed", "decided"];
const numbers = ["turn", "part", "index", "usage", "attempts", "before", "after", "ms", "retryAfter", "resumed"];

/** The fields of events that stay. Any other field is masked, also one of an event that is new. */
const keptFields: ReadonlySet<string> = new Set(["type", ...ids, ...names, ...enumerations, ...acts, ...numbers]);

/** Masks an event, except for deltas: `RunEvents` and `StreamedResponse` mask them, because a secret may be split over several. */
export function maskEvent(event: Event, mask: Mask): Event {
  switch (event.type) {
    case "text.delta":
    case "reasoning.delta":
    case "call.delta":
      return event;
    case "subagent.event":
      return replaced(event, "event", maskEvent(event.event, mask));
    case "prompt.accepted":
      return replaced(event, "prompt", maskContent(event.prompt, mask));
    case "steering.injected":
      return replaced(event, "messages", maskEach(event.messages, (message) => maskContent(message, mask)));
    case "part.added":
      return replaced(event, "content", maskParts([event.content], mask)[0] ?? event.content);
    case "provider_tool.started":
    case "provider_tool.finished":
      return replaced(event, "content", maskProvider(event.content, mask));
    case "call.ready":
      return replaced(event, "call", maskCall(event.call, mask));
    case "tool.started":
      return replaced(event, "name", maskName(event.name, mask));
    case "tool.finished":
      return replaced(event, "result", maskCallResult(event.result, mask));
    case "approval.asked":
      return maskQuestion(event, mask);
    case "hook.acted":
      return event.changes ? { ...event, changes: maskEach(event.changes, (each) => maskChange(each, mask)) } : event;
    case "run.paused":
      return replaced(event, "questions", maskEach(event.questions, (question) => maskQuestion(question, mask)));
    default:
      return maskFields(event, Object.keys(event).filter((key) => !keptFields.has(key)), mask);
  }
}

/** Masks the values that a hook changed. Messages, parts and context are masked as elsewhere: a secret may be split over several texts. */
function maskChange(change: HookChange, mask: Mask): HookChange {
  const key = change.key.slice(change.key.lastIndexOf(".") + 1);
  const [before, after] = [change.before, change.after].map((value) => maskValue(maskShown(key, value, mask), mask));
  return { ...change, ...("before" in change && { before }), after };
}

function maskShown(key: string, value: unknown, mask: Mask): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    if (key === "context") return maskContext(value, mask);
    if (key === "parts") return maskParts(value, mask);
    if (key === "results") return maskEach(value, (result) => maskCallResult(result, mask));
    return key === "messages" || key === "transcript" ? maskEach(value, (each) => maskMessage(each, mask)) : value;
  }
  if (key !== "prompt" && key !== "result") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, maskShown(name, each, mask)]));
}

/** Returns a copy of an event with another value of a field, or the event itself if the value is the same. */
function replaced<E extends Event, K extends keyof E>(event: E, key: K, value: E[K]): E {
  return value === event[key] ? event : { ...event, [key]: value };
}

// Masks the requests to the model: messages, instructions and tools.

/** Returns a function that masks the messages, the instructions and the tools of a request. Returns the same request if nothing changes. */
export function requestMask(
  mask: Mask,
  maskMessages: MaskMessages,
): (request: ModelRequest) => ModelRequest {
  const knownTools = new WeakMap<object, ModelRequest["tools"]>();
  return (request) => {
    const messages = maskMessages(request.messages);
    const tools = knownTools.get(request.tools) ?? maskEach(request.tools, (tool) => maskTool(tool, mask));
    knownTools.set(request.tools, tools).set(tools, tools);
    const instructions = mask.whole(request.instructions);
    const clean = instructions === request.instructions && messages === request.messages && tools === request.tools;
    return clean ? request : { ...request, messages, instructions, tools };
  };
}

function maskTool<T extends ModelRequest["tools"][number]>(tool: T, mask: Mask): T {
  const name = maskName(tool.name, mask);
  const masked = maskFields(tool, ["description", "schema"], mask);
  return name === tool.name ? masked : { ...masked, name };
}
