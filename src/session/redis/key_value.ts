/**
 * Texts by key in Redis.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { scriptKeyValue } from "../redis_scripts/key_value.ts";
import type { RedisOptions } from "../redis_scripts/script.ts";
import { type RedisClient, scriptsOf } from "./client.ts";

/**
 * Keeps texts by key in Redis.
 *
 * ```ts
 * import { type RedisClient, redisKeyValue } from "@jizai/jizai/session/redis";
 *
 * // redis: new Redis(url) of ioredis
 * export const valuesOn = (redis: RedisClient) => redisKeyValue(redis);
 * ```
 */
export function redisKeyValue(redis: RedisClient, options: Pick<RedisOptions, "prefix"> = {}): KeyValue {
  return scriptKeyValue(scriptsOf(redis), options);
}
