/**
 * Asynchronous screening of streamed text, such as moderation: the text is checked before clients and the transcript receive it.
 *
 * @module
 */
import { anySignal, withinTime } from "../lib/cancellation.ts";
import type { Hook } from "../onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "../points.ts";
import { holdEvent, partEvent } from "../rewrite.ts";
import type { Emit, Event } from "../../protocol/event.ts";
import { noUsage } from "../../protocol/message.ts";
import type {
  AnswerPart,
  MediaPart,
  ProviderCallPart,
  ProviderResultPart,
  ReasoningPart,
  RefusalPart,
  SourcePart,
  TextPart,
} from "../../protocol/part.ts";
import { expectNames } from "../../protocol/shape.ts";

// The text that a check receives, and its decision.

/** A piece of text to check. */
export interface ScreenedText {
  /** The text of the window. Of a call that the provider runs, its name and input; of its result, the name and the output; of a source, its fields. */
  readonly text: string;
  /** The text right before it, as the model wrote it. It was checked before. */
  readonly before: string;
  /** Tells the answer from the model's reasoning, from refusals and sources, and from calls that the provider runs and their results. */
  readonly type: "text" | "reasoning" | "refusal" | "source" | "provider_call" | "provider_result";
}

/**
 * pass: the text is released. replace: `text` is released in its place. cut: `text` is released in its place, and the rest of the response is dropped.
 * The input or the output of a call of the provider, and a refusal, a source or media as a whole, become `text`; if there is no `text`, they are dropped.
 */
export type Screening =
  | { readonly type: "pass" }
  | { readonly type: "replace"; readonly text: string }
  | { readonly type: "cut"; readonly text?: string };

// The parts of a response that are checked, and their texts.

/** A part that is checked: a text, a refusal, a source, media, or a call that the provider runs and its result. */
type CheckedPart =
  | TextPart
  | ReasoningPart
  | RefusalPart
  | SourcePart
  | MediaPart
  | ProviderCallPart
  | ProviderResultPart;

/** Returns true for a part that is checked: all but calls, and log probabilities, which are left out. */
function isChecked(part: AnswerPart): part is CheckedPart {
  return part.type !== "call" && part.type !== "logprobs";
}

/** Returns true for a call that the provider runs, and for its result. */
function isOfProvider(part: AnswerPart): part is ProviderCallPart | ProviderResultPart {
  return part.type === "provider_call" || part.type === "provider_result";
}

/** Returns the text of a part that a check receives. Of a call or a result: the name, its server, and every key, text and number, one per line. Of a source, and to tell media apart: each field. */
function checkedText(part: CheckedPart): string {
  if (part.type === "text" || part.type === "reasoning") return part.text;
  if (!isOfProvider(part)) {
    const { type: _, ...fields } = part;
    return Object.values(fields).filter(Boolean).join("\n");
  }
  const names = "server" in part ? [part.name, part.server] : [part.name];
  return [...names, ...leavesOf(part.type === "provider_call" ? part.input : part.output)].join("\n");
}

/** Returns the keys and the values of a JSON value, in their order. */
function leavesOf(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [String(value)];
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return Object.entries(value).flatMap(([key, each]) => [key, ...leavesOf(each)]);
}

/** Returns a part whose text, input or output is `text`, without the provider's own data. Undefined if nothing of it is left. */
function replaceText(part: CheckedPart, text: string | undefined): CheckedPart | undefined {
  if (text === undefined) return undefined;
  if (!isOfProvider(part)) return text === "" ? undefined : { type: part.type === "media" ? "text" : part.type, text };
  const { meta: _, ...rest } = part;
  return rest.type === "provider_call" ? { ...rest, input: text } : { ...rest, output: text };
}

/** Returns a window of a text after the windows before it, as one part. Other parts stay. */
function joined(before: CheckedPart | undefined, part: CheckedPart): CheckedPart {
  if (part.type !== "text" && part.type !== "reasoning") return part;
  return before ? { ...part, text: checkedText(before) + part.text } : part;
}

/**
 * Leaves out the provider's own data of calls and their results. The provider accepts them only unchanged and in pairs, and receives them as text now. `ids`
 * are those of the calls. Default: all.
 */
function withoutNotes(parts: readonly AnswerPart[], ids?: ReadonlySet<string>): readonly AnswerPart[] {
  return parts.map((part) => {
    if (!isOfProvider(part) || ids?.has(part.callId) === false) return part;
    const { meta: _, ...rest } = part;
    return rest;
  });
}

// The parts of one response, which wait for their checks and are released in order.

type Delta = Extract<Event, { readonly type: "text.delta" | "reasoning.delta" }>;

/** A part of the response: its text as the model wrote it, and the part as it was released. */
interface StreamedPart {
  readonly type: CheckedPart["type"];
  raw: string;
  released: CheckedPart | undefined;
}

/** The options of a stream. */
interface StreamOptions {
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
class ScreenedStream {
  /** True once a check has cut the response. Later events are dropped. */
  isCut = false;
  /** The ids of the provider's calls that a check has replaced, or whose result it has. */
  readonly #changed = new Set<string>();
  readonly #ctx: ModelContext;
  readonly #options: StreamOptions;
  #parts = new Map<number, StreamedPart>();
  /** The text that does not fill a window yet. */
  #pending: Delta | undefined;
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
    this.#pending = undefined;
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
    if (this.#pending?.part !== event.part) this.#endText();
    const text = (this.#pending?.text ?? "") + event.text;
    let end = text.length - text.length % this.#options.window;
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end--; // inside a surrogate pair
    this.#pending = { ...event, text: text.slice(end) };
    this.#checkText({ ...event, text: text.slice(0, end) });
  }

  /** Checks the text that waits, as no more of it follows. */
  #endText(): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending) this.#checkText(pending);
  }

  #checkText({ type, text, part }: Delta): void {
    this.check({ type: type === "text.delta" ? "text" : "reasoning", text }, part);
  }

  /** Emits an event after what is held. */
  #pass(event: Event): void {
    if (this.#waiting === 0 && !this.isCut) return this.#ctx.emit(event);
    if (event.type === "call.ready") holdEvent(this.#ctx.run, event);
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

// The middleware `screen()`, and its options.

/** Options of `screen()`. */
export interface ScreenOptions<V = unknown> {
  /** Number of characters that are held back until they are checked together. A longer delta is checked as a whole. */
  readonly window: number;
  /** Decides about the text of a window. It may be called again before an earlier window is decided. If it throws, the text is cut. */
  readonly check: (piece: ScreenedText, ctx: ModelContext<V>) => Screening | Promise<Screening>;
  /** Decides about an image or a file that the model generated. Default: every file passes. */
  readonly checkMedia?: (part: MediaPart, ctx: ModelContext<V>) => Screening | Promise<Screening>;
  /** Number of characters before the window that `check` receives as `before`. Default: 200. */
  readonly before?: number;
  /** Milliseconds after which a check has failed. Default: 10,000. */
  readonly timeout?: number;
}

/**
 * Creates a `model` hook that checks the streamed answer and reasoning in windows. At most one window is held back, besides the windows that are being
 * checked. Windows are checked in parallel and released in order; calls wait for the text before them. The input and the output of a call that the provider
 * runs are each checked as a whole, and so are refusals, sources and, with `checkMedia`, media.
 *
 * A check passes the text, replaces it, or cuts the response: the rest of the response, with its calls, is dropped, the request is cancelled, and the response
 * ends with the finish reason "filter". A check that throws or exceeds `timeout` cuts the response too, with a warning. A response that a later hook gives
 * without streaming it is checked as a whole.
 *
 * Log probabilities are left out, because their tokens are the text as it was before the checks.
 *
 * Throws a `RangeError` if `window` or `before` is not a whole number, or `window` is less than 1.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { screen } from "@jizai/jizai/screen";
 * import { assertEquals } from "@std/assert";
 *
 * const polite = screen({
 *   window: 100,
 *   check: async ({ text }) => await isRude(text) ? { type: "cut", text: " [removed]" } : { type: "pass" },
 * });
 * const model = scripted({ text: ["Well, ", "you fool."] });
 *
 * const { text } = await agent({ model, use: [{ name: "polite", model: polite }] }).run("Hi").result;
 * assertEquals(text, " [removed]");
 *
 * function isRude(text: string): Promise<boolean> { // in your app: a classifier
 *   return Promise.resolve(text.includes("fool"));
 * }
 * ```
 */
export function screen<V = unknown>(
  options: ScreenOptions<V>,
): Hook<ModelContext<V>, ModelChange, ModelResponse> {
  const subject = "Cannot create screen()";
  expectNames(subject, options, ["window", "check", "checkMedia", "before", "timeout"]);
  const { window, check, checkMedia = () => ({ type: "pass" }), before: context = 200, timeout = 10_000 } = options;
  if (!(Number.isInteger(window) && window >= 1 && Number.isInteger(context) && context >= 0)) {
    throw new RangeError(
      `${subject}: \`window\` is ${window} and \`before\` is ${context}; expected whole numbers, \`window\` of 1 or more`,
    );
  }

  /** Checks a part, or a window of its text. A check that fails cuts it. */
  async function decide(part: CheckedPart, before: string, ctx: ModelContext<V>): Promise<Screening> {
    const kind = part.type === "media" ? "a file" : "a text";
    try {
      const screening = await withinTime((signal) => {
        const within = { ...ctx, signal };
        return part.type === "media"
          ? checkMedia(part, within)
          : check({ text: checkedText(part), before, type: part.type }, within);
      }, { ms: timeout, signal: ctx.signal, operation: `check ${kind}` });
      if (["pass", "replace", "cut"].includes(screening?.type)) return screening;
      throw new TypeError(`Cannot screen ${kind}: the check returned ${screening}; expected pass, replace or cut`);
    } catch (error) {
      if (!ctx.signal.aborted) {
        const message = "A check failed, so the response was cut.";
        ctx.emit({ type: "warning", code: "hook.failed", message, point: "model", error: ctx.run.report(error) });
      }
      return { type: "cut" };
    }
  }

  return async function screenModel(ctx, next) {
    const cut = new AbortController();
    const options: StreamOptions = {
      window,
      before: context,
      decide: (part, before) => decide(part, before, ctx),
      onCut: () => cut.abort(new DOMException("The text was cut by a check", "AbortError")),
    };
    const stream = new ScreenedStream(ctx, options);
    let response: ModelResponse;
    try {
      response = await next({ signal: anySignal([ctx.signal, cut.signal]), emit: stream.emit });
    } catch (error) {
      if (!stream.isCut) {
        stream.close();
        throw error;
      }
      response = { parts: [], finish: "filter", usage: noUsage, model: ctx.request.model.id, attempts: ctx.attempt };
    }
    response = { ...response, parts: response.parts.filter(({ type }) => type !== "logprobs") };
    const streamed = await stream.end(response);
    if (streamed) return streamed;
    const whole = new ScreenedStream({ ...ctx, emit: () => {} }, options); // a later hook gave or changed the response
    for (const [index, part] of response.parts.entries()) if (isChecked(part)) whole.check(part, index);
    return await whole.end(response) ?? { ...response, parts: [], finish: "filter" };
  };
}
