/**
 * Limits of a run: their defaults, their checks, and whether a run has reached one that ends it. They are on by default. Reaching one is a normal end, not an
 * error.
 *
 * @module
 */
import type { EngineRun } from "./run.ts";

/** The limits of one run. */
export interface Limits {
  /** Model responses. Beyond, the run ends with the status `limit`. Default: 50. */
  readonly turns: number;
  /** Tool calls. Further calls are answered as skipped. Default: 200. */
  readonly calls: number;
  /** Continuations at `stop` without a batch of calls in between. Default: 8. */
  readonly continuations: number;
  /** Retries for a structured answer that does not match the schema. Default: 2. */
  readonly outputs: number;
  /** Wall time, in milliseconds, also of a run in the background. Beyond, the run ends with the status `limit`. Default: 300,000, five minutes. */
  readonly time: number;
  /** Characters of one result in the transcript; the rest is cut. Hooks see the whole result. Default: 100,000. */
  readonly output: number;
  /** Tools that run at the same time, in the run and its subagents together. Default: 64. */
  readonly parallel: number;
  /** Levels of subagents. Default: 3. */
  readonly depth: number;
  /** Subagents that run at the same time. Default: 8. */
  readonly agents: number;
  /** Estimated tokens of the transcript. Beyond, it is compacted to half of that; needs `compaction()`. Default: no limit. */
  readonly context: number;
  /** Times that a run continues after the death of its process. Then it ends. A person's answer resets the number. Default: 5. */
  readonly recoveries: number;
  /** Milliseconds that a hook or tool may take to return after its signal aborted. Then the run continues without it. Default: 1,000. */
  readonly grace: number;
}

/** The default limits. */
export const defaultLimits: Limits = {
  turns: 50,
  calls: 200,
  continuations: 8,
  outputs: 2,
  time: 300_000,
  output: 100_000,
  parallel: 64,
  depth: 3,
  agents: 8,
  context: Infinity,
  recoveries: 5,
  grace: 1_000,
};

/** Limits for Cloudflare Workers, where six connections may be open at the same time. */
export const workers: Partial<Limits> = { parallel: 6 };

/** Limits for Deno Deploy and Deno. */
export const deploy: Partial<Limits> = { parallel: 64 };

/**
 * Returns `base` with the limits of `change`. Throws a `TypeError` for an unknown limit, and a `RangeError` for a value that is not a number of 0 or
 * more (1 or more for `parallel` and `agents`).
 */
export function limited(base: Limits, change: Partial<Limits> = {}): Limits {
  for (const [name, value] of Object.entries(change)) {
    if (!(name in base)) {
      throw new TypeError(`Cannot set limit "${name}": expected one of ${Object.keys(base).join(", ")}`);
    }
    const least = name === "parallel" || name === "agents" ? 1 : 0;
    if (typeof value !== "number" || !(value >= least)) {
      throw new RangeError(`Cannot set limit "${name}" to ${value}: expected a number of ${least} or more`);
    }
  }
  return { ...base, ...change };
}

/** Returns true if a run has used up a limit that a counter of the same name counts. Then it ends with the status `limit`, and the name as the reason. */
export function isReached(
  limit: "turns" | "continuations" | "outputs",
  { limits, loop: { counters } }: EngineRun,
): boolean {
  return counters[limit] >= limits[limit];
}
