/**
 * SQLite behind a network, as the adapters use it: statements in batches, each batch a transaction.
 *
 * @module
 */
import { sweepTimer } from "../expiry.ts";
import { deleteExpiredValues, valueTables } from "../sql/key_value.ts";
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

/** Returns a function with the statement that deletes expired texts: at most 500 once a minute, which an index finds, and none in between. */
export function sweeper(): () => readonly Statement[] {
  const isDue = sweepTimer();
  return () => isDue() ? [[deleteExpiredValues, Date.now()]] : [];
}
