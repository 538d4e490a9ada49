/**
 * What is used of the storage of a Durable Object.
 *
 * @module
 */

/** What is used of `ctx.storage`, in an object with SQLite storage. */
export interface ObjectStorage {
  /** Its database. */
  readonly sql: {
    /** Runs one statement, and gives its rows. */
    exec(query: string, ...bindings: readonly (string | number | null)[]): Iterable<Readonly<Record<string, unknown>>>;
  };
  /** Does `work` in one step, or not at all where it throws. */
  transactionSync<T>(work: () => T): T;
}

/** For how long it is kept. */
export interface DurableObjectOptions {
  /** Milliseconds after its last change that something is forgotten. It is removed when the object starts next. Default: never. */
  readonly expireIn?: number;
}

/** The most characters of a piece: a row holds 2 MB, and a save writes each row that changes. */
export const pieceLength = 100_000;

/** The first row, where there is any. */
export function firstOf<T>(rows: Iterable<T>): T | undefined {
  const [row] = rows;
  return row;
}

/** When something expires that changes now; never is null. */
export function expiry(expireIn: number): number | null {
  return expireIn < Infinity ? Date.now() + expireIn : null;
}

/** Removes what has expired from a table, and from the one that has its pieces. */
export function sweep({ sql }: ObjectStorage, table: string, key: string): void {
  for (const each of [`${table}_piece`, table]) {
    sql.exec(`DELETE FROM ${each} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires <= ?)`, Date.now());
  }
}
