/**
 * The time until another process continues a run.
 *
 * @module
 */

/** A line that a process of the soak has written. */
export interface Line {
  /** "claims": the process is about to claim the run. "holds": it continues the run. "left": it does so no more. */
  readonly what: "claims" | "holds" | "left" | "done" | "error";
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

/** Milliseconds after which the lease of a run ends, and between two calls of `recover()` in each process. */
export const lease = 2_000;
export const wakeEvery = 1_000;

/** Milliseconds that a busy machine may add. */
const tolerance = 500;

/** Milliseconds until runs continued. */
export interface Delays {
  /** After a kill, for runs that had not been lost before. */
  readonly afterKillMedian: number;
  readonly afterKillMost: number;
  /** After a kill, for runs that had been lost before: a process continues them one after another. */
  readonly afterNextKillMost: number;
  /** After the process left a run because it shut down, for runs that had not been lost before. */
  readonly afterShutdownMedian: number;
  readonly afterShutdownMost: number;
}

/** Returns one text for each delay that is too long. */
export function tooLong({ afterKillMost, afterShutdownMost }: Delays): readonly string[] {
  const limits = [
    ["a kill", afterKillMost, lease + wakeEvery + tolerance],
    ["a shutdown", afterShutdownMost, 2_000],
  ] as const;
  return limits.flatMap(([what, most, limit]) =>
    most <= limit ? [] : [`A run continued ${most} ms after ${what}; expected at most ${limit} ms`]
  );
}

/** Returns the delays between the ends of processes and the next holder of each of their runs. */
export function delaysOf(ends: readonly ProcessEnd[], lines: readonly Line[]): Delays {
  const first: number[] = [];
  const next: number[] = [];
  const shutdown: number[] = [];
  for (const run of new Set(lines.map(({ run }) => run))) {
    let kills = 0;
    for (const { signal, end, continued } of takeovers(ends, lines.filter((line) => line.run === run))) {
      const delay = continued - end;
      if (signal === "SIGKILL") (kills++ === 0 ? first : next).push(delay);
      else if (kills === 0) shutdown.push(delay);
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

/** A run that another process continued. */
interface Takeover {
  readonly signal: ProcessEnd["signal"];
  /** When the process ended, or left the run because it shut down. */
  readonly end: number;
  readonly continued: number;
}

/** Returns the takeovers of one run. If a process ended after its claim and before another one held the run, the run was lost twice. */
function takeovers(ends: readonly ProcessEnd[], lines: readonly Line[]): readonly Takeover[] {
  const found: Takeover[] = [];
  let holder: Line | undefined;
  for (const [index, line] of lines.entries()) {
    const continued = lines.slice(index).find(({ what }) => what === "holds");
    if (line.what === "claims") {
      const end = ends.find(({ pid }) => pid === line.pid);
      if (continued && continued.pid !== line.pid && end && end.at < continued.at) holder = line;
    }
    if (line.what !== "holds") continue;
    const end = ends.find(({ pid }) => pid === holder?.pid);
    const left = lines.findLast(({ what, pid }) => what === "left" && pid === end?.pid);
    if (end?.signal === "SIGKILL") found.push({ ...end, end: end.at, continued: line.at });
    else if (end && holder) found.push({ ...end, end: left?.at ?? Math.max(holder.at, end.at), continued: line.at });
    holder = line;
  }
  return found;
}

/** Returns a quantile. 0 for no values. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
}
