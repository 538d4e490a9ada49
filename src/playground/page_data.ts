/**
 * The data that the server puts into the page.
 *
 * @module
 */

/** Price of a million tokens of a model, in any currency. */
export interface Price {
  /** Price of the request's tokens. */
  readonly input: number;
  /** Price of the answer's tokens. */
  readonly output: number;
  /** Price of tokens that the provider read from its cache. Default: as `input`. */
  readonly cached?: number;
  /** Price of tokens that the provider wrote to its cache. Default: as `input`. */
  readonly cacheWrite?: number;
  /** Price of the answer's tokens that the model used for reasoning. Default: as `output`. */
  readonly reasoning?: number;
}

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
