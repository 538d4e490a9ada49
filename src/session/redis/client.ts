/**
 * The Redis client that the caller passes.
 *
 * @module
 */
import type { RunScript } from "../redis_scripts/script.ts";

/** The part of ioredis that is used: `new Redis(url)` has it. `nodeRedis()` makes one of a client of the package `redis`. */
export interface RedisClient {
  /** Executes a Lua script. */
  eval(script: string, keyCount: number, ...keysAndValues: (string | number)[]): Promise<unknown>;
  /** Returns a section of the state of the server. */
  info(section: string): Promise<string>;
  /** Opens another connection, which can subscribe. */
  duplicate(): RedisSubscriber;
}

/** A connection that receives messages. */
export interface RedisSubscriber {
  /** Subscribes to a channel, and again whenever the connection was lost. */
  subscribe(channel: string): Promise<unknown>;
  /** Ends a subscription. */
  unsubscribe(channel: string): Promise<unknown>;
  /** Adds a listener. "message" passes the channel and the message, and "ready" follows each connection. */
  on(event: "message" | "ready" | "error", listener: (...values: string[]) => void): unknown;
  /** Closes the connection. */
  disconnect(): void;
}

/** Returns the function that executes scripts with a client. */
export function scriptsOf(redis: RedisClient): RunScript {
  return (script, keys, values) => redis.eval(script, keys.length, ...keys, ...values);
}
