/**
 * Sessions and texts by key in libSQL, such as Turso, with the client `@libsql/client`.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { batchKeyValue } from "./batch_sql/key_value.ts";
import { type ExecuteBatch, type Row, schemaStatements, type SqlValue } from "./batch_sql/batch.ts";
import { type SqlJournalOptions, sqlStore } from "./batch_sql/journal.ts";
export type { SqlJournalOptions as LibsqlOptions } from "./batch_sql/journal.ts";
export { schema, type SqlValue } from "./batch_sql/batch.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The adapters for libSQL.

/** The part of `@libsql/client` that is used: `createClient({ url })` has it. */
export interface LibsqlClient {
  /** Executes statements in one transaction. */
  batch(
    statements: { readonly sql: string; readonly args: SqlValue[] }[],
    mode: "write",
  ): Promise<readonly { readonly rows: readonly unknown[] }[]>;
}

function batchesOf(client: LibsqlClient): ExecuteBatch {
  return async (statements) => {
    const replies = await client.batch(statements.map(([sql, ...args]) => ({ sql, args })), "write");
    return replies.map(({ rows }) => rows as readonly Row[]); // the client returns rows by column name
  };
}

/**
 * Creates the tables and indexes that are missing.
 *
 * ```ts
 * import { type LibsqlClient, migrate } from "@jizai/jizai/session/libsql";
 *
 * export const prepare = (client: LibsqlClient) => migrate(client); // client: createClient({ url })
 * ```
 */
export async function migrate(client: LibsqlClient): Promise<void> {
  await batchesOf(client)(schemaStatements.map((sql) => [sql]));
}

/**
 * Keeps sessions in libSQL. Each operation is one batch, which is a transaction. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { type LibsqlClient, libsqlStore } from "@jizai/jizai/session/libsql";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // client: createClient({ url }) of @libsql/client
 * export const appOn = (client: LibsqlClient) =>
 *   serve(assistant, { store: libsqlStore(client) });
 * ```
 */
export function libsqlStore(client: LibsqlClient, options: SqlJournalOptions = {}): Store {
  expectNames("Cannot create libsqlStore()", options, ["expireIn", "pollEvery", "deltasEvery"]);
  return sqlStore(batchesOf(client), { pollEvery: 200, ...options });
}

/**
 * Keeps texts by key in libSQL.
 *
 * ```ts
 * import { type LibsqlClient, libsqlKeyValue } from "@jizai/jizai/session/libsql";
 *
 * export const valuesOn = (client: LibsqlClient) => libsqlKeyValue(client);
 * ```
 */
export function libsqlKeyValue(client: LibsqlClient): KeyValue {
  return batchKeyValue(batchesOf(client));
}
