/**
 * What a model of the AI SDK answers, part by part.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Json, Usage } from "../../protocol/message.ts";
import { type Fields, isFields, numberIn, textIn } from "../fields.ts";
import { ModelError, type ModelEvent } from "../model.ts";

const reasons = new Map<unknown, FinishReason>([
  ["stop", "stop"],
  ["tool-calls", "calls"],
  ["length", "length"],
  ["content-filter", "filter"],
]);

/** Reads an answer of `model`: what each part says. Throws what a part says to have failed. */
export function answer(model: string): (part: unknown) => readonly ModelEvent[] {
  /** The calls that have begun, and whether their input came piece by piece. */
  const calls = new Map<string, boolean>();
  let noted: unknown;

  /** What a provider notes is to be sent back with the part that it comes with: the part after this one. */
  function note(metadata: unknown): readonly ModelEvent[] {
    return metadata ? [{ type: "reasoning", text: "", meta: { model, next: metadata as Json } }] : []; // plain data, by contract
  }

  function endThought(): readonly ModelEvent[] {
    const options = noted as Json | undefined; // plain data, by contract
    noted = undefined;
    return [{ type: "reasoning", text: "", meta: { model, ...(options !== undefined && { options }) } }];
  }

  function call({ toolCallId, toolName, input, providerMetadata }: Fields): readonly ModelEvent[] {
    const id = textIn(toolCallId);
    const begun = calls.has(id) ? [] : [{ type: "call.start", id, name: textIn(toolName) } as const];
    const whole = calls.get(id) ? [] : [{ type: "call.delta", id, text: textIn(input) } as const];
    return [...begun, ...whole, ...note(providerMetadata), { type: "call.end", id }];
  }

  return (part) => {
    if (!isFields(part) || part.providerExecuted) return [];
    const { type, id, delta, providerMetadata } = part;
    if (textIn(type).startsWith("reasoning-")) noted = providerMetadata ?? noted;
    switch (type) {
      case "text-start":
        return note(providerMetadata);
      case "text-delta":
        return [{ type: "text", text: textIn(delta) }];
      case "reasoning-delta":
        return [{ type: "reasoning", text: textIn(delta) }];
      case "reasoning-end":
        return endThought();
      case "tool-input-start":
        calls.set(textIn(id), false);
        return [{ type: "call.start", id: textIn(id), name: textIn(part.toolName) }];
      case "tool-input-delta":
        if (!calls.has(textIn(id))) return []; // a tool that the provider runs itself
        calls.set(textIn(id), true);
        return [{ type: "call.delta", id: textIn(id), text: textIn(delta) }];
      case "tool-call":
        return call(part);
      case "error":
        throw part.error;
      case "finish":
        return [finishOf(part, model)];
      default:
        return [];
    }
  };
}

function finishOf({ finishReason, usage }: Fields, model: string): ModelEvent {
  const reason = isFields(finishReason) ? finishReason.unified : finishReason;
  if (reason === "error" || reason === "interrupted") {
    throw new ModelError(`Cannot hear ${model} out: its answer was cut`, { recoverable: true });
  }
  return { type: "finish", reason: reasons.get(reason) ?? "other", ...(isFields(usage) && { usage: usageOf(usage) }) };
}

/** Of v2 the counts are numbers, later ones are told apart. */
function usageOf({ inputTokens: read, outputTokens: written, cachedInputTokens }: Fields): Usage {
  const cached = numberIn(isFields(read) ? read.cacheRead : cachedInputTokens);
  return {
    input: numberIn(isFields(read) ? read.total : read),
    output: numberIn(isFields(written) ? written.total : written),
    ...(cached > 0 && { cached }),
  };
}
