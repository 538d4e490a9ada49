/**
 * Answers as chat completions stream them: by OpenAI, and by those who speak its language more or less.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Json, Usage } from "../../protocol/message.ts";
import { type Fields, isFields, numberIn, textIn } from "../fields.ts";
import type { ModelEvent } from "../model.ts";
import type { Reader } from "../provider.ts";
import { kept, type Note, thoughtFields } from "./note.ts";

/** A call that is being made. */
interface Making {
  readonly id: string;
  /** The id as the server gave it; none where it gave none. */
  readonly given: string;
  extra?: Json;
}

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["tool_calls", "calls"],
  ["length", "length"],
  ["content_filter", "filter"],
]);

/** Reads an answer of `model`. */
export function answer(model: string): Reader {
  const calls: Making[] = [];
  const byIndex = new Map<unknown, Making>();
  let thinking: Note["field"];
  let reason = "";
  let usage: Usage | undefined;

  function read(frame: Fields, events: ModelEvent[]): boolean {
    if (isFields(frame.usage)) usage = usageOf(frame.usage);
    const [choice] = Array.isArray(frame.choices) ? frame.choices : [];
    if (!isFields(choice)) return false;
    if (isFields(choice.delta)) hear(choice.delta, events);
    reason = textIn(choice.finish_reason) || reason;
    return false;
  }

  function hear(delta: Fields, events: ModelEvent[]): void {
    const field = thoughtFields.find((field) => textIn(delta[field]) !== "");
    if (field) events.push({ type: "reasoning", text: textIn(delta[field]) });
    thinking = field ?? thinking;
    const text = textIn(delta.content) || textIn(delta.refusal);
    const made = Array.isArray(delta.tool_calls) ? delta.tool_calls.filter(isFields) : [];
    if (text !== "" || made.length > 0) endThought(events);
    if (text !== "") events.push({ type: "text", text });
    for (const call of made) hearCall(call, events);
  }

  /** Thought that ends notes where it came from. */
  function endThought(events: ModelEvent[]): void {
    if (thinking) events.push({ type: "reasoning", text: "", meta: kept(model, { field: thinking }) });
    thinking = undefined;
  }

  /** Calls are told apart by their index. Where a server says none, or the same for all, an id and a name begin another. */
  function hearCall({ index, id, function: said, extra_content: extra }: Fields, events: ModelEvent[]): void {
    const { name, arguments: input } = isFields(said) ? said : {};
    const given = textIn(id);
    let call = byIndex.get(index);
    if (!call || (given !== "" && given !== call.given && textIn(name) !== "")) {
      call = { id: unused(given || `call_${calls.length}`), given };
      calls.push(call);
      byIndex.set(index, call);
      events.push({ type: "call.start", id: call.id, name: textIn(name) });
    }
    if (extra) call.extra = extra as Json; // it came in a frame
    if (textIn(input) !== "") events.push({ type: "call.delta", id: call.id, text: textIn(input) });
  }

  function unused(id: string): string {
    return calls.some((call) => call.id === id) ? unused(`${id}_`) : id;
  }

  /** Only at the end is it known that no index comes again. */
  function end(told: boolean): readonly ModelEvent[] {
    if (!told && reason === "") return [];
    const events: ModelEvent[] = [];
    endThought(events);
    for (const { id, extra } of calls) {
      if (extra !== undefined) events.push({ type: "reasoning", text: "", meta: kept(model, { call: extra }) });
      events.push({ type: "call.end", id });
    }
    const why = reasons.get(reason || "stop") ?? "other";
    const finish = why === "stop" && calls.length > 0 ? "calls" : why; // some stop there, too
    return [...events, { type: "finish", reason: finish, ...(usage && { usage }) }];
  }

  return { read, end };
}

function usageOf(
  { prompt_tokens, completion_tokens, prompt_tokens_details: details, prompt_cache_hit_tokens }: Fields,
): Usage {
  const cached = numberIn(isFields(details) ? details.cached_tokens : prompt_cache_hit_tokens);
  return { input: numberIn(prompt_tokens), output: numberIn(completion_tokens), ...(cached > 0 && { cached }) };
}
