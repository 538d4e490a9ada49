/**
 * Provider notes: the `meta` of parts, which is stored and sent back to the model that produced it, and to no other.
 *
 * @module
 */
import type {
  AddedPart,
  AnswerPart,
  Json,
  ProviderCallPart,
  ProviderResultPart,
  TokenLogprob,
} from "../protocol/part.ts";
import { isObject, type UnknownObject } from "../protocol/shape.ts";
import type { ModelEvent } from "./model.ts";
import { numberIn, objectsIn, stringIn } from "./response.ts";

/** An event of a part that is complete at once. */
export interface PartEvent<P extends AddedPart> {
  /** Distinguishes it from other events. */
  readonly type: "part";
  /** The part. */
  readonly part: P;
}

/** Creates an event that ends the reasoning part, or adds an empty one, with a note of `model`. The note is data from a parsed frame. */
export function noteEvent(model: string, note: UnknownObject): ModelEvent {
  return { type: "reasoning", text: "", meta: jsonOf({ model, ...note }) };
}

/** Creates an event of a source. Fields that are not texts are left out. */
export function sourceEvent(fields: { readonly [key in "url" | "title" | "text"]?: unknown }): ModelEvent {
  const texts = Object.entries(fields).filter(([, value]) => typeof value === "string" && value !== "");
  return { type: "part", part: { type: "source", ...Object.fromEntries(texts) } };
}

/** Creates an event of a refusal. */
export function refusalEvent(text: unknown, category?: unknown): ModelEvent {
  const kind = stringIn({ category }, "category");
  const named = kind !== "" && { category: kind };
  return { type: "part", part: { type: "refusal", text: stringIn({ text }, "text"), ...named } };
}

/** Returns the tokens of a provider's log probabilities; `field` contains that of a token. */
export function tokensOf(value: unknown, field = "logprob"): readonly TokenLogprob[] {
  return objectsIn({ logprobs: value }, "logprobs").map((each) => {
    const top = tokensOf(each.top_logprobs);
    return {
      token: stringIn(each, "token"),
      logprob: numberIn(each, field),
      ...(top.length > 0 && { top }),
    };
  });
}

/** Returns the event of the log probabilities; nothing if there are none. */
export function logprobsEvents(tokens: readonly TokenLogprob[]): readonly ModelEvent[] {
  return tokens.length > 0 ? [{ type: "part", part: { type: "logprobs", tokens } }] : [];
}

/** Creates an event of a call that the provider runs. The fields and the note are data from parsed frames. */
export function callEvent(
  { callId, name, server, input }: { readonly [key in "callId" | "name" | "server" | "input"]?: unknown },
  note: UnknownObject,
): PartEvent<ProviderCallPart> {
  const names = { name: stringIn({ name }, "name"), ...(typeof server === "string" && { server }) };
  return {
    type: "part",
    part: {
      type: "provider_call",
      callId: stringIn({ id: callId }, "id"),
      ...names,
      input: jsonOf(input),
      meta: jsonOf(note),
    },
  };
}

/** Creates an event of the result of such a call. */
export function resultEvent(
  { callId, name, status, output }:
    & { readonly [key in "callId" | "name" | "output"]?: unknown }
    & Pick<ProviderResultPart, "status">,
  note?: UnknownObject,
): PartEvent<ProviderResultPart> {
  const meta = note && { meta: jsonOf(note) };
  const names = { callId: stringIn({ id: callId }, "id"), name: stringIn({ name }, "name") };
  return { type: "part", part: { type: "provider_result", ...names, status, output: jsonOf(output), ...meta } };
}

function jsonOf(value: unknown): Json {
  return (value ?? null) as Json; // parsed JSON
}

/** Reads the note of a part if it came from `model`. */
export function readNote(part: AnswerPart, model: string): UnknownObject {
  const meta = "meta" in part ? part.meta : undefined;
  return isObject(meta) && meta.model === model ? meta : {};
}
