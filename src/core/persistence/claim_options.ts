/**
 * The options of a claim.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import type { RunSnapshot } from "../run/position.ts";
import type { Session } from "./session.ts";
import type { RunStore } from "./store.ts";

/** The session that a run claims, and how. */
export interface ClaimOptions {
  /** The idempotency id of the request. Default: none. */
  readonly requestId?: string | undefined;
  /** The id of a new run, or of the run to continue. Default: a new id, or the run that has the session. */
  readonly run?: string | undefined;
  /** The start of a new run, in milliseconds since 1970. Default: now. */
  readonly startedAt?: number | undefined;
  /** A new prompt: messages of which the last is the person's. */
  readonly messages?: readonly Message[] | undefined;
  /** Returns how many messages of the session stay when the prompt, the last of `messages`, is accepted; undefined for all. Default: all. */
  readonly rewind?: ((session: Session, messages: readonly Message[]) => number | undefined) | undefined;
  /** Answers to a paused run. Empty for a run whose process died. */
  readonly answers?: readonly PersonAnswer[];
  /** Only compacts the transcript, with these instructions. Throws if a run has the session. */
  readonly compact?: { readonly instructions: string };
  /** The session. Default: a new one, which a store saves only if the run pauses. */
  readonly session?: string | undefined;
  /** The store of sessions. */
  readonly store: RunStore;
  /** The owner of the session. Sessions of other owners count as unknown. Default: no owner is checked. */
  readonly owner?: string | undefined;
  /** Milliseconds after which a run that does not renew its lease is lost. Default: 30,000. */
  readonly lease?: number | undefined;
  /** Returns true if a run is known to be dead. `until` is the end of its lease. Default: a run is dead after its lease. */
  readonly lost?: ((run: string, until?: number) => boolean) | undefined;
  /** The action if another run holds the session. Default: "refuse". */
  readonly busy?: "refuse" | "replace" | undefined;
  /** The number of the `run.paused` event that asked the questions. Later questions are not answered. Default: the last event. */
  readonly pausedAt?: number | undefined;
  /** Returns the snapshot of a run that continues, with the events and results that are logged and were not saved. Default: there is no log. */
  readonly reconcile?: ((run: RunSnapshot) => Promise<RunSnapshot>) | undefined;
  /** Ends the run as soon as its open calls have results, for this reason. Default: the run continues. */
  readonly closing?: string | undefined;
  /** Restores the transcript to the start of the run when it ends because of `closing`. Default: false. */
  readonly rollback?: boolean | undefined;
}

/** A run that must be closed before its session can be claimed. */
export interface MustClose {
  /** The reason with which it is closed. */
  readonly close: "lost" | "replaced";
}
