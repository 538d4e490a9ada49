/**
 * Sessions and texts by key in Upstash Redis, by its REST API: for platforms that open no other connections.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { scriptStore } from "./redis_scripts/journal.ts";
import { type RedisOptions, type RedisStoreOptions, type RunScript, scriptKeyValue } from "./redis_scripts/script.ts";
export type { RedisOptions, RedisStoreOptions } from "./redis_scripts/script.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The adapters for Upstash Redis.

/** The part of `@upstash/redis` that is used: `Redis.fromEnv()` has it. */
export interface UpstashClient {
  /** Executes a Lua script. */
  eval(script: string, keys: string[], values: (string | number)[]): Promise<unknown>;
}

function scriptsOf(redis: UpstashClient): RunScript {
  return (script, keys, values) => redis.eval(script, [...keys], [...values]);
}

/**
 * Keeps sessions in Upstash Redis. Each operation is one request. Create the database without eviction.
 *
 * ```ts
 * import { type UpstashClient, upstashStore } from "@jizai/jizai/session/upstash";
 *
 * // redis: Redis.fromEnv() of @upstash/redis
 * export const storeOn = (redis: UpstashClient) => upstashStore(redis);
 * ```
 */
export function upstashStore(redis: UpstashClient, options: RedisStoreOptions = {}): Store {
  expectNames("Cannot create upstashStore()", options, ["prefix", "expireIn", "pollEvery", "deltasEvery"]);
  return scriptStore(scriptsOf(redis), options);
}

/**
 * Keeps texts by key in Upstash Redis.
 *
 * ```ts
 * import { type UpstashClient, upstashKeyValue } from "@jizai/jizai/session/upstash";
 *
 * export const valuesOn = (redis: UpstashClient) => upstashKeyValue(redis);
 * ```
 */
export function upstashKeyValue(redis: UpstashClient, options: Pick<RedisOptions, "prefix"> = {}): KeyValue {
  return scriptKeyValue(scriptsOf(redis), options);
}
