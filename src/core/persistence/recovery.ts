/**
 * The port of recovery, which takes over runs whose process died.
 *
 * @module
 */
import type { LeasedSession } from "./session.ts";
import type { StoreAdapter } from "./store.ts";

/** The options of `recover()`. */
export interface RecoverOptions {
  /** The number of runs to take over, a whole number of at least 1. Default: 10. */
  readonly limit?: number;
}

/** The runs that `recover()` took over. */
export interface Recovered {
  /** Their ids. Of runs that have died before, four continue at a time, and one that has died more often alone: the first ones are here. */
  readonly runs: readonly string[];
  /** Resolves when all of them have ended or paused. Never rejects. */
  readonly over: Promise<void>;
}

/** Takes over runs whose process died. Resolves when they have begun. Rejects if the store fails or `limit` is no whole number of at least 1. */
export type Recover = (options?: RecoverOptions) => Promise<Recovered>;

/** The part of a store that recovery uses. */
export interface LeaseIndex extends Pick<StoreAdapter, "head" | "entries"> {
  /** Returns the ids of sessions whose lease has ended. */
  pending(before: number, limit: number): Promise<readonly string[]>;
  /** Moves the end of a lease, for one of several processes. */
  touch(session: LeasedSession, until: number): Promise<boolean>;
  /** Deletes the entry of a pause that was reported. */
  delete(id: string): Promise<void>;
}

/** Creates the recovery of a server from its store. It comes with the store, so that a server without a durable one does not contain it. */
export type OpenRecovery = (store: LeaseIndex, server: never) => Recover;
