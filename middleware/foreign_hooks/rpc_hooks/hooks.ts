/**
 * The hooks of one middleware, and what they share.
 *
 * @module
 */
import type { Model, ModelRequest, Run, Scope } from "../../../mod.ts";
import type { About, Place } from "./about.ts";
import type { Chain, Warn } from "./chain.ts";
import type { Observers } from "./observers.ts";

/** What is known of a run while it lives. */
export interface Notes {
  /** What the person asked. */
  prompt: string;
  /** What hooks made of the request of a turn, and of which. */
  asked?: { readonly turn: number; readonly messages: string; readonly change: Partial<ModelRequest> | undefined };
  /** How long the work of calls took, in milliseconds. */
  readonly took: Map<string, number>;
}

/** The hooks of one middleware. */
export interface Hooks extends Place {
  /** Those that are asked. */
  readonly chain: Chain;
  /** Those that are told. */
  readonly observers: Observers;
  /** Told of those that fail. */
  readonly warn: Warn;
  /** The model of a name, where hooks may choose it. */
  readonly models: (name: string) => Model | undefined;
  /** Whether approvers are asked about calls that a hook answered. */
  readonly approveResponses: boolean;
  /** What is known of a run. */
  readonly notes: (run: Run) => Notes;
  /** What every hook is told of something that happens at `path`. */
  readonly about: (ctx: Scope, iteration: number, path: string) => About;
}

/** Keeps notes of runs. */
export function noting(): Hooks["notes"] {
  const all = new WeakMap<Run, Notes>();
  return (run) => {
    let notes = all.get(run);
    if (!notes) all.set(run, notes = { prompt: "", took: new Map() });
    return notes;
  };
}

/** Milliseconds as nanoseconds. */
export function nanoseconds(ms: number): number {
  return Math.round(ms * 1_000_000);
}

/** The length of a text as Go counts it, in bytes. */
export function lengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
