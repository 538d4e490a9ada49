/**
 * The clock of a database, by which leases end: the clocks of processes may be wrong.
 *
 * @module
 */

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
