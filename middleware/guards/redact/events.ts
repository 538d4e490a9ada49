/**
 * Masks events.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import type { Mask } from "./mask.ts";
import { maskCallResult, maskContent } from "./messages.ts";
import { maskCall, maskEach, maskFields, maskName, maskParts, maskProvider, maskQuestion } from "./values.ts";

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
    case "run.paused":
      return replaced(event, "questions", maskEach(event.questions, (question) => maskQuestion(question, mask)));
    default:
      return maskFields(event, Object.keys(event).filter((key) => !keptFields.has(key)), mask);
  }
}

/** Returns a copy of an event with another value of a field, or the event itself if the value is the same. */
function replaced<E extends Event, K extends keyof E>(event: E, key: K, value: E[K]): E {
  return value === event[key] ? event : { ...event, [key]: value };
}
