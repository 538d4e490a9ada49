/**
 * The records that `audit()` writes.
 *
 * @module
 */
import type { InputSource, ResultStatus, RunResult } from "../../../mod.ts";
import type { Decision } from "../../../src/core/engine.ts";

/** Fields of every record. */
export interface AuditStamp {
  /** Time of writing, in ISO 8601. */
  readonly time: string;
  /** Id of the run. */
  readonly run: string;
  /** Id of the session. */
  readonly session: string;
  /** The run and the call that the agent works for. Missing if the agent is not a tool of another one. */
  readonly parent?: { readonly run: string; readonly call: string };
}

/** The input, or the SHA-256 of its canonical JSON in hexadecimal if `hash` is set. */
export type AuditInput = { readonly input: unknown } | { readonly sha256: string };

/** Records a prompt when it arrives. */
export type PromptRecord = AuditStamp & AuditInput & { readonly type: "prompt" };

/** Records another message from outside, before it is accepted: an entry of the history that a client sent, steering, or a reply. */
export type InputRecord = AuditStamp & AuditInput & {
  readonly type: "input";
  readonly source: Exclude<InputSource, "prompt">;
};

/** Records a completed call. */
export type CallRecord = AuditStamp & AuditInput & {
  readonly type: "call";
  readonly turn: number;
  /** Id of the call. */
  readonly call: string;
  /** Name of the tool that ran, or would have run. */
  readonly tool: string;
  /** The decision. Missing if the call did not reach `approval`. */
  readonly decision?: Decision;
  /** The source of the decision. */
  readonly by?: "policy" | "person" | "rule";
  /**
   * Status of the result. `ended` or `threw`: a hook ended the run or failed before there was a result. `aborted`: also if the run stopped before the hooks
   * reviewed it.
   */
  readonly status: ResultStatus | "ended" | "threw";
  /** Milliseconds from the entry of the call to its result, which include the wait for its batch. */
  readonly ms: number;
};

/** Records the end or the pause of a run. */
export type RunEndRecord = AuditStamp & {
  readonly type: "run";
  readonly status: RunResult["status"] | "threw";
  readonly ms: number;
};

/** One parsed line. */
export type AuditRecord = PromptRecord | InputRecord | CallRecord | RunEndRecord;
