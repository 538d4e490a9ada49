/**
 * The database that the processes of the fleet share.
 *
 * @module
 */
import type { Store } from "@jizai/jizai";
import type { KeyValue } from "@jizai/jizai/session/key_value";
import * as onPostgres from "@jizai/jizai/session/postgres";
import * as onRedis from "@jizai/jizai/session/redis";
import * as onSqlite from "@jizai/jizai/session/sqlite";
import { Redis } from "ioredis";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";

/** The store and the counters of the fleet. */
export interface Database {
  readonly name: string;
  readonly store: Store;
  readonly keyValue: KeyValue;
}

/** Addresses from the environment. */
export interface Addresses {
  readonly DATABASE_URL?: string | undefined;
  readonly REDIS_URL?: string | undefined;
  readonly FLEET_FILE?: string | undefined;
}

/** Opens the database: Postgres if DATABASE_URL is set, Redis if REDIS_URL is set, otherwise an SQLite file that processes of this machine share. */
export async function openDatabase({ DATABASE_URL, REDIS_URL, FLEET_FILE }: Addresses): Promise<Database> {
  if (DATABASE_URL) {
    // Without fetch_types: false, the process exits if Postgres terminates a new connection while the driver reads the types of arrays, which nothing here uses.
    const sql = postgres(DATABASE_URL, { onnotice: () => {}, fetch_types: false });
    await onPostgres.migrate(sql);
    const { postgresKeyValue, postgresStore } = onPostgres;
    return { name: "Postgres", store: postgresStore(sql), keyValue: postgresKeyValue(sql) };
  }
  if (REDIS_URL) {
    const redis = new Redis(REDIS_URL);
    const { redisKeyValue, redisStore } = onRedis;
    return { name: "Redis", store: redisStore(redis), keyValue: redisKeyValue(redis) };
  }
  if (!FLEET_FILE) await Deno.mkdir("dist", { recursive: true });
  const file = new DatabaseSync(FLEET_FILE || "dist/fleet.db", { timeout: 5_000 });
  onSqlite.migrate(file);
  const { sqliteKeyValue, sqliteStore } = onSqlite;
  return { name: "SQLite", store: sqliteStore(file), keyValue: sqliteKeyValue(file) };
}
