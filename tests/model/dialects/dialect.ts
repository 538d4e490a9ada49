/**
 * Dialects: each writes canonical responses as the servers of one API stream them, with their quirks.
 *
 * To add a quirk, add a value to an aspect (or an aspect) and render it. To add a dialect, write one file with `dialect({ ... })` and add it to `all.ts`. A quirk that the adapter does not read is not added before the adapter reads it.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import type { ProviderOptions } from "@jizai/jizai/model/openai";
import type { Chance } from "../../support/seeded.ts";
import type { CanonicalResponse } from "./canonical.ts";

/** The aspects in which servers differ: for each the documented form, and then the quirks. Values are compared by identity and named in failures. */
export type Aspects = Readonly<Record<string, readonly [string, ...string[]]>>;

/** The form of one response: a value for each aspect. */
export type Form<A extends Aspects> = { readonly [aspect in keyof A]: A[aspect][number] };

/** The body of a request. */
// deno-lint-ignore no-explicit-any -- each API has a body of its own
export type Body = any;

/** A frame whose event has a name. */
export class NamedFrame {
  /** Creates a frame. Its data is an object, or other data as text. */
  constructor(readonly event: string, readonly data: object | string) {}
}

/** A response as a server writes it. */
export interface Rendered {
  /** The frames in order: objects, other data as text, and frames with a name. */
  readonly frames: readonly (object | string)[];
  /** Matches the error with which the turn must end because this form loses content. Undefined if nothing is lost. */
  readonly lost?: RegExp;
  /** The number of warnings about content that the adapter does not know. Default: 0. */
  readonly warnings?: number;
  /** The frames of a response that the server paused before this one. Default: none. */
  readonly paused?: readonly (object | string)[];
  /** The calls and results of tools that the server ran: the name, and the input or the status and output. Default: they are not checked. */
  readonly ran?: readonly (readonly unknown[])[];
  /** Throws unless the next request sends back what the server needs. `continued` is the request that continues a paused response. Default: nothing is checked. */
  readonly checkNext?: (body: Body, continued: Body) => void;
}

/** The servers of one API. */
export interface Dialect<A extends Aspects = Aspects> {
  /** The name of the adapter. */
  readonly name: string;
  readonly aspects: A;
  /** Creates the adapter. */
  readonly model: (options: Pick<ProviderOptions, "fetch">) => Model;
  /** Whether a response has the content that an aspect is about. A quirk alone is tried with such responses. Default: each has. */
  readonly concerns?: { readonly [aspect in keyof A]?: (response: CanonicalResponse) => boolean };
  /** Replaces quirks of a form that no server combines. Default: the form itself. */
  readonly settle?: (form: Form<A>, response: CanonicalResponse) => Form<A>;
  /**
   * Returns the response as the API can express it, in the order in which the adapter must return it. The law compares the result of the adapter with this.
   * A text of a refusal that is also text of the answer is a block here.
   */
  readonly expected: (response: CanonicalResponse, form: Form<A>) => CanonicalResponse;
  /** Renders what `expected` returns. */
  readonly render: (response: CanonicalResponse, form: Form<A>, chance: Chance) => Rendered;
}

/** Infers the aspects of a dialect. */
export function dialect<const A extends Aspects>(of: Dialect<A>): Dialect {
  return of as unknown as Dialect; // the law passes to a dialect only forms of its own aspects
}

/** Returns the documented form. */
export function documented<A extends Aspects>(aspects: A): Form<A> {
  return Object.fromEntries(Object.entries(aspects).map(([aspect, [value]]) => [aspect, value])) as Form<A>; // one value of each aspect
}

/** Returns a form in which each aspect has a quirk with the probability 1 / `rarity`. */
export function randomForm<A extends Aspects>(aspects: A, { below, one }: Chance, rarity: number): Form<A> {
  const entries = Object.entries(aspects).map((
    [aspect, values],
  ) => [aspect, below(rarity) === 0 ? one(values) : values[0]]);
  return Object.fromEntries(entries) as Form<A>; // one value of each aspect
}
