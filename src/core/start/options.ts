/**
 * The options of a run, and the handle of a run that has started.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { UserMessage } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import type { SendOptions } from "../features/steering.ts";
import type { RunResult, Settings } from "../hooks/points/run.ts";
import type { ClaimOptions } from "../persistence/claim_options.ts";
import type { Scope } from "../hooks/scope.ts";
import type { Claimed } from "../persistence/claimed.ts";
import type { StopOptions } from "../run/control.ts";
import type { NumberedEvent } from "../run/events.ts";
import type { Limits } from "../run/limits.ts";
import type { EngineOptions, EngineRun, RunBeginning } from "../run/run.ts";

/** The options of a run, however it starts. */
export interface StartOptions extends ClaimOptions, EngineOptions {
  readonly signal?: AbortSignal | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /** Events to emit after the first ones. */
  readonly early?: readonly Event[] | undefined;
  /** Throws a `SessionError` if the run cannot start from the state that it has claimed. Default: every run can. */
  readonly check?: ((beginning: Beginning, claimed: Claimed) => void) | undefined;
  /** Runs the `input` hooks for what a client gave beside its messages, and changes the run accordingly. Throws a `Refusal`. Default: there is nothing. */
  readonly review?: ((run: EngineRun, scope: Scope) => Promise<void>) | undefined;
  readonly parent?: NonNullable<EngineOptions["parent"]> & { readonly settings: Partial<Settings> };
}

/** The parts of a run that exist before it has its session. */
export interface Beginning extends RunBeginning {
  readonly options: StartOptions;
  /** Events of the `input` hooks that ran before the first event. */
  readonly early: Event[];
}

/** A run that has its session. */
export interface Opened {
  /** The run's id. */
  readonly run: string;
  /** The number of the event before the first one: 0 unless the run continues. */
  readonly after: number;
}

/** A run that has started. */
export interface Started {
  /** The session's id. */
  readonly session: string;
  /** Resolves once the run has its session. Rejects with a `SessionError` if it cannot have it. */
  readonly opened: Promise<Opened>;
  /** The result. Never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops the run. Default reason: "stop". */
  stop(reason?: string, options?: StopOptions): void;
  /**
   * Sends a message to the run, which receives it at the next safe place. Resolves once it is accepted; of a run that is saved as it works, once it is
   * saved. Rejects with a `RangeError` if ten messages wait, and with a `SessionError` if the run is over or an `input` hook refuses the message.
   */
  send(message: string | UserMessage, options?: SendOptions): Promise<void>;
  /**
   * Asks the run to end with one more answer, without tools. Calls that have not begun are skipped. Resolves once the request is accepted; of a run that is
   * saved as it works, once it is saved. Rejects with a `SessionError` if the run is over, or ends before the request is saved. Callers need not wait.
   */
  finish(): Promise<void>;
  /** Ends the run after its turn, as a limit does. */
  drain(reason: string): void;
  /**
   * Gives the run to another process, at the next safe place or after `grace` milliseconds. Its state is saved without its lease, and the stream of events
   * ends without a last event. A run in memory is aborted with the reason "shutdown".
   */
  handOver(grace: number): void;
}

/** Discards events. */
export const nullSink: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };
