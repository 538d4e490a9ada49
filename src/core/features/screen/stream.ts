/**
 * The deltas of one response, which wait for the checks of their windows and leave in order.
 *
 * @module
 */
import type { Emit, Event } from "../../../protocol/event.ts";
import type { AnswerPart } from "../../../protocol/part.ts";
import type { ModelContext, ModelResponse } from "../../hooks/points/turn.ts";
import { engineOf } from "../../run/run.ts";
import {
  checkedText,
  isProviderPart,
  type ProviderEvent,
  type ProviderPart,
  replaceContent,
  withoutNotes,
} from "./provider_part.ts";
import type { ScreenedText, Screening } from "./screening.ts";

type Delta = Extract<Event, { readonly type: "text.delta" | "reasoning.delta" }>;
type Held = Delta | ProviderEvent | Extract<Event, { readonly type: "call.delta" | "call.ready" | "part.added" }>;

/** A part of the response: its text as the model wrote it, and as it was released. */
interface CheckedPart {
  readonly type: ScreenedText["type"];
  raw: string;
  shown: string;
  /** The call that the provider runs, or its result, once it was released. */
  released?: ProviderPart;
}

/** The services of a stream. */
export interface StreamOptions {
  /** Number of characters before a window that its check receives. */
  readonly before: number;
  /** Decides about a window. Never rejects. */
  readonly decide: (piece: ScreenedText) => Promise<Screening>;
  /** Called once, when a check cuts the response. */
  readonly onCut: () => void;
}

/** A screened stream. Each delta that it receives is a window. */
export class ScreenedStream {
  /** True once a check has cut the response. Later events are dropped. */
  isCut = false;
  /** The ids of the provider's calls that a check has replaced, or whose result it has. */
  readonly #changed = new Set<string>();
  readonly #ctx: ModelContext;
  readonly #options: StreamOptions;
  #parts = new Map<number, CheckedPart>();
  /** Settles when every event so far was released. */
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** Counts the attempts: windows of an earlier attempt are not released. */
  #attempt = 0;

  constructor(ctx: ModelContext, options: StreamOptions) {
    this.#ctx = ctx;
    this.#options = options;
  }

  /** Receives an event of the inner layers. */
  readonly emit: Emit = (event) => {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
      case "provider_tool.started":
      case "provider_tool.finished":
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

  /** Waits for the checks, and returns the response as it was released; undefined if it is not the response that was streamed. */
  async end(response: ModelResponse): Promise<ModelResponse | undefined> {
    await this.#tail;
    if (this.isCut) return { ...response, parts: this.#released(), finish: "filter" };
    const parts = this.#match(response.parts);
    return parts && { ...response, parts: withoutNotes(parts, this.#changed) };
  }

  /** Returns the parts that were released before the cut. The provider receives its calls as text then, because their results may be missing. */
  #released(): readonly AnswerPart[] {
    const parts = [...this.#parts.values()].flatMap(({ type, shown, released }): readonly AnswerPart[] => {
      if (type === "text" || type === "reasoning") return shown === "" ? [] : [{ type, text: shown }];
      return released ? [released] : [];
    });
    return withoutNotes(parts);
  }

  /** Returns the parts of the response as they were released; undefined if it is not the response that was streamed. */
  #match(parts: readonly AnswerPart[]): readonly AnswerPart[] | undefined {
    const streamed = [...this.#parts.values()];
    const matched = parts.map((part) => {
      const raw = checkedText(part);
      if (!raw) return part;
      const known = streamed.shift();
      if (known?.type !== part.type || known.raw !== raw) return undefined;
      if (isProviderPart(part)) return known.released;
      return known.shown === raw ? part : { type: part.type, text: known.shown }; // a signature is that of the original text
    });
    return matched.every((part) => part !== undefined) ? matched : undefined;
  }

  async #check(event: Delta | ProviderEvent): Promise<Screening> {
    const type: ScreenedText["type"] = "content" in event
      ? event.content.type
      : event.type === "text.delta"
      ? "text"
      : "reasoning";
    const text = "content" in event ? checkedText(event.content) ?? "" : event.text;
    const part = this.#parts.get(event.part) ?? { type, raw: "", shown: "" };
    this.#parts.set(event.part, part);
    const { before } = this.#options;
    const piece = { text, before: before > 0 ? part.raw.slice(-before) : "", type };
    part.raw += text;
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
    if ("content" in event && event.type !== "part.added") this.#releasePart(event, screening);
    else if (event.type === "text.delta" || event.type === "reasoning.delta") {
      const text = screening.type === "pass" ? event.text : screening.text ?? "";
      const part = this.#parts.get(event.part);
      if (part) part.shown += text;
      if (text !== "") this.#ctx.emit({ ...event, text });
    } else this.#ctx.emit(event);
    if (screening.type !== "cut") return;
    this.isCut = true;
    this.#options.onCut();
  }

  #releasePart(event: ProviderEvent, screening: Screening): void {
    let content: ProviderPart = event.content;
    if (screening.type !== "pass") {
      this.#changed.add(content.callId);
      if (screening.text === undefined) return;
      content = replaceContent(content, screening.text);
    }
    const part = this.#parts.get(event.part);
    if (part) part.released = content;
    this.#ctx.emit({ ...event, content } as Event); // of the same type
  }
}
