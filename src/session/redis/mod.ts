/**
 * Sessions, logs and texts by key in Redis, by the client ioredis or by the package `redis`.
 *
 * @module
 */
export type { RedisClient, RedisSubscriber } from "./client.ts";
export { redisKeyValue } from "./key_value.ts";
export { redisLog, type RedisLogOptions } from "./log.ts";
export { nodeRedis, type NodeRedisClient, type NodeRedisSubscriber } from "./node_redis.ts";
export type { RedisOptions } from "../redis_scripts/script.ts";
export type { RedisWarningOptions } from "./risks.ts";
export { redisStore } from "./store.ts";
