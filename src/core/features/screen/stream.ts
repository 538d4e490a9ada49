/**
 * The parts of one response, which wait for their checks and are released in order.
 *
 * @module
 */
import type { Emit, Event } from "../../../protocol/event.ts";
import type { AnswerPart } from "../../../protocol/part.ts";
import { partEvent } from "../../hooks/part_event.ts";
import type { ModelContext, ModelResponse } from "../../hooks/points/turn.ts";
import { engineOf } from "../../run/run.ts";
import { type CheckedPart, checkedText, isChecked, joined, replaceText, withoutNotes } from "./checked_part.ts";
import type { Screening } from "./screening.ts";

type Delta = Extract<Event, { readonly type: "text.delta" | "reasoning.delta" }>;

/** A part of the response: its text as the model wrote it, and the part as it was released. */
interface StreamedPart {
  readonly type: CheckedPart["type"];
  raw: string;
  released: CheckedPart | undefined;
}

/** The options of a stream. */
export interface StreamOptions {
  /** Number of characters that are checked together. */
  readonly window: number;
  /** Number of characters before a window that its check receives. */
  readonly before: number;
  /** Decides about a part, or a window of its text, after the text `before`. Never rejects. */
  readonly decide: (part: CheckedPart, before: string) => Promise<Screening>;
  /** Called once, when a check cuts the response. */
  readonly onCut: () => void;
}

/** A screened stream. */
export class ScreenedStream {
  /** True once a check has cut the response. Later events are dropped. */
  isCut = false;
  /** The ids of the provider's calls that a check has replaced, or whose result it has. */
  readonly #changed = new Set<string>();
  readonly #ctx: ModelContext;
  readonly #options: StreamOptions;
  #parts = new Map<number, StreamedPart>();
  /** The text that does not fill a window yet. */
  #open: Delta | undefined;
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
        return this.#grow(event);
      case "provider_tool.started":
      case "provider_tool.finished":
        this.#endText();
        return this.check(event.content, event.part);
      case "part.added":
        this.#endText();
        if (event.content.type === "logprobs") return;
        if (isChecked(event.content) && checkedText(event.content) !== "") {
          return this.check(event.content, event.part);
        }
        return this.#pass(event);
      case "call.ready":
        this.#endText();
        return this.#pass(event);
      case "call.delta":
        return this.#pass(event);
      case "model.reset":
        this.close();
        return this.#ctx.emit(event);
      default:
        return this.#ctx.emit(event);
    }
  };

  /** Checks a part, or a window of its text, and releases it after what is held. `index` is the number of the part in the response. */
  check(part: CheckedPart, index: number): void {
    const { type } = part;
    const text = checkedText(part);
    if (this.isCut || text === "") return;
    const streamed = this.#parts.get(index) ?? { type, raw: "", released: undefined };
    this.#parts.set(index, streamed);
    const { before, decide } = this.#options;
    const screening = decide(part, before > 0 ? streamed.raw.slice(-before) : "");
    streamed.raw += text;
    this.#hold((decided) => this.#release(part, index, streamed, decided), screening);
  }

  /** Drops what waits: the attempt has failed. */
  close(): void {
    this.#attempt++;
    this.#parts = new Map();
    this.#open = undefined;
  }

  /** Waits for the checks, and returns the response as it was released; undefined if it is not the response that was streamed. */
  async end(response: ModelResponse): Promise<ModelResponse | undefined> {
    this.#endText();
    await this.#tail;
    if (this.isCut) return { ...response, parts: this.#released(), finish: "filter" };
    const parts = this.#match(response.parts);
    return parts && { ...response, parts: withoutNotes(parts, this.#changed) };
  }

  /** Returns the parts that were released before the cut. The provider receives its calls as text then, because their results may be missing. */
  #released(): readonly AnswerPart[] {
    return withoutNotes([...this.#parts.values()].flatMap(({ released }) => released ?? []));
  }

  /** Returns the parts of the response as they were released; undefined if it is not the response that was streamed. */
  #match(parts: readonly AnswerPart[]): readonly AnswerPart[] | undefined {
    const streamed = this.#parts.values();
    const matched: AnswerPart[] = [];
    for (const part of parts) {
      const raw = isChecked(part) ? checkedText(part) : "";
      if (raw === "") {
        matched.push(part);
        continue;
      }
      const known = streamed.next().value;
      if (known?.type !== part.type || known.raw !== raw) return undefined;
      const { released } = known;
      if (released) matched.push(checkedText(released) === raw ? part : released); // only `part` has a signature
    }
    return matched;
  }

  /** Adds a delta to the text that waits, and checks its whole windows together. */
  #grow(event: Delta): void {
    if (this.#open?.part !== event.part) this.#endText();
    const text = (this.#open?.text ?? "") + event.text;
    let end = text.length - text.length % this.#options.window;
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end--; // inside a surrogate pair
    this.#open = { ...event, text: text.slice(end) };
    this.#checkText({ ...event, text: text.slice(0, end) });
  }

  /** Checks the text that waits, as no more of it follows. */
  #endText(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open) this.#checkText(open);
  }

  #checkText({ type, text, part }: Delta): void {
    this.check({ type: type === "text.delta" ? "text" : "reasoning", text }, part);
  }

  /** Emits an event after what is held. */
  #pass(event: Event): void {
    if (this.#waiting === 0 && !this.isCut) return this.#ctx.emit(event);
    if (event.type === "call.ready") engineOf(this.#ctx.run).events.defer(event);
    this.#hold(() => this.#ctx.emit(event));
  }

  /** Calls `release` after what is held, unless a check cuts the response or the attempt fails before. */
  #hold(
    release: (screening: Screening) => void,
    screening: Promise<Screening> = Promise.resolve({ type: "pass" }),
  ): void {
    const attempt = this.#attempt;
    this.#waiting++;
    this.#tail = this.#tail.then(async () => { // neither a check nor an emit rejects
      const decided = await screening;
      this.#waiting--;
      if (!this.isCut && attempt === this.#attempt) release(decided);
    });
  }

  #release(part: CheckedPart, index: number, streamed: StreamedPart, screening: Screening): void {
    const isChanged = screening.type !== "pass";
    if (isChanged && "callId" in part) this.#changed.add(part.callId);
    const released = isChanged ? replaceText(part, screening.text) : part;
    if (released) {
      streamed.released = joined(streamed.released, released);
      this.#ctx.emit(partEvent(released, { turn: this.#ctx.turn, part: index }));
    }
    if (screening.type !== "cut") return;
    this.isCut = true;
    this.#options.onCut();
  }
}
