/**
 * Redis as a place of simulations, with a client of Redis and with that of Upstash. Commands take no simulated time, and run one after another.
 *
 * @module
 */
import { type RedisClient, redisKeyValue, redisStore, type RedisSubscriber } from "@jizai/jizai/session/redis";
import { type UpstashClient, upstashKeyValue, upstashStore } from "@jizai/jizai/session/upstash";
import { Redis as Upstash } from "@upstash/redis";
import { Redis } from "ioredis";
import { byProcessClock, redisServer } from "../../servers/redis_server.ts";
import { upstashServer } from "../../servers/upstash_server.ts";
import { inOrder } from "./in_order.ts";
import type { Places } from "./places.ts";
import type { Kept } from "./storage.ts";

/** A subscriber that receives nothing: when a notification arrives does not follow from a seed, so followers look for events. */
const nothing = () => Promise.resolve();
const unsubscribed: RedisSubscriber = { subscribe: nothing, unsubscribe: nothing, on() {}, disconnect() {} };

/** Starts a server. Returns undefined where Redis is not installed. */
export async function redisPlaces(): Promise<Places | undefined> {
  return await placesOn((redis) => {
    const inTurn = inOrder();
    const gate: RedisClient = {
      eval: byProcessClock((...script) => inTurn(() => redis.eval(...script))),
      info: (section) => redis.info(section),
      duplicate: () => unsubscribed,
    };
    const kept = { store: redisStore(gate), keyValue: redisKeyValue(gate) };
    return { kept, close: () => Promise.resolve() };
  });
}

/** Starts a server that speaks the REST API of Upstash. Returns undefined where Redis is not installed. */
export async function upstashPlaces(): Promise<Places | undefined> {
  return await placesOn((redis) => {
    const server = upstashServer((command, ...values) => redis.call(command, ...values));
    const client: UpstashClient = new Upstash({ url: server.url, token: server.token, enableTelemetry: false });
    const inTurn = inOrder();
    const gate: UpstashClient = { eval: byProcessClock((...script) => inTurn(() => client.eval(...script))) };
    const kept = { store: upstashStore(gate), keyValue: upstashKeyValue(gate) };
    return { kept, close: async () => await server[Symbol.asyncDispose]() };
  });
}

async function placesOn(
  adaptersOn: (redis: Redis) => { readonly kept: Kept; close(): Promise<void> },
): Promise<Places | undefined> {
  const server = await redisServer();
  if (!server) return undefined;
  const redis = new Redis(server.port, "127.0.0.1");
  await redis.ping();
  const { kept, close } = adaptersOn(redis);
  return {
    open: () => ({ open: () => kept, singleProcess: false }),
    async empty() {
      await redis.flushall();
    },
    async [Symbol.asyncDispose]() {
      await close();
      redis.disconnect();
      await server[Symbol.asyncDispose]();
    },
  };
}
