/**
 * Parses streamed chat completions of OpenAI and of compatible servers, which differ in details.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Json, Usage } from "../../protocol/message.ts";
import { type Fields, isFields, numberIn, textIn } from "../fields.ts";
import type { ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import { noteFrom, type ProviderNote, reasoningFields } from "./provider_note.ts";

/** A call whose input is being streamed. */
interface OpenCall {
  readonly id: string;
  /** The server's own id, or an empty string. */
  readonly given: string;
  extra?: Json;
}

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["tool_calls", "calls"],
  ["length", "length"],
  ["content_filter", "filter"],
]);

/** Creates a parser for one response of `model`. */
export function responseParser(model: string): ResponseParser {
  const calls: OpenCall[] = [];
  const byIndex = new Map<unknown, OpenCall>();
  let reasoningField: ProviderNote["field"];
  let reason = "";
  let usage: Usage | undefined;

  function parse(frame: Fields, events: ModelEvent[]): boolean {
    if (isFields(frame.usage)) usage = usageOf(frame.usage);
    const [choice] = Array.isArray(frame.choices) ? frame.choices : [];
    if (!isFields(choice)) return false;
    if (isFields(choice.delta)) parseDelta(choice.delta, events);
    reason = textIn(choice.finish_reason) || reason;
    return false;
  }

  function parseDelta(delta: Fields, events: ModelEvent[]): void {
    const field = reasoningFields.find((field) => textIn(delta[field]) !== "");
    if (field) events.push({ type: "reasoning", text: textIn(delta[field]) });
    reasoningField = field ?? reasoningField;
    const text = textIn(delta.content) || textIn(delta.refusal);
    const deltas = Array.isArray(delta.tool_calls) ? delta.tool_calls.filter(isFields) : [];
    if (text !== "" || deltas.length > 0) endReasoning(events);
    if (text !== "") events.push({ type: "text", text });
    for (const call of deltas) parseCall(call, events);
  }

  /** Ends the reasoning part with a note of its field. */
  function endReasoning(events: ModelEvent[]): void {
    if (reasoningField) events.push({ type: "reasoning", text: "", meta: noteFrom(model, { field: reasoningField }) });
    reasoningField = undefined;
  }

  /** Calls differ by index. If a server sends no index, or the same for all, a new id with a name begins a new call. */
  function parseCall({ index, id, function: fn, extra_content: extra }: Fields, events: ModelEvent[]): void {
    const { name, arguments: input } = isFields(fn) ? fn : {};
    const given = textIn(id);
    let call = byIndex.get(index);
    if (!call || (given !== "" && given !== call.given && textIn(name) !== "")) {
      call = { id: unusedId(given || `call_${calls.length}`), given };
      calls.push(call);
      byIndex.set(index, call);
      events.push({ type: "call.start", id: call.id, name: textIn(name) });
    }
    if (extra) call.extra = extra as Json; // a frame is parsed JSON
    if (textIn(input) !== "") events.push({ type: "call.delta", id: call.id, text: textIn(input) });
  }

  function unusedId(id: string): string {
    return calls.some((call) => call.id === id) ? unusedId(`${id}_`) : id;
  }

  /** Ends all calls here: only now is it certain that no more input follows. */
  function end(complete: boolean): readonly ModelEvent[] {
    if (!complete && reason === "") return [];
    const events: ModelEvent[] = [];
    endReasoning(events);
    for (const { id, extra } of calls) {
      if (extra !== undefined) events.push({ type: "reasoning", text: "", meta: noteFrom(model, { call: extra }) });
      events.push({ type: "call.end", id });
    }
    const mapped = reasons.get(reason || "stop") ?? "other";
    const finish = mapped === "stop" && calls.length > 0 ? "calls" : mapped; // some servers send "stop" with calls
    return [...events, { type: "finish", reason: finish, ...(usage && { usage }) }];
  }

  return { parse, end };
}

function usageOf(
  { prompt_tokens, completion_tokens, prompt_tokens_details: details, prompt_cache_hit_tokens }: Fields,
): Usage {
  const cached = numberIn(isFields(details) ? details.cached_tokens : prompt_cache_hit_tokens);
  return { input: numberIn(prompt_tokens), output: numberIn(completion_tokens), ...(cached > 0 && { cached }) };
}
