/**
 * Parses streamed chat completions of OpenAI and of compatible servers, which differ in details.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/response_event.ts";
import type { Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, numberOrZero, stringOrEmpty, type UnknownObject } from "../../protocol/unknown_json.ts";
import type { ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { audioParser } from "./audio.ts";
import { reasoningFields, thinking } from "./reasoning_fields.ts";

/** A call whose input is being streamed. */
interface OpenCall {
  readonly id: string;
  /** The server's own id, or an empty string. */
  readonly given: string;
  /** Whether a part of its input has arrived. */
  hasInput: boolean;
  extra?: unknown;
}

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["tool_calls", "calls"],
  ["function_call", "calls"],
  ["length", "length"],
  ["model_length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "filter"],
]);

/** Creates a parser for one response of `model`. */
export function responseParser(model: string): ResponseParser {
  const calls: OpenCall[] = [];
  const byIndex = new Map<unknown, OpenCall>();
  /** The sources, by address: some servers repeat all of them in each chunk. */
  const sources = new Map<string, ModelEvent>();
  let reasoningField: string | undefined;
  let reason = "";
  let usage: Usage | undefined;
  let refusal = "";
  const tokens: TokenLogprob[] = [];
  const audio = audioParser(model);

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    if (isObject(frame.usage)) usage = usageOf(frame.usage);
    const [choice] = Array.isArray(frame.choices) ? frame.choices : [];
    if (!isObject(choice)) return false;
    if (isObject(choice.delta)) parseDelta(choice.delta, events);
    if (isObject(choice.logprobs)) {
      for (const token of tokensOf(choice.logprobs.content ?? choice.logprobs.refusal)) tokens.push(token);
    }
    addSources(frame.citations);
    reason = stringOrEmpty(choice.finish_reason) || reason;
    return false;
  }

  function parseDelta(delta: UnknownObject, events: ModelEvent[]): void {
    const field = reasoningFields.find((field) => stringOrEmpty(delta[field]) !== "");
    if (field) addReasoning(field, stringOrEmpty(delta[field]), events);
    if (Array.isArray(delta.content)) parseParts(delta.content, events);
    refusal += stringOrEmpty(delta.refusal);
    const text = stringOrEmpty(delta.content) || stringOrEmpty(delta.refusal) || audio.add(delta.audio);
    addSources(delta.annotations);
    for (const image of Array.isArray(delta.images) ? delta.images.filter(isObject) : []) addImage(image, events);
    const deltas = Array.isArray(delta.tool_calls) ? delta.tool_calls.filter(isObject) : [];
    if (text !== "" || deltas.length > 0) endReasoning(events);
    if (text !== "") events.push({ type: "text", text });
    for (const call of deltas) parseCall(call, events);
  }

  /** Parses content that is a list of parts, as Mistral sends it. Parts that are neither text nor thinking are ignored. */
  function parseParts(parts: readonly unknown[], events: ModelEvent[]): void {
    for (const part of parts) {
      const text = textOfPart(part);
      if (text !== "") {
        endReasoning(events);
        events.push({ type: "text", text });
      } else if (isObject(part) && part.type === thinking && Array.isArray(part.thinking)) {
        addReasoning(thinking, part.thinking.map(textOfPart).join(""), events);
      }
    }
  }

  /** Adds reasoning, and keeps its field for the note. */
  function addReasoning(field: string, text: string, events: ModelEvent[]): void {
    if (text === "") return;
    events.push({ type: "reasoning", text });
    reasoningField = field;
  }

  /** Keeps sources until the end: annotations of OpenAI, or addresses in the last chunks of other servers. */
  function addSources(given: unknown): void {
    for (const source of Array.isArray(given) ? given : []) {
      const citation = isObject(source) ? source.url_citation : { url: source };
      if (isObject(citation) && stringOrEmpty(citation.url) !== "") {
        sources.set(stringOrEmpty(citation.url), sourceEvent({ url: citation.url, title: citation.title }));
      }
    }
  }

  /** Adds an image that the model generated. */
  function addImage({ image_url: image }: UnknownObject, events: ModelEvent[]): void {
    const url = stringOrEmpty(isObject(image) && image.url);
    const [, mediaType = "image/*", data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
    if (url === "") return;
    endReasoning(events);
    events.push({ type: "part", part: { type: "media", mediaType, ...(data === undefined ? { url } : { data }) } });
  }

  /** Ends the reasoning part with a note of its field. */
  function endReasoning(events: ModelEvent[]): void {
    if (reasoningField) events.push(noteEvent(model, { field: reasoningField }));
    reasoningField = undefined;
  }

  /** Calls differ by index. If a server sends no index, or the same for all, a new id with a name begins a new call. */
  function parseCall({ index, id, function: fn, extra_content: extra }: UnknownObject, events: ModelEvent[]): void {
    const { name, arguments: input } = isObject(fn) ? fn : {};
    const given = stringOrEmpty(id);
    let call = byIndex.get(index);
    if (!call || (given !== "" && given !== call.given && stringOrEmpty(name) !== "")) {
      call = { id: unusedId(given || `call_${calls.length}`), given, hasInput: false };
      calls.push(call);
      byIndex.set(index, call);
      events.push({ type: "call.start", id: call.id, name: stringOrEmpty(name) });
    }
    if (extra) call.extra = extra;
    if (stringOrEmpty(input) === "") return;
    call.hasInput = true;
    events.push({ type: "call.delta", id: call.id, text: stringOrEmpty(input) });
  }

  function unusedId(id: string): string {
    return calls.some((call) => call.id === id) ? unusedId(`${id}_`) : id;
  }

  /** Ends the calls here: only now is it certain that no more input follows. In a response that was cut, the last call and those without input stay open. */
  function end(complete: boolean): readonly ModelEvent[] {
    if (!complete && reason === "") return [];
    const events: ModelEvent[] = [];
    endReasoning(events);
    events.push(...sources.values(), ...logprobsEvents(tokens), ...audio.end());
    if (refusal !== "") events.push(refusalEvent(refusal));
    const mapped = reasons.get(reason || "stop") ?? "other";
    const isWhole = mapped === "stop" || mapped === "calls";
    for (const [index, { id, extra, hasInput }] of calls.entries()) {
      if (extra !== undefined) events.push(noteEvent(model, { call: extra }));
      if (isWhole || (hasInput && index < calls.length - 1)) events.push({ type: "call.end", id });
    }
    // a refusal ends with "stop", and so do calls of some servers
    const finish = !isWhole ? mapped : refusal !== "" ? "refusal" : calls.length > 0 ? "calls" : mapped;
    return [...events, { type: "finish", reason: finish, ...(usage && { usage }) }];
  }

  return { parse, end, readsAll: () => refusal !== "" || tokens.length > 0 };
}

/** Returns the text of a part of text, and an empty string for every other part. */
function textOfPart(part: unknown): string {
  return isObject(part) && part.type === "text" ? stringOrEmpty(part.text) : "";
}

function usageOf(
  { prompt_tokens, completion_tokens, prompt_tokens_details: details, prompt_cache_hit_tokens }: UnknownObject,
): Usage {
  const cached = numberOrZero(isObject(details) ? details.cached_tokens : prompt_cache_hit_tokens);
  return { input: numberOrZero(prompt_tokens), output: numberOrZero(completion_tokens), ...(cached > 0 && { cached }) };
}
