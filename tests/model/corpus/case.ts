/**
 * A case of the corpus: a stream from a provider's documentation, and its expected events.
 *
 * @module
 */
import type { FinishReason } from "@jizai/jizai";

/** A provider's stream and its content. */
export interface CorpusCase {
  /** The features that the stream shows. */
  readonly name: string;
  /** The page that documents the example or its events. */
  readonly source: string;
  /** The bytes of the response, as text. */
  readonly stream: string;
  /** The content of the response. */
  readonly expected: Content;
}

/** The content of a response. */
export interface Content {
  readonly text: string;
  /** The calls in order, each as its name and its input. */
  readonly calls: readonly (readonly [name: string, input: unknown])[];
  readonly finish: FinishReason;
  /** The reasoning that is shown. Default: none. */
  readonly reasoning?: string;
  /** The calls that the provider ran, each as the name of its tool and its output. Default: none. */
  readonly ran?: readonly (readonly [name: string, output: unknown])[];
}

/** Encodes frames without names, as chat completions and Gemini send them. */
export function dataFrames(frames: readonly object[], end = ""): string {
  return frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("") + end;
}

/** Encodes frames that are named by their type. */
export function namedFrames(frames: readonly { readonly type: string }[]): string {
  return frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join("");
}
