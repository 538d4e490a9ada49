/**
 * Limits: on by default. Reaching one is a normal end, not an exception.
 *
 * @module
 */

/** What one run may use. */
export interface Limits {
  /** Model responses. Default: 50. */
  readonly turns: number;
  /** Tool calls; those beyond it are answered as skipped. Default: 200. */
  readonly calls: number;
  /** How often `stop` may go on without a batch of calls in between. Default: 8. */
  readonly continuations: number;
  /** How often the model is asked again for an `output` that does not match. Default: 2. */
  readonly outputs: number;
  /** Wall time, in milliseconds. Default: 300,000. */
  readonly time: number;
  /** Characters that one result may have for the model, after every hook has seen it whole. Default: 100,000. */
  readonly output: number;
  /** Tools running at the same time, over the whole run and the agents beneath it. Default: 64. */
  readonly parallel: number;
  /** How deep agents may run in agents. Default: 3. */
  readonly depth: number;
  /** Agents that work for one run at the same time. Default: 8. */
  readonly agents: number;
  /** Estimated tokens that the transcript may have before it is compacted, to half of that. Default: no limit. */
  readonly context: number;
  /** Milliseconds that a hook or tool has to return after its signal aborted, before it is left behind. Default: 1,000. */
  readonly grace: number;
}

/** The limits of a run that says nothing else. */
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
  grace: 1_000,
};

/** For Cloudflare Workers: six connections may be open at once there. */
export const workers: Partial<Limits> = { parallel: 6 };

/** For Deno Deploy and Deno. */
export const deploy: Partial<Limits> = { parallel: 64 };

/**
 * `base` with what `change` says. Throws a `TypeError` for a limit that there is not, and a `RangeError` for what is not a number of 0 or more, or where
 * nothing could run: `parallel` and `agents` are 1 or more.
 */
export function limited(base: Limits, change: Partial<Limits> = {}): Limits {
  for (const [name, value] of Object.entries(change)) {
    if (!(name in base)) throw new TypeError(`Cannot limit "${name}": there is ${Object.keys(base).join(", ")}`);
    const least = name === "parallel" || name === "agents" ? 1 : 0;
    if (typeof value !== "number" || !(value >= least)) {
      throw new RangeError(`Cannot set limit "${name}" to ${value}: expected a number of ${least} or more`);
    }
  }
  return { ...base, ...change };
}
