/**
 * Sessions and texts by key in Cloudflare D1.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { batchKeyValue } from "./batch_sql/key_value.ts";
import { type ExecuteBatch, type Row, schemaStatements } from "./batch_sql/batch.ts";
import { type SqlJournalOptions, sqlStore } from "./batch_sql/journal.ts";
export type { SqlJournalOptions as D1Options } from "./batch_sql/journal.ts";
export { schema, type SqlValue } from "./batch_sql/batch.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The adapters for Cloudflare D1.

/** The part of a D1 database that is used: a binding of a Worker has it. */
export interface D1 {
  /** Prepares one statement. */
  prepare(sql: string): D1Statement;
  /** Executes statements in one transaction. */
  batch(statements: D1Statement[]): Promise<readonly { readonly results: readonly unknown[] }[]>;
}

/** A prepared statement. */
export interface D1Statement {
  /** Binds values to the statement. */
  bind(...values: unknown[]): D1Statement;
}

function batchesOf(database: D1): ExecuteBatch {
  return async (statements) => {
    const replies = await database.batch(statements.map(([sql, ...values]) => database.prepare(sql).bind(...values)));
    return replies.map(({ results }) => results as readonly Row[]); // D1 returns rows by column name
  };
}

/**
 * Creates the tables and indexes that are missing. `jizai schema d1` prints them as SQL for a migration of wrangler.
 *
 * ```ts
 * import { type D1, migrate } from "@jizai/jizai/session/d1";
 *
 * export const prepare = (database: D1) => migrate(database); // database: env.DB
 * ```
 */
export async function migrate(database: D1): Promise<void> {
  await batchesOf(database)(schemaStatements.map((sql) => [sql]));
}

/**
 * Keeps sessions in D1. Each operation is one batch, which is a transaction. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { type D1, d1Store } from "@jizai/jizai/session/d1";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // database: env.DB of a Worker
 * export const appOn = (database: D1) => serve(assistant, { store: d1Store(database) });
 * ```
 */
export function d1Store(database: D1, options: SqlJournalOptions = {}): Store {
  expectNames("Cannot create d1Store()", options, ["expireIn", "pollEvery", "deltasEvery"]);
  return sqlStore(batchesOf(database), { pollEvery: 200, ...options });
}

/**
 * Keeps texts by key in D1.
 *
 * ```ts
 * import { type D1, d1KeyValue } from "@jizai/jizai/session/d1";
 *
 * export const valuesOn = (database: D1) => d1KeyValue(database);
 * ```
 */
export function d1KeyValue(database: D1): KeyValue {
  return batchKeyValue(batchesOf(database));
}
