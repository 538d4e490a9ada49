/** A served agent whose sessions and logs are in Redis. The driver is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type RedisClient, redisLog, redisStore } from "@jizai/jizai/session/redis";
import { options } from "../assistant.ts";

export const server = (redis: RedisClient) => serve(agent(options), { store: redisStore(redis), log: redisLog(redis) });

export default serve(agent(options));
