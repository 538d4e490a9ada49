/**
 * Sessions in Redis.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { Store } from "../../core/store.ts";
import type { RedisOptions } from "../redis_scripts/script.ts";
import { scriptStore } from "../redis_scripts/store.ts";
import { type RedisClient, scriptsOf } from "./client.ts";
import { type RedisWarningOptions, warnOfRisks } from "./risks.ts";

/**
 * Keeps sessions in Redis. Each operation is one script, and so one round trip. Use a server with `appendonly yes`, `appendfsync always` and
 * `maxmemory-policy noeviction`: with other settings, it can lose sessions, and `onWarning` is called.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { type RedisClient, redisLog, redisStore } from "@jizai/jizai/session/redis";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // redis: new Redis(url) of ioredis
 * export const appOn = (redis: RedisClient) => serve(assistant, { store: redisStore(redis), log: redisLog(redis) });
 * ```
 */
export function redisStore(redis: RedisClient, options: RedisOptions & RedisWarningOptions = {}): Store {
  expectNames("Cannot create redisStore()", options, ["prefix", "expireIn", "onWarning"]);
  void warnOfRisks(redis, options); // never rejects
  return scriptStore(scriptsOf(redis), options);
}
