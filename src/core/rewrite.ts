/**
 * Rewriting what streams: the one way to change text on its way out, so that deltas, the final response and a retry agree.
 *
 * @module
 */
import type { Emit, Event } from "../protocol/event.ts";
import type { AnswerPart, Call } from "../protocol/message.ts";
import type { Hook } from "./onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "./points.ts";

/**
 * Changes a text that grows. `text` is all that was not let go of yet; it gives what may go out now, changed, and what is held back, as it was.
 * At "more" more may come; at "end" and "cut" (the stream broke off) nothing will, and what is held back is dropped.
 */
export type Rewriter = (text: string, at: "more" | "end" | "cut") => readonly [out: string, held: string];

/** What is rewritten. */
export interface RewriteOptions {
  /** The answer's text. */
  readonly text?: Rewriter;
  /** The model's thought. */
  readonly reasoning?: Rewriter;
  /** The input of calls: its JSON text as it grows, and every text in it when it is complete. What runs and what is kept is the rewritten one. */
  readonly call?: Rewriter;
}

/**
 * A `model` hook that rewrites what the model streams, in the deltas and in the response alike.
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
  return async function rewriteModel(ctx, next) {
    const stream = new Rewriting(rewriters, ctx.emit);
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
 * A rewriter that changes text by `change`. It holds back at least the last `window` characters for as long as more may come: let them be as many as
 * `change` needs to know what it changes. Whatever the pieces, what goes out is what `change` makes of the whole.
 */
export function windowed(window: number, change: (text: string) => string): Rewriter {
  return (text, at) => {
    const changed = change(text);
    if (at !== "more") return [changed, ""];
    for (let cut = text.length - window; cut > 0; cut--) {
      if (/[\uDC00-\uDFFF]/.test(text.charAt(cut))) continue; // within a character
      const out = change(text.slice(0, cut));
      const held = text.slice(cut);
      if (out + change(held) === changed) return [out, held]; // nothing that is changed lies across the cut
    }
    return ["", text];
  };
}

type Growing = Extract<Event, { type: "text.delta" | "reasoning.delta" | "call.delta" }>;

/** The deltas of one request on their way out: what one part holds back goes out before anything that comes after it. */
class Rewriting {
  readonly #rewriters: RewriteOptions;
  readonly #emit: Emit;
  /** By the number of a part, or the id of a call. */
  readonly #held = new Map<number | string, { readonly event: Growing; readonly rewriter: Rewriter; text: string }>();

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
      case "call.ready":
        this.#leave(event.call.id);
        this.#release(event.call.id, "end");
        return this.#emit({ ...event, call: rewriteCall(event.call, this.#rewriters.call) });
      case "model.reset":
        this.#held.clear();
        return this.#emit(event);
      default:
        return this.#emit(event);
    }
  }

  flush(at: "end" | "cut"): void {
    for (const key of [...this.#held.keys()]) this.#release(key, at);
  }

  #grow(event: Growing, rewriter: Rewriter | undefined, key: number | string): void {
    if (event.type !== "call.delta") this.#leave(key);
    if (!rewriter) return this.#emit(event);
    const [out, held] = rewriter((this.#held.get(key)?.text ?? "") + event.text, "more");
    this.#held.set(key, { event, rewriter, text: held });
    if (out !== "") this.#emit({ ...event, text: out });
  }

  /** A part has ended where another one grows, or a call is complete. Calls may grow beside. */
  #leave(key: number | string): void {
    for (const other of [...this.#held.keys()]) {
      if (typeof other === "number" && other !== key) this.#release(other, "end");
    }
  }

  #release(key: number | string, at: "end" | "cut"): void {
    const held = this.#held.get(key);
    if (!held) return;
    this.#held.delete(key);
    const [out] = held.rewriter(held.text, at);
    if (out !== "") this.#emit({ ...held.event, text: out });
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
  }
}

function rewriteText<T extends { readonly text: string }>(part: T, rewriter: Rewriter | undefined): T {
  const [text] = rewriter?.(part.text, "end") ?? [part.text];
  return text === part.text ? part : { ...part, text };
}

/** A call, every text of its input rewritten. Why an input was not JSON is not said: it would quote the input as it was. */
function rewriteCall<T extends Call>(call: T, rewriter: Rewriter | undefined): T {
  if (!rewriter) return call;
  const input = mapTexts(call.input, (text) => rewriter(text, "end")[0]);
  if (call.malformed !== undefined) return { ...call, input, malformed: "not JSON" };
  return input === call.input ? call : { ...call, input };
}

/** `value` with `change` applied to every text in it, whatever its shape; keys stay as they are. The very same value where nothing changed. */
export function mapTexts<T>(value: T, change: (text: string) => string): T {
  return mapped(value, change) as T; // of the same shape: only texts have changed
}

function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (typeof value !== "object" || value === null) return value;
  let changed = false;
  const entries = Object.entries(value).map(([key, each]) => {
    const text = mapped(each, change);
    changed ||= !Object.is(text, each);
    return [key, text] as const;
  });
  if (!changed) return value;
  return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}
