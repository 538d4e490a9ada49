/**
 * The outcome of a claim.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { AnsweredQuestion, Exit, RunSnapshot } from "../run/position.ts";
import type { Mail, Rule, Session } from "./session.ts";

/** The saved state that a run starts from. */
export interface Claimed {
  readonly start: RunSnapshot;
  readonly messages: readonly Message[];
  readonly archive: string | undefined;
  readonly version: number;
  readonly owner: string | undefined;
  readonly state: readonly (readonly [string, unknown])[];
  readonly rules: readonly Rule[];
  /** Messages that other processes sent to the run. */
  readonly mail: readonly Mail[];
  /** True if the run continues after a pause or a crash. */
  readonly resumed: boolean;
  /** True if the run's process died. */
  readonly lost: boolean;
  readonly closing: string | undefined;
  /** True if the transcript is restored to the start of the run that is closed. */
  readonly rollback: boolean;
  /** The session as it was stored, if a run has it. A start that is undone restores it. */
  readonly before: Session | undefined;
  /** The pause that is answered. */
  readonly exit?: Exit | undefined;
  /** The answers of this claim, which are the last ones in `start`. */
  readonly given: readonly AnsweredQuestion[];
}
