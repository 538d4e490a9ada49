/**
 * Parts that the SQL adapters share: the check of the database, the text of a schema, the expiry of entries, and the clock.
 *
 * @module
 */

// Checks the database that a caller passes: on a runtime that lacks one, code without types passes nothing.

/** Throws a `TypeError` with the message if the value lacks one of the methods. */
export function expectMethods<T extends object>(
  value: T | undefined,
  methods: readonly (keyof T)[],
  message: string,
): void {
  if (methods.some((method) => typeof value?.[method] !== "function")) throw new TypeError(message);
}

// Schemas of SQL databases as text.

/** Joins lists of statements to one text. Each list is an argument: bundlers keep a spread, even in an argument of a call with a `@__PURE__` comment. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}

// The expiry of entries, for databases that store it in a column.

/** Milliseconds between two deletions of expired entries. */
const sweepEvery = 60_000;

/** Returns a function that returns true if expired entries are to be deleted now: once a minute. */
export function sweepTimer(): () => boolean {
  let due = 0;
  return () => {
    const now = Date.now();
    if (now < due) return false;
    due = now + sweepEvery;
    return true;
  };
}

/** Returns when an entry that changes now expires; null for never. */
export function expiry(expireIn: number): number | null {
  return expireIn < Infinity ? Math.ceil(Date.now() + expireIn) : null; // columns contain whole numbers
}

// The clock of a database: the clocks of processes may be wrong.

/** Milliseconds after which the clocks are compared again. */
const compareEvery = 60_000;

/** The clock of a database, compared with that of the process. */
interface ClockOffset {
  /** Returns the milliseconds by which the database is ahead. Compares the clocks if that is due, or if the clock of the process was set. */
  ahead(): Promise<number>;
}

/** Compares the clock of a database, whose time `now` returns in milliseconds since 1970. A change that the time of the request explains is none. */
export function clockOffset(now: () => Promise<number>): ClockOffset {
  let offset = 0;
  /** The time of the process when it compared the clocks. */
  let compared = -Infinity;
  return {
    async ahead() {
      const sent = Date.now();
      if (Math.abs(sent - compared) < compareEvery) return offset;
      const time = await now();
      const took = Date.now() - sent;
      const found = Math.round(time - sent - took / 2);
      if (compared === -Infinity || Math.abs(found - offset) > Math.abs(took) + 1) offset = found;
      compared = sent;
      return offset;
    },
  };
}
