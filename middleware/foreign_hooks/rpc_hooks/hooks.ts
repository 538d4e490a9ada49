/**
 * The hooks of one middleware, and the data that its points share.
 *
 * @module
 */
import type { Model, ModelRequest, Run, Scope } from "../../../mod.ts";
import type { Chain, Warn } from "./chain.ts";
import type { Observers } from "./observers.ts";
import type { About, WireForm } from "./wire/input.ts";

/** Data about a run while it lives. */
export interface Notes {
  prompt: string;
  /** The request of a turn that hooks have changed. Another attempt of the same request repeats the change. */
  asked?: { readonly turn: number; readonly messages: string; readonly change: Partial<ModelRequest> | undefined };
  /** The time of the work of calls, in milliseconds, by call id. */
  readonly took: Map<string, number>;
}

/** The hooks of one middleware. */
export interface Hooks extends WireForm {
  readonly chain: Chain;
  readonly observers: Observers;
  readonly warn: Warn;
  /** Returns the model of a name. */
  readonly models: (name: string) => Model | undefined;
  /** Whether approvers are asked about calls that a hook has answered. */
  readonly approveResponses: boolean;
  readonly notes: (run: Run) => Notes;
  /** Returns the fields of every request about something at `path`. */
  readonly about: (ctx: Scope, turn: number, path: string) => About;
}

/** Creates the notes of runs. */
export function notesOfRuns(): Hooks["notes"] {
  const all = new WeakMap<Run, Notes>();
  return (run) => {
    let notes = all.get(run);
    if (!notes) all.set(run, notes = { prompt: "", took: new Map() });
    return notes;
  };
}

/** Converts milliseconds to nanoseconds. */
export function nanoseconds(ms: number): number {
  return Math.round(ms * 1_000_000);
}

/** Returns the length of a text as Go counts it, in bytes. */
export function lengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
