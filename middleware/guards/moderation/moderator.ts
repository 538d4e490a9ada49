/**
 * The port of moderation services.
 *
 * @module
 */
import type { ContentPart } from "../../../mod.ts";

/** The result of a moderation. */
export interface Moderation {
  /** Whether the content is not acceptable. */
  readonly flagged: boolean;
  /** The categories of the service that apply, for the operator. */
  readonly categories: readonly string[];
}

/** A moderation service. */
export interface Moderator {
  /** Checks content. Stops when `signal` aborts. A rejection counts as flagged content. */
  moderate(parts: readonly ContentPart[], options: { readonly signal: AbortSignal }): Promise<Moderation>;
}
