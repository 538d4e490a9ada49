/**
 * Asynchronous screening of streamed text, such as moderation: the text is checked before clients and the transcript receive it.
 *
 * @module
 */
import { anySignal } from "../../lib/any_signal.ts";
import { expectNames } from "../../../protocol/shape.ts";
import { noUsage } from "../../../protocol/message.ts";
import type { MediaPart } from "../../../protocol/part.ts";
import type { Hook } from "../../hooks/onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "../../hooks/points/turn.ts";
import { withinTime } from "../../lib/cancellation.ts";
import { type CheckedPart, checkedText, isChecked } from "./checked_part.ts";
import { ScreenedStream, type StreamOptions } from "./stream.ts";
import type { ScreenedText, Screening } from "./screening.ts";

export type { ScreenedText, Screening } from "./screening.ts";

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
