/**
 * The load of a process: its streams, and the facts about the runs that it executes.
 *
 * @module
 */
import type { RunCause } from "./facts.ts";
import { defaultLimits } from "../core/limits.ts";
import type { RunResult } from "../core/points.ts";
import { stops } from "../core/position.ts";
import { addUsage, noUsage, type Usage, usageSince } from "../protocol/message.ts";
import type { LaunchInput } from "../session/record/run_host.ts";

/** Returns the reason why a launch begins or continues its run. */
export function causeOf({ stop, compact, answers, pausedAt }: LaunchInput): RunCause {
  if (stop) return "stop";
  if (!answers) return compact ? "compaction" : "prompt";
  return pausedAt === undefined ? "recovery" : "answers";
}

/** The reasons that the engine gives for an end of a run. All others are texts of callers and hooks. */
const reasons: ReadonlySet<string | undefined> = /* @__PURE__ */ new Set([
  ...Object.values(stops).map(({ reason }) => reason),
  ...Object.keys(defaultLimits),
  ...["interrupted", "store", "length", "other"],
]);

/** Returns the end of a run as a fact, without texts that may contain content. The tokens are those that were not used before. */
export function endOf({ status, reason, usage }: RunResult, before: Usage, isDurable: boolean) {
  return {
    status: isDurable && reason === stops.handedOver.reason ? "handed-over" as const : status,
    ...(reasons.has(reason) && { reason }),
    usage: addUsage(noUsage, usageSince(usage, before)),
  };
}

/** The responses of a server that send events. */
export class Streams {
  /** The number of those that follow a record. */
  followers = 0;
  #launched = 0;
  readonly #endFollower = () => void this.followers--;
  readonly #endLaunched = () => void this.#launched--;

  /** The number of all. */
  get size(): number {
    return this.#launched + this.followers;
  }

  /** Counts the response of a run that is launched. Returns the function that ends it. */
  open(): () => void {
    this.#launched++;
    return this.#endLaunched;
  }

  /** Counts a response that follows a record. Returns the function that ends it. */
  follow(): () => void {
    this.followers++;
    return this.#endFollower;
  }
}
