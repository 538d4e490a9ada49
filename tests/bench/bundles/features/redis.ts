/** A served agent whose sessions are in Redis. The driver is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type RedisClient, redisStore } from "@jizai/jizai/session/redis";
import { options } from "../assistant.ts";

export const server = (redis: RedisClient) => serve(agent(options), { store: redisStore(redis) });

export default serve(agent(options));
