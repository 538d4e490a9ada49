/**
 * Masks the response of a model while it streams.
 *
 * @module
 */
import type { Emit, Event } from "../../../mod.ts";
import { GrowingText } from "./growing_text.ts";
import type { Mask } from "./mask.ts";
import { maskCall, maskName } from "./values.ts";

type Delta = Extract<Event, { readonly type: "text.delta" | "reasoning.delta" | "call.delta" }>;

/** A text of the response, and its last delta. */
interface Channel {
  readonly text: GrowingText;
  last: Delta;
}

/**
 * Masks the deltas of one response. All text parts are one text and all thoughts another, so a secret is found that a thought splits. Text that is held back
 * when a part ends is released with the next part of the same kind, or at the end.
 */
export class StreamedResponse {
  readonly #mask: Mask;
  readonly #emit: Emit;
  readonly #released: WeakSet<Event>;
  /** By the type of the deltas, or by the id of the call. */
  readonly #channels = new Map<string, Channel>();

  /** Creates an empty response, whose masked events go to `emit`. Its deltas are added to `released`. */
  constructor(mask: Mask, emit: Emit, released: WeakSet<Event>) {
    this.#mask = mask;
    this.#emit = emit;
    this.#released = released;
  }

  /** Handles the next event. */
  pass(event: Event): void {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
        return this.#grow(event);
      case "call.delta":
        return this.#grow({ ...event, name: maskName(event.name, this.#mask) });
      case "call.ready":
        this.#end(keyOfCall(event.call.id));
        return this.#emit({ ...event, call: maskCall(event.call, this.#mask) });
      case "model.reset":
        this.#channels.clear();
        return this.#emit(event);
      default:
        return this.#emit(event);
    }
  }

  /** Whether text of the same kind is held back before a delta. */
  holds(event: Delta): boolean {
    return this.#channels.get(keyOf(event))?.text.isHolding ?? false;
  }

  /** Releases everything that is held back: the response is complete. */
  end(): void {
    for (const key of [...this.#channels.keys()]) this.#end(key);
  }

  /** Releases the text that cannot belong to a secret and drops the rest: the response broke off. */
  breakOff(): void {
    for (const { text, last } of this.#channels.values()) this.#release(last, text.release());
    this.#channels.clear();
  }

  #grow(event: Delta): void {
    const key = keyOf(event);
    const channel = this.#channels.get(key) ?? { text: new GrowingText(this.#mask), last: event };
    this.#channels.set(key, channel);
    channel.last = event;
    this.#release(event, channel.text.add(event.text));
  }

  #end(key: string): void {
    const channel = this.#channels.get(key);
    this.#channels.delete(key);
    if (channel) this.#release(channel.last, channel.text.end());
  }

  #release(event: Delta, text: string): void {
    if (text === "") return;
    const released = { ...event, text };
    this.#released.add(released);
    this.#emit(released);
  }
}

function keyOf(event: Delta): string {
  return event.type === "call.delta" ? keyOfCall(event.call) : event.type;
}

function keyOfCall(id: string): string {
  return `call ${id}`;
}
