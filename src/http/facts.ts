/**
 * The facts of a server, for metrics and for an operator: what happens to its runs, its requests and its store.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import type { ServerFact } from "@jizai/jizai/facts";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const counts = new Map<ServerFact["type"], number>();
 * const app = serve(agent({ model: scripted("Hello!") }), {
 *   observe: ({ type }) => void counts.set(type, (counts.get(type) ?? 0) + 1),
 * });
 * console.log(app.stats());
 * ```
 *
 * @module
 */
import type { RunResult } from "../core/points.ts";
import type { StateBefore } from "../core/start.ts";
import type { StoreFact, StoreOperation } from "../core/store.ts";
import type { Usage } from "../protocol/message.ts";
import type { RecoveredRun } from "../session/record/run_host.ts";

export type { RecoveredRun, StateBefore, StoreFact, StoreOperation };

/** The reason why a run begins or continues: a request, or `recovery`, which takes over a run of another process, or `stop`, which ends one that nothing executes. */
export type RunCause = "prompt" | "answers" | "compaction" | "recovery" | "stop";

/** A fact about a run, without content: its name, session, owner and model are ids. */
export type RunFact =
  /**
   * A run begins or continues in this process. One that continues was in the state `before`. If it was lost, its lease had ended `lag` milliseconds ago, by the
   * clock of this process; 0 if it was taken over earlier. A run in memory has no lease. `recoveries` counts the processes that have died with it since it
   * began or paused: a run that keeps dying has more than one.
   */
  | RecoveredRun & {
    readonly type: "run.started";
    readonly cause: RunCause;
    readonly before?: StateBefore;
    readonly lag?: number;
    readonly recoveries?: number;
  }
  /** A request of a run, or of a subagent of it, has used tokens of a model. A response without a number of tokens is no fact. */
  | RecoveredRun & { readonly type: "model.used"; readonly model: string; readonly usage: Usage }
  /**
   * A run has ended or paused, or continues in another process ("handed-over"). Its time and its tokens are those since `run.started`. `reason` is one of the
   * engine, such as "client-gone" or the name of a limit; a text of a caller or a hook is left out.
   */
  | RecoveredRun & {
    readonly type: "run.ended";
    readonly cause: RunCause;
    readonly status: RunResult["status"] | "handed-over";
    readonly reason?: string;
    readonly milliseconds: number;
    readonly usage: Usage;
  };

/** A request that is refused or has failed. `route` is its method and path, such as "POST /runs", and `code` that of the response. */
export interface RequestFact {
  /** The type of the fact. */
  readonly type: "request.refused";
  /** The method and the path of the route. */
  readonly route: string;
  /** The status of the response. */
  readonly status: number;
  /** The code of the error. Default: an `HTTPException` of `owner` or `vars` has none. */
  readonly code?: string;
}

/** A fact about a server, at the time when it is observed. */
export type ServerFact = RunFact | RequestFact | StoreFact;

/** The load of a process at a time. */
export interface ServerStats {
  /** The runs that it executes, also those that begin. A paused run takes no room. */
  readonly runs: number;
  /** The responses that send events. */
  readonly streams: number;
  /** Those of them that read a record: their clients have reconnected, or follow a run of another process. */
  readonly followers: number;
  /** The prompts that wait for their sessions. */
  readonly queued: number;
  /** The events that wait until they are stored, before they are sent. */
  readonly waiting: number;
  /** The bytes that its runs hold, as `capacity.bytes` estimates them. */
  readonly bytes: number;
}
