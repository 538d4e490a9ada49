/**
 * The port between the records of runs and the server that executes the runs.
 *
 * @module
 */
import type { UserMessage } from "../../protocol/message.ts";
import type { SendOptions } from "../../core/steering.ts";
import type { AbortOptions } from "../../core/control.ts";
import type { OnError } from "../../core/events.ts";
import type { StartOptions } from "../../core/start.ts";
import type { Stop } from "../../core/position.ts";
import type { Mail, Session, SessionHead } from "../../core/session.ts";
import type { HeldSession } from "../resume_token/mod.ts";

/** A request, a run or a session, by its owner. */
export interface Owned {
  /** The owner; undefined if the server has no `owner` option. */
  readonly owner?: string | undefined;
}

/** The client of one request. Requesters reach the sessions and runs of their own owner only. */
export interface Requester extends Owned {
  /** The owner of what the request creates or reaches; undefined if the server has no `owner` option. */
  readonly owner: string | undefined;
  /** The vars that runs of this request receive. */
  readonly vars: unknown;
  /** Asks the platform to keep the process alive until `work` settles, although the response may end before. */
  outlive(work: Promise<unknown>): void;
}

/** A run that continues without a request. */
export interface RecoveredRun {
  /** The run. */
  readonly run: string;
  /** Its session. */
  readonly session: string;
  /** The owner of both, if the server has the `owner` option. */
  readonly owner?: string;
}

/** The input of a run that begins or resumes. */
export interface LaunchInput extends
  Partial<
    Pick<
      StartOptions,
      | "answers"
      | "stop"
      | "rollback"
      | "busy"
      | "requestId"
      | "isRepeated"
      | "pausedAt"
      | "compact"
      | "tools"
      | "messages"
      | "rewind"
      | "call"
      | "answerFormat"
      | "firstEvents"
      | "traceparent"
      | "isNew"
      | "mustExist"
    >
  > {
  /** The run to continue. Default: a new one. */
  readonly run?: string;
  /** Its session. */
  readonly session: string;
  /** A prompt, in place of `messages`. */
  readonly prompt?: string;
  /** The session itself, if the client keeps it in a resume token. */
  readonly tokenSession?: HeldSession | undefined;
}

/**
 * A run that this process executes, in the request that has launched it. Every request may call its functions: what they do is done in the request of the
 * run, and the promises that they return belong to their caller. So they settle also if the platform ends the request of the run. If it has, for a lease, the
 * run does not live.
 */
export interface LiveRun {
  /** The run's id. */
  readonly id: string;
  /** The session's id. */
  readonly session: string;
  /** False if the run is over, or if nothing executes it any more. */
  readonly lives: boolean;
  /** Stops the run. Resolves to true once it stops; to undefined if it does not live. */
  abort(stop: Stop, options?: AbortOptions): Promise<true | undefined>;
  /** Lets the run finish its turn, and ends it with `reason`. Resolves as `abort()`. */
  drain(reason: string): Promise<true | undefined>;
  /** Sends a message to the run. Resolves to true once it is accepted; to undefined if the run does not live. Rejects as `send()` of a started run does. */
  send(message: UserMessage, options?: SendOptions): Promise<true | undefined>;
  /** Asks the run to end with one more answer. Resolves as `send()`. */
  finish(): Promise<true | undefined>;
  /** Resolves when the run has its session, to the number of the event before its first one; to undefined if it could not begin, or does not live. */
  untilReady(): Promise<number | undefined>;
  /** Resolves when the run has ended or paused, or when it does not live. */
  untilOver(): Promise<void>;
}

/** The server that executes runs, as the records see it. */
export interface RunHost {
  /** The agent. */
  readonly agent: { readonly "~definition": object };
  /** Receives the errors of runs. */
  readonly onError: OnError;
  /** Milliseconds without an event after which a run of another process is checked. */
  readonly lease: number;
  /** Ends every stream when it aborts. */
  readonly signal: AbortSignal | undefined;
  /** Loads a session of the requester. */
  load(session: string, requester: Owned): Promise<Session | undefined>;
  /** Reads a session of the requester without its messages. */
  head(session: string, requester: Owned): Promise<SessionHead | undefined>;
  /** Posts mail for a run that works. Resolves to whether there was room for it; to undefined if the run is paused or over. */
  post(run: Required<RunAddress>, mail: Mail, requester: Owned): Promise<boolean | undefined>;
  /** Returns a run of the requester that lives in this process. */
  get(run: string, requester: Owned): LiveRun | undefined;
  /** Whether this process executes the run, or may have just begun it. */
  executes(run: string, requester: Owned): boolean;
  /** Whether the run is known to be executed nowhere. */
  isDead(run: string, requester: Owned): boolean;
  /** Begins or resumes a run; resolves when it is ready. The platform keeps the process alive until the run is over. */
  launch(input: LaunchInput, requester: Requester): Promise<LiveRun>;
}

/** A run, as a request names it. */
export interface RunAddress {
  /** The run. */
  readonly run: string;
  /** The session of the run. Default: the session that its events name. */
  readonly session?: string;
}

/** A place between two events of a run. */
export interface EventCursor extends RunAddress {
  /** The number of the event before the cursor; 0 at the beginning. */
  readonly after: number;
}
