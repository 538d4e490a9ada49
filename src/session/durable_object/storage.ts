/**
 * The storage of a Durable Object.
 *
 * @module
 */

/** The part of `ctx.storage` that is used. The object must have SQLite storage. */
export interface ObjectStorage {
  /** Its database. */
  readonly sql: {
    /** Executes one statement, and returns its rows. */
    exec(query: string, ...bindings: readonly (string | number | null)[]): Iterable<Readonly<Record<string, unknown>>>;
  };
  /** Executes `work` in a transaction, which is rolled back if `work` throws. */
  transactionSync<T>(work: () => T): T;
}

/** Options of `durableObjectStore()` and `durableObjectLog()`. */
export interface DurableObjectOptions {
  /** Milliseconds after its last change that an entry expires. Expired entries are deleted when the object starts. Default: never. */
  readonly expireIn?: number;
}

/** The most characters of a piece: a row holds 2 MB, and a save writes each row that changes. */
export const pieceLength = 100_000;

/** Returns the first row, if there is one. */
export function firstOf<T>(rows: Iterable<T>): T | undefined {
  const [row] = rows;
  return row;
}

/** Returns when an entry that changes now expires; null for never. */
export function expiry(expireIn: number): number | null {
  return expireIn < Infinity ? Date.now() + expireIn : null;
}

/** Deletes the expired rows of a table, and their pieces. */
export function sweep({ sql }: ObjectStorage, table: string, key: string): void {
  for (const each of [`${table}_piece`, table]) {
    sql.exec(`DELETE FROM ${each} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires <= ?)`, Date.now());
  }
}
