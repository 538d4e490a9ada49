/**
 * Sessions, logs and texts by key in libSQL, such as Turso, with the client `@libsql/client`.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { batchKeyValue } from "./batch_sql/key_value.ts";
import { batchLog, type BatchLogOptions } from "./batch_sql/log.ts";
import {
  type BatchOptions,
  batchStore,
  type ExecuteBatch,
  type Row,
  schemaStatements,
  type SqlValue,
} from "./batch_sql/store.ts";
import type { Log } from "./log.ts";
export type { BatchOptions as LibsqlOptions } from "./batch_sql/store.ts";
export type { BatchLogOptions as LibsqlLogOptions } from "./batch_sql/log.ts";
export { schema, type SqlValue } from "./batch_sql/store.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { Log } from "./log.ts";

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
 * import { type LibsqlClient, libsqlLog, libsqlStore } from "@jizai/jizai/session/libsql";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // client: createClient({ url }) of @libsql/client
 * export const appOn = (client: LibsqlClient) =>
 *   serve(assistant, { store: libsqlStore(client), log: libsqlLog(client) });
 * ```
 */
export function libsqlStore(client: LibsqlClient, options: BatchOptions = {}): Store {
  expectNames("Cannot create libsqlStore()", options, ["expireIn"]);
  return batchStore(batchesOf(client), options);
}

/**
 * Keeps logs in libSQL. An addition is one batch. Followers in other processes look for new events every `pollEvery` milliseconds.
 *
 * ```ts
 * import { type LibsqlClient, libsqlLog } from "@jizai/jizai/session/libsql";
 *
 * export const logOn = (client: LibsqlClient) => libsqlLog(client, { expireIn: 60 * 60 * 1_000 });
 * ```
 */
export function libsqlLog(client: LibsqlClient, options: BatchLogOptions = {}): Log {
  expectNames("Cannot create libsqlLog()", options, ["expireIn", "pollEvery", "deltasEvery"]);
  return batchLog(batchesOf(client), options);
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
