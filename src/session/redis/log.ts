/**
 * Logs in Redis.
 *
 * @module
 */
import { expectNames } from "../../protocol/option_names.ts";
import type { DeltaOptions, Log } from "../log.ts";
import { type Notifier, notifier } from "../notifier.ts";
import { channelOf, scriptLog } from "../redis_scripts/log.ts";
import type { RedisOptions } from "../redis_scripts/script.ts";
import { type RedisClient, scriptsOf } from "./client.ts";
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
  const additions = notifier(pollEvery);
  const listen = listener(redis, channelOf(options.prefix ?? "jizai"), additions);
  return scriptLog(scriptsOf(redis), options, { notifier: additions, listen });
}

/** Returns a function that subscribes to a channel, on one connection for all followers. It is closed after the last of them. */
function listener(redis: RedisClient, channel: string, additions: Notifier): () => Promise<() => void> {
  let followers = 0;
  let connection: { readonly subscribed: Promise<unknown>; close(): void } | undefined;

  function connect(): NonNullable<typeof connection> {
    const subscriber = redis.duplicate();
    subscriber.on("message", (_channel, run) => additions.notify(run));
    subscriber.on("ready", () => additions.notify()); // messages are lost while the connection is down
    subscriber.on("error", () => {}); // the client connects again, and followers look for events meanwhile
    return { subscribed: subscriber.subscribe(channel), close: () => subscriber.disconnect() };
  }

  function stop(): void {
    followers--;
    if (followers > 0) return;
    connection?.close();
    connection = undefined;
  }

  return async () => {
    followers++;
    connection ??= connect();
    try {
      await connection.subscribed;
      return stop;
    } catch (error) {
      stop();
      throw error;
    }
  };
}
