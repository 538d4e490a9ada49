/**
 * Logs in Redis.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { DeltaOptions, Log } from "../log.ts";
import { endIn, type Watcher } from "../followers.ts";
import { channelOf, scriptLog } from "../redis_scripts/log.ts";
import type { RedisOptions } from "../redis_scripts/script.ts";
import { type RedisClient, type RedisSubscriber, scriptsOf } from "./client.ts";
import { type RedisWarningOptions, warnOfRisks } from "./risks.ts";

/** Options of `redisLog()`. */
export interface RedisLogOptions extends RedisOptions, RedisWarningOptions, DeltaOptions {
  /** Milliseconds between two looks for events of other processes, in case a notification is lost. Default: 1,000. */
  readonly pollEvery?: number;
}

/**
 * Keeps logs in Redis. An addition is one script, and notifies the followers in every process. While a run is followed, one more connection is open. Use a
 * server with the settings that `redisStore()` names. If the server has lost events, runs and streams that depend on them end with an error.
 *
 * ```ts
 * import { type RedisClient, redisLog } from "@jizai/jizai/session/redis";
 *
 * // redis: new Redis(url) of ioredis
 * export const logOn = (redis: RedisClient) => redisLog(redis, { expireIn: 60 * 60 * 1_000 });
 * ```
 */
export function redisLog(redis: RedisClient, options: RedisLogOptions = {}): Log {
  expectNames("Cannot create redisLog()", options, ["prefix", "expireIn", "pollEvery", "deltasEvery", "onWarning"]);
  const { pollEvery = 1_000 } = options;
  void warnOfRisks(redis, options); // never rejects
  const { prefix = "jizai" } = options;
  const subscribe = subscriptions(redis);
  const watch = (id: string, watcher: Watcher) => subscribe(channelOf(prefix, id), watcher);
  return scriptLog(scriptsOf(redis), options, { longest: pollEvery, watch });
}

/**
 * Returns the function that subscribes to the channel of a run. All channels share one connection, which is closed after the last of them. The function resolves to the one
 * that ends the subscription.
 */
function subscriptions(redis: RedisClient): (channel: string, watcher: Watcher) => Promise<() => unknown> {
  const watchers = new Map<string, Set<Watcher>>();
  let subscriber: RedisSubscriber | undefined;

  function connect(): RedisSubscriber {
    const connection = redis.duplicate();
    connection.on("message", (channel = "", payload = "") => {
      for (const watcher of watchers.get(channel) ?? []) watcher.notify(endIn(payload));
    });
    connection.on("ready", () => { // messages are lost while the connection is down
      for (const ofRun of watchers.values()) for (const watcher of ofRun) watcher.notify();
    });
    connection.on("error", () => {}); // the client connects again, and followers look for events meanwhile
    return connection;
  }

  /** Ends a subscription. Its outcome does not matter: a message without a watcher is ignored. */
  function end(channel: string, watcher: Watcher): void {
    const ofRun = watchers.get(channel);
    ofRun?.delete(watcher);
    if (ofRun?.size !== 0) return;
    watchers.delete(channel);
    if (watchers.size > 0) return void subscriber?.unsubscribe(channel).catch(() => {});
    subscriber?.disconnect();
    subscriber = undefined;
  }

  return async (channel, watcher) => {
    subscriber ??= connect();
    const ofRun = watchers.get(channel) ?? new Set();
    watchers.set(channel, ofRun.add(watcher));
    try {
      await subscriber.subscribe(channel);
      return () => end(channel, watcher);
    } catch (error) {
      end(channel, watcher);
      throw error;
    }
  };
}
