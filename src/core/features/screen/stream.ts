/**
 * The deltas of one response, which wait for the checks of their windows and leave in order.
 *
 * @module
 */
import type { Emit, Event } from "../../../protocol/event.ts";
import type { AnswerPart } from "../../../protocol/part.ts";
import type { ModelContext } from "../../hooks/points/turn.ts";
import { engineOf } from "../../run/run.ts";
import type { Screening } from "./screening.ts";

type Delta = Extract<Event, { readonly type: "text.delta" | "reasoning.delta" }>;
type Held = Delta | Extract<Event, { readonly type: "call.delta" | "call.ready" | "part.added" }>;

/** A part of the response: its text as the model wrote it, and as it was released. */
interface PartText {
  readonly type: "text" | "reasoning";
  raw: string;
  shown: string;
}

/** The services of a stream. */
export interface StreamOptions {
  /** Number of characters before a window that its check receives. */
  readonly before: number;
  /** Decides about a window. Never rejects. */
  readonly decide: (piece: { text: string; before: string; type: "text" | "reasoning" }) => Promise<Screening>;
  /** Called once, when a check cuts the response. */
  readonly onCut: () => void;
}

/** A screened stream. Each delta that it receives is a window. */
export class ScreenedStream {
  /** True once a check has cut the response. Later events are dropped. */
  isCut = false;
  readonly #ctx: ModelContext;
  readonly #options: StreamOptions;
  #parts = new Map<number, PartText>();
  /** Settles when every event so far was released. */
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** Counts the attempts: windows of an earlier attempt are not released. */
  #attempt = 0;

  constructor(ctx: ModelContext, options: StreamOptions) {
    this.#ctx = ctx;
    this.#options = options;
  }

  /** The parts that were released. */
  get shown(): readonly AnswerPart[] {
    const parts = [...this.#parts.values()].filter(({ shown }) => shown !== "");
    return parts.map(({ type, shown }) => ({ type, text: shown }));
  }

  /** Receives an event of the inner layers. */
  readonly emit: Emit = (event) => {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
        return this.#hold(event, this.#check(event));
      case "part.added":
        if (event.content.type === "logprobs") return;
        // falls through: other parts wait, as calls do
      case "call.delta":
      case "call.ready":
        return this.#waiting > 0 || this.isCut ? this.#hold(event) : this.#ctx.emit(event);
      case "model.reset":
        this.close();
        return this.#ctx.emit(event);
      default:
        return this.#ctx.emit(event);
    }
  };

  /** Drops what waits: the attempt has failed. */
  close(): void {
    this.#attempt++;
    this.#parts = new Map();
  }

  /** Waits until every event was released or dropped. */
  async settled(): Promise<void> {
    await this.#tail;
  }

  /** Returns the parts of the response with the released text; undefined if it is not the response that was streamed. */
  match(parts: readonly AnswerPart[]): readonly AnswerPart[] | undefined {
    const streamed = [...this.#parts.values()];
    const matched = parts.map((part) => {
      if ((part.type !== "text" && part.type !== "reasoning") || part.text === "") return part;
      const known = streamed.shift();
      if (known?.type !== part.type || known.raw !== part.text) return undefined;
      return known.shown === known.raw ? part : { type: part.type, text: known.shown }; // a signature is that of the original text
    });
    return matched.every((part) => part !== undefined) ? matched : undefined;
  }

  async #check(event: Delta): Promise<Screening> {
    const type = event.type === "text.delta" ? "text" : "reasoning";
    const part = this.#parts.get(event.part) ?? { type, raw: "", shown: "" };
    this.#parts.set(event.part, part);
    const { before } = this.#options;
    const piece = { text: event.text, before: before > 0 ? part.raw.slice(-before) : "", type } as const;
    part.raw += event.text;
    return this.isCut ? { type: "cut" } : await this.#options.decide(piece);
  }

  /** Releases an event after the events before it. */
  #hold(event: Held, screening: Promise<Screening> = Promise.resolve({ type: "pass" })): void {
    if (event.type === "call.ready") engineOf(this.#ctx.run).events.defer(event);
    const attempt = this.#attempt;
    this.#waiting++;
    this.#tail = this.#tail.then(async () => { // neither a check nor an emit rejects
      const decided = await screening;
      this.#waiting--;
      if (!this.isCut && attempt === this.#attempt) this.#release(event, decided);
    });
  }

  #release(event: Held, screening: Screening): void {
    if (event.type !== "text.delta" && event.type !== "reasoning.delta") return this.#ctx.emit(event);
    const text = screening.type === "pass" ? event.text : screening.text ?? "";
    const part = this.#parts.get(event.part);
    if (part) part.shown += text;
    if (text !== "") this.#ctx.emit({ ...event, text });
    if (screening.type !== "cut") return;
    this.isCut = true;
    this.#options.onCut();
  }
}
