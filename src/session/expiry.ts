/**
 * Parts that the SQL adapters share: the check of the database, the text of a schema, the version column, and the expiry of entries.
 *
 * @module
 */
import type { Mark } from "../core/store.ts";

// Checks the database that a caller passes: on a runtime that lacks one, code without types passes nothing.

/** Throws a `TypeError` with the message if the value lacks one of the methods. */
export function expectMethods<T extends object>(
  value: T | undefined,
  methods: readonly (keyof T)[],
  message: string,
): void {
  if (methods.some((method) => typeof value?.[method] !== "function")) throw new TypeError(message);
}

// Schemas of SQL databases as text, and the versions in their columns.

/** Joins lists of statements to one text. Each list is an argument: bundlers keep a spread, even in an argument of a call with a `@__PURE__` comment. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}

/**
 * Returns the version column of a session with this mark. It is negative, apart from sessions of version 0.1.0 of the package, which have no holder: a process of that
 * version writes a row only if it has read its version.
 */
export function versionOf({ holder, n }: Mark): number {
  return holder === "" ? n : -n;
}

// The expiry of entries, for databases that store it in a column.

/** Milliseconds between two deletions of expired entries. */
export const sweepEvery = 60_000;

/**
 * Returns when an entry that changes now expires; null for never. For a session with a lease, the time counts from the end of the lease, since its run is
 * active until then.
 */
export function expiry(expireIn: number, leaseEnd: number | null = null): number | null {
  return expireIn < Infinity ? usedUntil(leaseEnd) + expireIn : null;
}

/** Returns the time from which `expireIn` counts: the end of the lease if that is later than now. */
export function usedUntil(leaseEnd: number | null): number {
  return Math.max(Date.now(), leaseEnd ?? 0);
}

// The clock of a database: the clocks of processes may be wrong.

/** Milliseconds after which the clocks are compared again. */
const compareEvery = 60_000;

/** The clock of a database, compared with that of the process. */
export interface ClockOffset {
  /** Returns the milliseconds by which the database is ahead. Compares the clocks if that is due, or if the clock of the process was set. */
  ahead(): Promise<number>;
  /** The milliseconds before the last change of the offset: a time may have been read with them. */
  readonly earlier: number;
}

/** Compares the clock of a database, whose time `now` returns in milliseconds since 1970. A change that the time of the request explains is none. */
export function clockOffset(now: () => Promise<number>): ClockOffset {
  let [offset, earlier] = [0, 0];
  /** The time of the process when it compared the clocks. */
  let compared = -Infinity;
  return {
    async ahead() {
      const sent = Date.now();
      if (Math.abs(sent - compared) < compareEvery) return offset;
      const time = await now();
      const took = Date.now() - sent;
      const found = Math.round(time - sent - took / 2);
      if (compared === -Infinity) [offset, earlier] = [found, found];
      else if (Math.abs(found - offset) > Math.abs(took) + 1) [offset, earlier] = [found, offset];
      compared = sent;
      return offset;
    },
    get earlier() {
      return earlier;
    },
  };
}
