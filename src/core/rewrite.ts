/**
 * Filters of streamed text: a rewriter changes it, so that the deltas, the final response and a retry stay consistent, and a tracker notes what a client has
 * seen.
 *
 * @module
 */
import { mapTexts } from "./lib/json.ts";
import type { Hook } from "./onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "./points.ts";
import { addedEvent } from "./response.ts";
import { engineOf } from "./run.ts";
import type { Run } from "./scope.ts";
import type { Emit, Event } from "../protocol/event.ts";
import type { AnswerPart, Call, CallPart } from "../protocol/part.ts";
import { expectNames } from "../protocol/shape.ts";

// The event of a part of a response, for hooks that answer without the model.

/** Creates the event of a part: a text is one delta. `at` contains the number of the turn, and that of the part in the response, from 0. */
export function partEvent(
  part: Exclude<AnswerPart, CallPart>,
  at: { readonly turn: number; readonly part: number },
): Event {
  switch (part.type) {
    case "text":
      return { type: "text.delta", ...at, text: part.text };
    case "reasoning":
      return { type: "reasoning.delta", ...at, text: part.text };
    default:
      return addedEvent(part, at);
  }
}

// Tracks whether a client has seen text, which a hook needs to know before it asks the model again.

/** A filter that passes every event and tracks text. */
export interface Shown {
  /** The filter. */
  readonly emit: Emit;
  /** True if text was emitted since the last `model.reset`. */
  readonly text: boolean;
}

/** Creates a filter in front of `emit`. */
export function trackShownText(emit: Emit): Shown {
  let text = false;
  return {
    emit(event) {
      if (event.type === "text.delta") text = true;
      else if (event.type === "model.reset") text = false;
      emit(event);
    },
    get text() {
      return text;
    },
  };
}

// Holding back: a filter that passes an event on later, or leaves it out with the part that it is about.

/**
 * Holds back an event that a filter may not drop. The filter of a `model` hook calls it for a `call.ready` that it emits once the response is complete, or
 * never, if the response that the hook returns does not contain the call.
 */
export function holdEvent(run: Run, event: Extract<Event, { type: "call.ready" }>): void {
  engineOf(run).events.defer(event);
}

// Rewriting of streamed text: the deltas, the final response and a retry stay consistent.

/**
 * Rewrites a growing text. `text` is the part that was not emitted yet. Returns the rewritten text to emit now, and the original text to hold back.
 * At "more", more text may follow. At "end" and "cut" (the stream was interrupted) nothing follows, and held text is dropped.
 */
export type Rewriter = (text: string, at: "more" | "end" | "cut") => readonly [out: string, pending: string];

/** The rewriters of a response. */
export interface RewriteOptions {
  /** For the text of the answer. */
  readonly text?: Rewriter;
  /** For the model's reasoning. */
  readonly reasoning?: Rewriter;
  /** For the input of calls: the JSON text as it grows, then every string of the complete input. The rewritten input runs and is stored. */
  readonly call?: Rewriter;
}

/**
 * Creates a `model` hook that rewrites the deltas and the final response.
 *
 * ```ts
 * import { agent, rewrite, windowed } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const polite = { name: "polite", model: rewrite({ text: windowed(4, (text) => text.replaceAll("damn", "dear")) }) };
 * const { text } = await agent({ model: scripted({ text: ["Oh da", "mn."] }), use: [polite] }).run("Hi").result;
 * assertEquals(text, "Oh dear.");
 * ```
 */
export function rewrite(rewriters: RewriteOptions): Hook<ModelContext, ModelChange, ModelResponse> {
  expectNames("Cannot create rewrite()", rewriters, ["text", "reasoning", "call"]);
  return async function rewriteModel(ctx, next) {
    const stream = new DeltaRewriter(rewriters, ctx.emit);
    let response: ModelResponse;
    try {
      response = await next({ emit: (event) => stream.pass(event) });
    } catch (error) {
      stream.flush("cut");
      throw error;
    }
    stream.flush("end");
    const parts = response.parts.map((part) => rewritePart(part, rewriters));
    return parts.every((part, index) => part === response.parts[index]) ? response : { ...response, parts };
  };
}

/**
 * Creates a rewriter from `change`. While more text may follow, it holds back at least the last `window` characters: the length of the longest match of
 * `change`. The emitted text equals `change` of the whole text, however the text is split.
 */
export function windowed(window: number, change: (text: string) => string): Rewriter {
  return (text, at) => {
    const changed = change(text);
    if (at !== "more") return [changed, ""];
    for (let cut = text.length - window; cut > 0; cut--) {
      if (/[\uDC00-\uDFFF]/.test(text.charAt(cut))) continue; // inside a surrogate pair
      const out = change(text.slice(0, cut));
      const pending = text.slice(cut);
      if (out + change(pending) === changed) return [out, pending]; // no match crosses the cut
    }
    return ["", text];
  };
}

type AddedContent = Extract<Event, { type: "part.added" }>["content"];
type Growing = Extract<Event, { type: "text.delta" | "reasoning.delta" | "call.delta" }>;

/** The deltas of one request. Held text of a part is emitted before the next part. */
class DeltaRewriter {
  readonly #rewriters: RewriteOptions;
  readonly #emit: Emit;
  /** Held text by the number of a part or the id of a call. */
  readonly #pending = new Map<
    number | string,
    { readonly event: Growing; readonly rewriter: Rewriter; text: string }
  >();

  constructor(rewriters: RewriteOptions, emit: Emit) {
    this.#rewriters = rewriters;
    this.#emit = emit;
  }

  pass(event: Event): void {
    switch (event.type) {
      case "text.delta":
        return this.#grow(event, this.#rewriters.text, event.part);
      case "reasoning.delta":
        return this.#grow(event, this.#rewriters.reasoning, event.part);
      case "call.delta":
        return this.#grow(event, this.#rewriters.call, event.call);
      case "part.added":
        this.#leave(event.part);
        return this.#emit({ ...event, content: rewriteAdded(event.content, this.#rewriters.text) });
      case "provider_tool.started":
      case "provider_tool.finished":
        this.#leave(event.part);
        return this.#emit(event);
      case "call.ready":
        this.#leave(event.call.id);
        this.#release(event.call.id, "end");
        return this.#emit({ ...event, call: rewriteCall(event.call, this.#rewriters.call) });
      case "model.reset":
        this.#pending.clear();
        return this.#emit(event);
      default:
        return this.#emit(event);
    }
  }

  flush(at: "end" | "cut"): void {
    for (const key of [...this.#pending.keys()]) this.#release(key, at);
  }

  #grow(event: Growing, rewriter: Rewriter | undefined, key: number | string): void {
    if (event.type !== "call.delta") this.#leave(key);
    if (!rewriter) return this.#emit(event);
    const [out, pending] = rewriter((this.#pending.get(key)?.text ?? "") + event.text, "more");
    this.#pending.set(key, { event, rewriter, text: pending });
    if (out !== "") this.#emit({ ...event, text: out });
  }

  /** Ends the other text parts: a part ends when another one grows or a call is complete. Calls may grow in parallel. */
  #leave(key: number | string): void {
    for (const other of [...this.#pending.keys()]) {
      if (typeof other === "number" && other !== key) this.#release(other, "end");
    }
  }

  #release(key: number | string, at: "end" | "cut"): void {
    const pending = this.#pending.get(key);
    if (!pending) return;
    this.#pending.delete(key);
    const [out] = pending.rewriter(pending.text, at);
    if (out !== "") this.#emit({ ...pending.event, text: out });
  }
}

function rewritePart(part: AnswerPart, { text, reasoning, call }: RewriteOptions): AnswerPart {
  switch (part.type) {
    case "text":
      return rewriteText(part, text);
    case "reasoning":
      return rewriteText(part, reasoning);
    case "call":
      return rewriteCall(part, call);
    case "provider_call":
    case "provider_result":
      return part;
    default:
      return rewriteAdded(part, text);
  }
}

/** Rewrites a refusal. The tokens of a text that is rewritten are left out. */
function rewriteAdded(part: AddedContent, text: Rewriter | undefined): AddedContent {
  if (part.type === "refusal") return rewriteText(part, text);
  if (part.type !== "logprobs") return part;
  const whole = part.tokens.map(({ token }) => token).join("");
  return !text || text(whole, "end")[0] === whole ? part : { ...part, tokens: [] };
}

function rewriteText<T extends { readonly text: string }>(part: T, rewriter: Rewriter | undefined): T {
  const [text] = rewriter?.(part.text, "end") ?? [part.text];
  return text === part.text ? part : { ...part, text };
}

/** Rewrites every string of a call's input. The parse error is replaced, since it quotes the original input. */
function rewriteCall<T extends Call>(call: T, rewriter: Rewriter | undefined): T {
  if (!rewriter) return call;
  const input = mapTexts(call.input, (text) => rewriter(text, "end")[0]);
  if (call.malformed !== undefined) return { ...call, input, malformed: "not JSON" };
  return input === call.input ? call : { ...call, input };
}
