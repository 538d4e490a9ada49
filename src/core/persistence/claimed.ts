/**
 * The outcome of a claim.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { AnsweredQuestion, Exit, RunSnapshot } from "../run/position.ts";
import type { Mail, Rule, Session } from "./session.ts";
import type { SessionVersion } from "./session_version.ts";

/** The saved state that a run starts from. */
export interface Claimed {
  /** The run as it starts here. Its events, usage and answers are those so far. */
  readonly start: RunSnapshot;
  /** The transcript. */
  readonly messages: readonly Message[];
  /** The number of compactions of the transcript. */
  readonly compactions: number;
  /** The stored version of the session. */
  readonly version: SessionVersion;
  /** The owner of the session, if there is one. */
  readonly owner: string | undefined;
  /** State of middleware for the session, by name. */
  readonly state: readonly (readonly [string, unknown])[];
  /** Calls that a person always allows. */
  readonly rules: readonly Rule[];
  /** Messages that other processes sent to the run. */
  readonly mail: readonly Mail[];
  /** True if the run continues after a pause or a crash. */
  readonly resumed: boolean;
  /** True if the run's process died. */
  readonly lost: boolean;
  /** The reason why the run ends as soon as its open calls have results, if it does. */
  readonly closing: string | undefined;
  /** True if the transcript is restored to the start of the run that is closed. */
  readonly rollback: boolean;
  /** The session as it was stored, if a run has it. A start that is undone restores it. */
  readonly stored: Session | undefined;
  /** The pause that is answered. */
  readonly pause?: Exit | undefined;
  /** The answers of this claim, which are the last ones in `start`. */
  readonly given: readonly AnsweredQuestion[];
}
