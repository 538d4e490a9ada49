/**
 * A client of the package `redis`, passed to the adapter. Compiled, never run.
 *
 * @module
 */
import { nodeRedis, redisKeyValue, redisStore } from "@jizai/jizai/session/redis";
import { createClient } from "redis";

const redis = nodeRedis(createClient({ url: "redis://127.0.0.1:6379" }));
const connected = nodeRedis(await createClient({ url: "redis://127.0.0.1:6379" }).connect());
redisStore(redis);
redisStore(connected);
redisKeyValue(redis);
// @ts-expect-error: it is not a client of the package `redis`
nodeRedis({ connect: () => Promise.resolve() });
