/**
 * The data that the server puts into the page.
 *
 * @module
 */

import type { Price } from "../protocol/message.ts";

/** The options of `playground()`. */
export interface PlaygroundOptions {
  /** Prompts to choose from. Default: none. */
  readonly prompts?: readonly (string | ProposedPrompt)[];
  /**
   * Parts of the agent that the user of the page can turn off, to see what happens without them. The page sends the names of those that are off, separated by
   * commas, in the header `x-off` of each request; the agent has to use it. Default: none.
   */
  readonly switches?: readonly Switch[];
  /** Prices by the id of the model, as `budget()` takes them. Default: none, and the page shows tokens without their cost. */
  readonly prices?: Readonly<Record<string, Price>>;
}

/** A prompt to choose from. */
export interface ProposedPrompt {
  /** The prompt. */
  readonly text: string;
  /** A sentence that says what to look for when it runs. */
  readonly note?: string;
  /** The part of the agent that the prompt shows, such as the name of a middleware. */
  readonly by?: string;
}

/** A part of the agent that can be turned off. */
export interface Switch {
  /** The name that the page shows and sends. */
  readonly name: string;
  /** A sentence that says what happens without it. */
  readonly note?: string;
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
  readonly prompts: readonly ProposedPrompt[];
  readonly agent: string;
  /** Undefined if a function picks the model for each request. */
  readonly model?: string;
  /** Whether the user may run a tool alone. */
  readonly runsTools: boolean;
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    /** The JSON Schema of its input. */
    readonly schema: object;
  }[];
}
