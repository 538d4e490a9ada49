/**
 * Masks a text that arrives in pieces.
 *
 * @module
 */
import { cover, type Mask, maxRounds, placeholder, type Span } from "./mask.ts";

/** Characters of released text that patterns can look back at. */
const contextLength = 64;
/** The beginning of the text that follows a piece: as it was written, and as it is masked so far. */
type Next = readonly [written: string, masked: string];

/** A held text of this length is scanned again only after it has grown by a quarter, so that the time is linear. */
const eagerLength = 512;

/**
 * Masks a text that arrives in pieces. It holds back only the characters that may belong to a secret. All in all it releases the masked whole text. As the whole
 * text, it is masked until that changes nothing: what it releases passes through another text of this class, unless that would release the same.
 */
export class GrowingText {
  readonly #mask: Mask;
  readonly #round: number;
  /** The end of the released text, as it was written. */
  #context: string;
  #held = "";
  #nextScan = 0;
  /** Masks the masked text. Undefined while it would hold nothing back and change nothing. */
  #inner: GrowingText | undefined;

  /** Creates a text that follows `context`. */
  constructor(mask: Mask, { context = "", round = 1 } = {}) {
    this.#mask = mask;
    this.#context = context;
    this.#round = round;
  }

  /** True if text waits that may belong to a secret. */
  get isHolding(): boolean {
    return this.#held !== "" || (this.#inner?.isHolding ?? false);
  }

  /** Adds the next piece. Returns the masked text that can be released. `next` is the text that follows, if some of it is known. */
  add(text: string, next?: Next): string {
    this.#held += text;
    return this.#held.length < this.#nextScan ? "" : this.release(next);
  }

  /** Returns the masked text that can be released although more text may follow. */
  release(next?: Next): string {
    const from = this.#context.length;
    const text = this.#context + this.#held;
    const { open, spans } = this.#scan(text, from, next);
    const cut = beforeSpan(text, spans, open);
    const covered = cover(text, spans, from, cut);
    const isPlain = cut === text.length && covered === text.slice(from);
    if (!isPlain && this.#round < maxRounds) {
      this.#inner ??= new GrowingText(this.#mask, { context: this.#context, round: this.#round + 1 });
    }
    this.#context = contextOf(text.slice(0, cut));
    this.#held = text.slice(cut);
    const [written, masked] = next ?? ["", ""];
    const after: Next = [this.#held + written, cover(text, spans, cut) + masked];
    const released = this.#inner ? this.#inner.add(covered, after[0] === "" ? undefined : after) : covered;
    this.#nextScan = this.#held.length < eagerLength ? 0 : this.#held.length * 1.25;
    if (this.#inner && !this.#inner.isHolding && this.#inner.#context === this.#context) this.#inner = undefined;
    return released;
  }

  /**
   * Finds the spans of a text, and the first index from which on it is not known yet what they are. What the round before holds back completes no secret of this
   * text as it was written, so this round waits only if a mask in its place would.
   */
  #scan(text: string, from: number, next?: Next): { readonly open: number; readonly spans: readonly Span[] } {
    const mask = this.#mask;
    const open = mask.openFrom(text, from, next !== undefined);
    if (open === from) return { open, spans: [] };
    if (next === undefined) return { open, spans: mask.find(text, from) };
    const reach = Math.max(mask.lookahead, contextLength);
    const written = next[0].slice(0, reach);
    const spans = mask.find(text + written, from);
    const undecided = (more: string) => firstDifference(spans, mask.find(text + more, from));
    const isOpen = (more: string) => mask.openFrom(text + more, from, true) < text.length;

    /** Returns true if a mask may follow that completes a secret, or begin somewhere in the text that follows. */
    function mayBeCompleted(): boolean {
      for (let length = 0; length <= written.length; length++) {
        const known = written.slice(0, length);
        if (!isOpen(known)) return false;
        if (isOpen(known + placeholder) || undecided(known + placeholder) < text.length) return true;
      }
      return true;
    }

    const end = open < text.length && mayBeCompleted() ? open : text.length;
    return { open: Math.min(end, undecided(next[1].slice(0, reach)), undecided(placeholder)), spans };
  }

  /** Returns the rest, masked: no more text follows. */
  end(): string {
    const from = this.#context.length;
    const text = this.#context + this.#held;
    const masked = cover(text, this.#mask.find(text, from), from);
    if (this.#round < maxRounds && masked !== this.#held) {
      this.#inner ??= new GrowingText(this.#mask, { context: this.#context, round: this.#round + 1 });
    }
    const rest = this.#inner ? this.#inner.add(masked) + this.#inner.end() : masked;
    this.#context = "";
    this.#held = "";
    this.#inner = undefined;
    return rest;
  }
}

/** Returns the start of the first span that is not in both lists. */
function firstDifference(some: readonly Span[], others: readonly Span[]): number {
  const isIn = (list: readonly Span[], [start, end]: Span) => list.some((each) => each[0] === start && each[1] === end);
  const starts = [...some.filter((span) => !isIn(others, span)), ...others.filter((span) => !isIn(some, span))];
  return Math.min(...starts.map(([start]) => start));
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
