/**
 * The load of a process: its streams, and the facts about the runs that it executes.
 *
 * @module
 */
import type { RunCause } from "./facts.ts";
import { addUsage, type Usage } from "../protocol/message.ts";
import type { LaunchInput } from "../session/record/run_host.ts";

/** Returns the reason why a launch begins or continues its run. */
export function causeOf({ stop, compact, answers, pausedAt }: LaunchInput): RunCause {
  if (stop) return "stop";
  if (!answers) return compact ? "compaction" : "prompt";
  return pausedAt === undefined ? "recovery" : "answers";
}

/** Returns the tokens of `usage` that were not used before. */
export function usageSince(before: Usage, usage: Usage): Usage {
  const { input, output, cached = 0, cacheWrite = 0, reasoning = 0 } = before;
  const negative = { input: -input, output: -output, cached: -cached, cacheWrite: -cacheWrite, reasoning: -reasoning };
  return addUsage(usage, negative);
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
