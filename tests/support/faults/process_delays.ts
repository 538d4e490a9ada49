/**
 * The time until another process continues a run.
 *
 * @module
 */

/** A line that a process of the soak has written. */
export interface Line {
  readonly what: "holds" | "left" | "done" | "error";
  readonly run: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly pid?: number;
  readonly call?: string;
  readonly error?: string;
}

/** The end of a process that the soak chose. */
export interface ProcessEnd {
  readonly pid: number;
  readonly signal: "SIGKILL" | "SIGTERM";
  readonly at: number;
}

/** Milliseconds until runs continued. */
export interface Delays {
  /** After a kill, for runs that had not been lost before. */
  readonly afterKillMedian: number;
  readonly afterKillMost: number;
  /** After a kill, for runs that had been lost before: a process continues them one after another. */
  readonly afterNextKillMost: number;
  /** After the process left a run because it shut down. */
  readonly afterShutdownMedian: number;
  readonly afterShutdownMost: number;
}

/** Returns the delays between the ends of processes and the next holder of each of their runs. */
export function delaysOf(ends: readonly ProcessEnd[], lines: readonly Line[]): Delays {
  const first: number[] = [];
  const next: number[] = [];
  const shutdown: number[] = [];
  for (const run of new Set(lines.map(({ run }) => run))) {
    const own = lines.filter((line) => line.run === run && line.pid !== undefined);
    const holds = own.filter(({ what }) => what === "holds");
    let kills = 0;
    for (const [index, { at }] of holds.slice(1).entries()) {
      const { pid } = holds[index] ?? {};
      const end = ends.find((each) => each.pid === pid);
      const left = own.findLast((line) => line.what === "left" && line.pid === pid)?.at;
      if (end?.signal === "SIGKILL") (kills++ === 0 ? first : next).push(at - end.at);
      else if (end && left !== undefined) shutdown.push(at - left);
    }
  }
  return {
    afterKillMedian: quantile(first, 0.5),
    afterKillMost: quantile(first, 1),
    afterNextKillMost: quantile(next, 1),
    afterShutdownMedian: quantile(shutdown, 0.5),
    afterShutdownMost: quantile(shutdown, 1),
  };
}

/** Returns a quantile. 0 for no values. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
}
