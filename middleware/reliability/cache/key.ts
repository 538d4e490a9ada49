/**
 * Keys of cached responses and results.
 *
 * @module
 */
import type { Message, ModelContext } from "../../../mod.ts";
import { canonicalJson, hashOf } from "../../../src/core/kit.ts";

/** Returns the key of a value: a hash of its canonical JSON. */
export async function keyOf(kind: "model" | "tool", value: unknown): Promise<string> {
  return `cache/${kind}/${await hashOf(canonicalJson(value))}`;
}

/** Returns the part of a request that decides about its response. */
export function requestKey({ request: { model, instructions, messages, tools, options } }: ModelContext): unknown {
  return { model: model.id, instructions, messages: withoutIds(messages), tools, options };
}

/** Leaves out the ids of messages, and numbers the calls: clients and providers choose ids at random. */
function withoutIds(messages: readonly Message[]): unknown {
  const numbers = new Map<string, number>();
  const numberOf = (id: string) => {
    const number = numbers.get(id) ?? numbers.size;
    numbers.set(id, number);
    return number;
  };
  return messages.map((message) => {
    if (message.role === "tool") {
      return { ...message, results: message.results.map((result) => ({ ...result, callId: numberOf(result.callId) })) };
    }
    if (message.role === "user") return { ...message, id: undefined };
    return {
      ...message,
      parts: message.parts.map((part) => part.type === "call" ? { ...part, id: numberOf(part.id) } : part),
    };
  });
}
