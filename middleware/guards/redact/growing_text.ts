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

/**
 * Masks a text that arrives in pieces. It holds back only the characters that may belong to a secret. All in all it releases the masked whole text. A text
 * that goes on after its end is masked too, except for the beginning of a secret that was released at the end.
 */
export class GrowingText {
  readonly #mask: Mask;
  /** The end of the released text, as it was written. */
  #context = "";
  /** The index in the context from which a secret may go on. Before the end of the text, no released character belongs to one. */
  #from = 0;
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
    const text = this.#context + this.#held;
    const open = this.#mask.openFrom(text, this.#from);
    const spans = open === this.#from ? [] : this.#find(text);
    const cut = beforeSpan(text, spans, open);
    const released = cut > this.#context.length ? this.#release(text, spans, { open: cut, cut }) : "";
    this.#nextScan = this.#held.length < eagerLength ? 0 : this.#held.length * 1.25;
    return released;
  }

  /** Returns the rest, masked: the text ends here, unless a late piece follows. */
  end(): string {
    if (this.#held === "") return "";
    const text = this.#context + this.#held;
    const open = this.#mask.openFrom(text, this.#from);
    return this.#release(text, this.#find(text), { open, cut: text.length });
  }

  /** Returns the secrets that are not released completely. */
  #find(text: string): readonly Span[] {
    return this.#mask.find(text, this.#from).filter(([, end]) => end > this.#context.length);
  }

  /** Returns the masked text up to `cut`. A secret that begins at `open` may go on afterwards. */
  #release(
    text: string,
    spans: readonly Span[],
    { open, cut }: { readonly open: number; readonly cut: number },
  ): string {
    const released = cover(text, spans, this.#context.length, cut);
    const before = contextOf(text.slice(0, open));
    this.#from = before.length;
    this.#context = before + text.slice(open, cut);
    this.#held = text.slice(cut);
    return released;
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
