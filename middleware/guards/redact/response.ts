/**
 * Masks the response of a model while it streams, and the events of its run.
 *
 * @module
 */
import { cover, type Mask, maxRounds, placeholder, type Span } from "./mask.ts";
import { maskCall, maskEvent, maskName } from "./values.ts";
import type { Emit, Event } from "../../../mod.ts";
import type { DeltaEvent } from "../../../src/core/engine.ts";

// Masks a text that arrives in pieces.

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
class GrowingText {
  readonly #mask: Mask;
  readonly #round: number;
  /** The end of the released text, as it was written. */
  #context: string;
  #pending = "";
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
    return this.#pending !== "" || (this.#inner?.isHolding ?? false);
  }

  /** Adds the next piece. Returns the masked text that can be released. `next` is the text that follows, if some of it is known. */
  add(text: string, next?: Next): string {
    this.#pending += text;
    return this.#pending.length < this.#nextScan ? "" : this.release(next);
  }

  /** Returns the masked text that can be released although more text may follow. */
  release(next?: Next): string {
    const from = this.#context.length;
    const text = this.#context + this.#pending;
    const { undecidedFrom, spans } = this.#scan(text, from, next);
    const cut = beforeSpan(text, spans, undecidedFrom);
    const covered = cover(text, spans, from, cut);
    const isPlain = cut === text.length && covered === text.slice(from);
    if (!isPlain && this.#round < maxRounds) {
      this.#inner ??= new GrowingText(this.#mask, { context: this.#context, round: this.#round + 1 });
    }
    this.#context = contextOf(text.slice(0, cut));
    this.#pending = text.slice(cut);
    const [written, masked] = next ?? ["", ""];
    const after: Next = [this.#pending + written, cover(text, spans, cut) + masked];
    const released = this.#inner ? this.#inner.add(covered, after[0] === "" ? undefined : after) : covered;
    this.#nextScan = this.#pending.length < eagerLength ? 0 : this.#pending.length * 1.25;
    if (this.#inner && !this.#inner.isHolding && this.#inner.#context === this.#context) this.#inner = undefined;
    return released;
  }

  /**
   * Finds the spans of a text, and the first index from which on it is not known yet what they are. What the round before holds back completes no secret of this
   * text as it was written, so this round waits only if a mask in its place would.
   */
  #scan(text: string, from: number, next?: Next): { readonly undecidedFrom: number; readonly spans: readonly Span[] } {
    const mask = this.#mask;
    const undecidedFrom = mask.openFrom(text, from, next !== undefined);
    if (undecidedFrom === from) return { undecidedFrom, spans: [] };
    if (next === undefined) return { undecidedFrom, spans: mask.find(text, from) };
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

    const end = undecidedFrom < text.length && mayBeCompleted() ? undecidedFrom : text.length;
    return { undecidedFrom: Math.min(end, undecided(next[1].slice(0, reach)), undecided(placeholder)), spans };
  }

  /** Returns the rest, masked: no more text follows. */
  end(): string {
    const from = this.#context.length;
    const text = this.#context + this.#pending;
    const masked = cover(text, this.#mask.find(text, from), from);
    if (this.#round < maxRounds && masked !== this.#pending) {
      this.#inner ??= new GrowingText(this.#mask, { context: this.#context, round: this.#round + 1 });
    }
    const rest = this.#inner ? this.#inner.add(masked) + this.#inner.end() : masked;
    this.#context = "";
    this.#pending = "";
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

// Masks the parts of a response while they stream, each kind of text as one text.

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

// Masks the events of a run, and of the agents that work for it.

/** The events that begin or end a response, a turn or a run. Deltas that are held back are released before them. */
const boundaries: ReadonlySet<Event["type"]> = new Set<Event["type"]>([
  "turn.started",
  "model.started",
  "model.finished",
  "turn.finished",
  "session.closed",
  "run.finished",
  "run.paused",
  "run.failed",
  "run.aborted",
]);

/**
 * Masks the events of one run, and of the agents below it. Deltas that its `model` hook has not released come from tools and other hooks: they are masked
 * too.
 */
export class RunEvents {
  readonly #mask: Mask;
  readonly #emit: Emit;
  readonly #released: WeakSet<Event>;
  /** The deltas that the `model` hook has not released. */
  readonly #others: StreamedResponse;
  /** The turn of the last delta. */
  #turn = 0;
  /** The events of the agents below, by the call that they work for. */
  readonly #children = new Map<string, RunEvents>();

  /** Creates a run without events, whose masked events go to `emit`. `released` contains the deltas that are masked already. */
  constructor(mask: Mask, emit: Emit, released: WeakSet<Event>) {
    this.#mask = mask;
    this.#emit = emit;
    this.#released = released;
    this.#others = new StreamedResponse(mask, emit, released);
  }

  /** Handles the next event. */
  pass(event: Event): void {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
      case "call.delta":
        return this.#passDelta(event);
      case "call.ready":
      case "model.reset":
        return this.#others.pass(event);
      case "subagent.event":
        return this.#childOf(event).pass(event.event);
      case "subagent.finished":
        this.#children.get(event.call)?.end();
        this.#children.delete(event.call);
        return this.#emit(maskEvent(event, this.#mask));
      default:
        if (boundaries.has(event.type)) this.#others.end();
        return this.#emit(maskEvent(event, this.#mask));
    }
  }

  /** Releases everything that is held back: the run is over. */
  end(): void {
    this.#others.end();
    for (const child of this.#children.values()) child.end();
  }

  #passDelta(event: DeltaEvent): void {
    if (event.turn !== this.#turn) this.#others.end();
    this.#turn = event.turn;
    return this.#released.has(event) && !this.#others.holds(event) ? this.#emit(event) : this.#others.pass(event);
  }

  #childOf({ call, agent }: Extract<Event, { readonly type: "subagent.event" }>): RunEvents {
    const emit: Emit = (event) => this.#emit({ type: "subagent.event", call, agent, event });
    const child = this.#children.get(call) ?? new RunEvents(this.#mask, emit, this.#released);
    this.#children.set(call, child);
    return child;
  }
}
