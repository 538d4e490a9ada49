/**
 * The text that a check receives, and its decision.
 *
 * @module
 */

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
