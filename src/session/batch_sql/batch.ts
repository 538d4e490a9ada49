/**
 * SQLite behind a network, as the adapters use it: statements in batches, each batch a transaction.
 *
 * @module
 */
import { sweepTimer } from "../expiry.ts";
import { valueTables } from "../sql/key_value.ts";
import { journalTables, schemaText } from "../sql/storage.ts";

/** A value of a statement. */
export type SqlValue = string | number | null;

/** A statement with its values. */
export type Statement = readonly [sql: string, ...values: readonly SqlValue[]];

/** A row, by column name. */
export type Row = Readonly<Record<string, unknown>>;

/** Executes statements in one transaction, and returns the rows of each. */
export type ExecuteBatch = (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>;

/** The schema, as statements that change nothing where it exists. */
export const schemaStatements: readonly string[] = /* @__PURE__ */ [journalTables, valueTables].flat(); // bundlers keep a spread

/** The schema as one text. */
export const schema: string = /* @__PURE__ */ schemaText(schemaStatements); // bundlers leave out an unused one

/**
 * Returns a function with the statements that delete expired rows: once a minute those of at most 500 keys, which an index finds, and none in between. The
 * last of `tables` has the column `expires`.
 */
export function sweeper(tables: readonly string[]): () => readonly Statement[] {
  const isDue = sweepTimer();
  return () => {
    if (!isDue()) return [];
    const head = tables.at(-1);
    const expired = `SELECT key FROM ${head} WHERE expires <= ? ORDER BY expires LIMIT 500`;
    return tables.map((table) => [`DELETE FROM ${table} WHERE key IN (${expired})`, Date.now()]);
  };
}
