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
import type { StoreFact, StoreOperation } from "../core/store.ts";
import type { Usage } from "../protocol/message.ts";
import type { RecoveredRun } from "../session/record/run_host.ts";

export type { RecoveredRun, StoreFact, StoreOperation };

/** The reason why a run begins or continues: a request, or `recovery`, which takes over a run of another process, or `stop`, which ends one that nothing executes. */
export type RunCause = "prompt" | "answers" | "compaction" | "recovery" | "stop";

/** A fact about a run. Its name, session and owner are ids. */
export type RunFact =
  /** A run begins or continues in this process. */
  | RecoveredRun & { readonly type: "run.started"; readonly cause: RunCause }
  /** A run has ended or paused, or continues in another process ("handed-over"). Its time and its tokens are those since `run.started`. */
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
}
