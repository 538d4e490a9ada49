/**
 * Sessions, logs and texts by key in Upstash Redis, by its REST API: for platforms that open no other connections.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import type { DeltaOptions, Log } from "./log.ts";
import { scriptLog } from "./redis_scripts/log.ts";
import { type RedisOptions, type RunScript, scriptKeyValue } from "./redis_scripts/script.ts";
import { scriptStore } from "./redis_scripts/store.ts";
export type { RedisOptions } from "./redis_scripts/script.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions, Log } from "./log.ts";

// The adapters for Upstash Redis.

/** The part of `@upstash/redis` that is used: `Redis.fromEnv()` has it. */
export interface UpstashClient {
  /** Executes a Lua script. */
  eval(script: string, keys: string[], values: (string | number)[]): Promise<unknown>;
}

/** Options of `upstashLog()`. */
export interface UpstashLogOptions extends RedisOptions, DeltaOptions {
  /** Milliseconds between two looks for events of other processes. Default: 200. */
  readonly pollEvery?: number;
}

function scriptsOf(redis: UpstashClient): RunScript {
  return (script, keys, values) => redis.eval(script, [...keys], [...values]);
}

/**
 * Keeps sessions in Upstash Redis. Each operation is one request. Create the database without eviction.
 *
 * ```ts
 * import { type UpstashClient, upstashLog, upstashStore } from "@jizai/jizai/session/upstash";
 *
 * // redis: Redis.fromEnv() of @upstash/redis
 * export const on = (redis: UpstashClient) => ({ store: upstashStore(redis), log: upstashLog(redis) });
 * ```
 */
export function upstashStore(redis: UpstashClient, options: RedisOptions = {}): Store {
  expectNames("Cannot create upstashStore()", options, ["prefix", "expireIn"]);
  return scriptStore(scriptsOf(redis), options);
}

/**
 * Keeps logs in Upstash Redis. An addition is one request. Followers in other processes look for new events every `pollEvery` milliseconds.
 *
 * ```ts
 * import { type UpstashClient, upstashLog } from "@jizai/jizai/session/upstash";
 *
 * export const logOn = (redis: UpstashClient) => upstashLog(redis, { expireIn: 60 * 60 * 1_000 });
 * ```
 */
export function upstashLog(redis: UpstashClient, options: UpstashLogOptions = {}): Log {
  expectNames("Cannot create upstashLog()", options, ["prefix", "expireIn", "pollEvery", "deltasEvery"]);
  const { pollEvery = 200 } = options;
  return scriptLog(scriptsOf(redis), options, { longest: pollEvery });
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
