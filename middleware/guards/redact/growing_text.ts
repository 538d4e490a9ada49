/**
 * Masks a text that arrives in pieces.
 *
 * @module
 */
import { cover, type Mask, type Span } from "./mask.ts";

/** Characters of released text that patterns can look back at. */
const contextLength = 64;
/** A held text of this length is scanned again only after it has grown by a quarter, so that the time is linear. */
const eagerLength = 512;

/** Masks a text that arrives in pieces. It holds back only the characters that may belong to a secret. All in all it releases the masked whole text. */
export class GrowingText {
  readonly #mask: Mask;
  /** The end of the released text, as it was written. */
  #context = "";
  #held = "";
  #nextScan = 0;

  /** Creates an empty text. */
  constructor(mask: Mask) {
    this.#mask = mask;
  }

  /** True if text waits that may belong to a secret. */
  get isHolding(): boolean {
    return this.#held !== "";
  }

  /** Adds the next piece. Returns the masked text that can be released. */
  add(text: string): string {
    this.#held += text;
    return this.#held.length < this.#nextScan ? "" : this.release();
  }

  /** Returns the masked text that can be released although more text may follow. */
  release(): string {
    const from = this.#context.length;
    const text = this.#context + this.#held;
    const open = this.#mask.openFrom(text, from);
    const spans = open === from ? [] : this.#mask.find(text, from);
    const cut = beforeSpan(text, spans, open);
    this.#context = contextOf(text.slice(0, cut));
    this.#held = text.slice(cut);
    this.#nextScan = this.#held.length < eagerLength ? 0 : this.#held.length * 1.25;
    return cover(text, spans, from, cut);
  }

  /** Returns the rest, masked: no more text follows. */
  end(): string {
    const from = this.#context.length;
    const text = this.#context + this.#held;
    this.#context = "";
    this.#held = "";
    return cover(text, this.#mask.find(text, from), from);
  }
}

/** Returns the last index up to `at` that is neither within a span nor within a surrogate pair. */
function beforeSpan(text: string, spans: readonly Span[], at: number): number {
  const isWithinPair = /[\uDC00-\uDFFF]/.test(text.charAt(at)) || /[\uD800-\uDBFF]$/.test(text.slice(at - 1, at));
  const index = isWithinPair ? Math.max(0, at - 1) : at;
  const [start] = spans.find(([start, end]) => start < index && index < end) ?? [index];
  return start;
}

/** Returns the end of a released text. It begins outside of escapes, so that they are decoded in the same way as in the whole text. */
function contextOf(released: string): string {
  const start = released.length - contextLength;
  if (start <= 0) return released;
  const context = released.slice(start);
  if (!context.includes("\\")) return context;
  const boundary = context.search(/[^\\u\da-f]/i); // after it, no escape is incomplete
  return context.slice(boundary + 1);
}
