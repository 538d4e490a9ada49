/**
 * Clients of the package `redis`.
 *
 * @module
 */
import type { RedisClient, RedisSubscriber } from "./client.ts";

/** The part of the package `redis` that is used: `await createClient({ url }).connect()` has it. */
export interface NodeRedisClient {
  /** Executes a command. */
  sendCommand(command: string[]): Promise<unknown>;
  /** Opens another connection. */
  duplicate(): NodeRedisSubscriber;
}

/** A connection of the package `redis` that receives messages. */
export interface NodeRedisSubscriber {
  /** Connects. */
  connect(): Promise<unknown>;
  /** Subscribes to a channel, and again whenever the connection was lost. */
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  /** Ends a subscription. */
  unsubscribe(channel: string): Promise<unknown>;
  /** Adds a listener. */
  on(event: string, listener: () => void): unknown;
  /** Closes the connection. */
  destroy(): void;
}

/**
 * Makes a client of the package `redis` usable for `redisStore()`, `redisLog()` and `redisKeyValue()`.
 *
 * ```ts
 * import { nodeRedis, type NodeRedisClient, redisStore } from "@jizai/jizai/session/redis";
 *
 * // client: await createClient({ url }).connect() of redis
 * export const storeOn = (client: NodeRedisClient) => redisStore(nodeRedis(client));
 * ```
 */
export function nodeRedis(client: NodeRedisClient): RedisClient {
  return {
    eval: (script, keyCount, ...rest) => client.sendCommand(["EVAL", script, `${keyCount}`, ...rest.map(String)]),
    info: async (section) => String(await client.sendCommand(["INFO", section])),
    duplicate: () => subscriberOf(client.duplicate()),
  };
}

function subscriberOf(client: NodeRedisSubscriber): RedisSubscriber {
  const messages: ((...values: string[]) => void)[] = [];
  let connected: Promise<unknown> | undefined;

  async function subscribe(channel: string): Promise<void> {
    await (connected ??= client.connect());
    await client.subscribe(channel, (message, from) => messages.forEach((listener) => listener(from, message)));
  }

  return {
    subscribe,
    unsubscribe: (channel) => client.unsubscribe(channel),
    on(event, listener) {
      if (event === "message") messages.push(listener);
      else client.on(event, () => listener());
    },
    disconnect: () => client.destroy(),
  };
}
