/**
 * The data that the server puts into the page.
 *
 * @module
 */

import type { Price } from "../protocol/message.ts";

/** The options of `playground()`. */
export interface PlaygroundOptions {
  /** Prompts to choose from on the empty page. Default: none. */
  readonly prompts?: readonly string[];
  /** Prices by the id of the model, as `budget()` takes them. Default: none, and the page shows tokens without their cost. */
  readonly prices?: Readonly<Record<string, Price>>;
}

/** The part of an agent that the page describes. */
export interface DescribedAgent {
  /** The name of the agent. */
  readonly name: string;
  /** The definition of the agent. */
  readonly "~definition": object;
}

/** The data of the page: the options, and what the page shows of the agent. */
export interface PageData extends Required<PlaygroundOptions> {
  readonly agent: string;
  /** Undefined if a function picks the model for each request. */
  readonly model?: string;
  readonly tools: readonly { readonly name: string; readonly description: string }[];
}
