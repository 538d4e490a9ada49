/**
 * Masks events.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import type { Mask } from "./mask.ts";
import {
  maskCall,
  maskCallResult,
  maskContent,
  maskEach,
  maskFields,
  maskName,
  maskParts,
  maskProvider,
  maskQuestion,
} from "./values.ts";

/** Fields of events that stay: ids, names that the application chose, numbers and enumerations. */
const keptFields: readonly string[] = [
  ...[
    "type",
    "run",
    "session",
    "request",
    "call",
    "batch",
    "error",
    "resumeToken",
    "agent",
    "middleware",
    "model",
    "name",
  ],
  ...[
    "code",
    "point",
    "status",
    "finish",
    "decision",
    "by",
    "source",
    "trigger",
    "change",
    "did",
    "changed",
    "decided",
  ],
  ...["turn", "part", "index", "usage", "attempts", "before", "after", "ms", "retryAfter", "resumed"],
];

/** Masks an event, except for deltas: `RunEvents` and `StreamedResponse` mask them, because a secret may be split over several. */
export function maskEvent(event: Event, mask: Mask): Event {
  switch (event.type) {
    case "text.delta":
    case "reasoning.delta":
    case "call.delta":
      return event;
    case "subagent.event": {
      const inner = maskEvent(event.event, mask);
      return inner === event.event ? event : { ...event, event: inner };
    }
    case "prompt.accepted": {
      const prompt = maskContent(event.prompt, mask);
      return prompt === event.prompt ? event : { ...event, prompt };
    }
    case "steering.injected": {
      const messages = maskEach(event.messages, (message) => maskContent(message, mask));
      return messages === event.messages ? event : { ...event, messages };
    }
    case "part.added": {
      const [content = event.content] = maskParts([event.content], mask);
      return content === event.content ? event : { ...event, content };
    }
    case "provider_tool.started": {
      const content = maskProvider(event.content, mask);
      return content === event.content ? event : { ...event, content };
    }
    case "provider_tool.finished": {
      const content = maskProvider(event.content, mask);
      return content === event.content ? event : { ...event, content };
    }
    case "call.ready": {
      const call = maskCall(event.call, mask);
      return call === event.call ? event : { ...event, call };
    }
    case "tool.started": {
      const name = maskName(event.name, mask);
      return name === event.name ? event : { ...event, name };
    }
    case "tool.finished": {
      const result = maskCallResult(event.result, mask);
      return result === event.result ? event : { ...event, result };
    }
    case "approval.asked":
      return maskQuestion(event, mask);
    case "run.paused": {
      const questions = maskEach(event.questions, (question) => maskQuestion(question, mask));
      return questions === event.questions ? event : { ...event, questions };
    }
    default:
      return maskFields(event, Object.keys(event).filter((key) => !keptFields.includes(key)), mask);
  }
}
