/**
 * The decision of a check.
 *
 * @module
 */

/** pass: the text is released. replace: `text` is released in its place. cut: `text` is released in its place, and the rest of the response is dropped. */
export type Screening =
  | { readonly type: "pass" }
  | { readonly type: "replace"; readonly text: string }
  | { readonly type: "cut"; readonly text?: string };
