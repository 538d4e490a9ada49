/**
 * Sessions and texts by key in Redis, by the client ioredis or by the package `redis`.
 *
 * @module
 */
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import type { JournalWatcher } from "../core/journal.ts";
import type { Subscribe } from "./journal_rows.ts";
import { scriptStore } from "./redis_scripts/journal.ts";
import { type RedisOptions, type RedisStoreOptions, type RunScript, scriptKeyValue } from "./redis_scripts/script.ts";
export type { RedisOptions, RedisStoreOptions } from "./redis_scripts/script.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The Redis client that the caller passes.

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
function scriptsOf(redis: RedisClient): RunScript {
  return (script, keys, values) => redis.eval(script, keys.length, ...keys, ...values);
}

// Clients of the package `redis`.

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
 * Makes a client of the package `redis` usable for `redisStore()` and `redisKeyValue()`.
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

// The settings of a Redis server that can lose events.

/** Options that report the settings of a server. */
export interface RedisWarningOptions {
  /** Receives a warning for each setting with which Redis can lose what it has accepted. Default: a warning of the process. */
  readonly onWarning?: (message: string) => void;
}

/** Reads the settings of the server, and warns for those with which it can lose data. Never rejects. */
async function warnOfRisks(
  redis: RedisClient,
  { onWarning = emitWarning }: RedisWarningOptions,
): Promise<void> {
  try {
    const info = (await Promise.all(["memory", "persistence", "replication"].map((section) => redis.info(section))))
      .join("\n");
    for (const risk of risksOf(info)) onWarning(`Redis can lose sessions and events: ${risk}`);
  } catch (error) {
    onWarning(`Cannot check whether Redis can lose sessions and events: ${error}`);
  }
}

/** Returns the settings in the reply of INFO with which a server can lose data. */
function risksOf(info: string): readonly string[] {
  const valueOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  const policy = valueOf("maxmemory_policy");
  const evicts = policy !== "noeviction" && valueOf("maxmemory") !== "0";
  return [
    ...evicts ? [`maxmemory-policy is "${policy}"; expected "noeviction"`] : [],
    ...valueOf("aof_enabled") === "1" ? [] : ['appendonly is "no"; expected "yes" with appendfsync "always"'],
    ...Number(valueOf("connected_slaves")) > 0 ? ["a failover to a replica drops writes that it does not have"] : [],
  ];
}

/** Emits a warning of the process, where the runtime has them: Node, Deno and Bun write it to the standard error. */
function emitWarning(message: string): void {
  const { process } = globalThis as { process?: { emitWarning?(message: string): void } }; // the types of a runtime are not known here
  process?.emitWarning?.(message);
}

// Sessions in Redis.

/**
 * Keeps sessions in Redis. Each operation is one script, and so one round trip. Use a server with `appendonly yes`, `appendfsync always` and
 * `maxmemory-policy noeviction`: with other settings, it can lose sessions, and `onWarning` is called.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { type RedisClient, redisStore } from "@jizai/jizai/session/redis";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // redis: new Redis(url) of ioredis
 * export const appOn = (redis: RedisClient) => serve(assistant, { store: redisStore(redis) });
 * ```
 */
export function redisStore(redis: RedisClient, options: RedisStoreOptions & RedisWarningOptions = {}): Store {
  expectNames("Cannot create redisStore()", options, ["prefix", "expireIn", "pollEvery", "deltasEvery", "onWarning"]);
  void warnOfRisks(redis, options); // never rejects
  return scriptStore(scriptsOf(redis), { pollEvery: 1_000, ...options, subscribe: subscriptionsOf(redis) });
}

/** The subscriptions of clients: stores of one client share a connection. */
const subscribers = new WeakMap<RedisClient, Subscribe>();

function subscriptionsOf(redis: RedisClient): Subscribe {
  const subscribe = subscribers.get(redis) ?? subscriptions(redis);
  subscribers.set(redis, subscribe);
  return subscribe;
}

/**
 * Returns the function that subscribes to the channel of a journal. All channels share one connection, which is closed after the last of them. The function resolves to the one
 * that ends the subscription.
 */
function subscriptions(redis: RedisClient): Subscribe {
  const watchers = new Map<string, Set<JournalWatcher>>();
  let subscriber: RedisSubscriber | undefined;

  function connect(): RedisSubscriber {
    const connection = redis.duplicate();
    connection.on("message", (channel = "", payload = "") => {
      for (const watcher of watchers.get(channel) ?? []) watcher.notify(payload === "post");
    });
    connection.on("ready", () => { // messages are lost while the connection is down
      for (const ofRun of watchers.values()) for (const watcher of ofRun) watcher.notify();
    });
    connection.on("error", () => {}); // the client connects again, and followers look for events meanwhile
    return connection;
  }

  /** Ends a subscription. Its outcome does not matter: a message without a watcher is ignored. */
  function end(channel: string, watcher: JournalWatcher): void {
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

// Texts by key in Redis.

/**
 * Keeps texts by key in Redis.
 *
 * ```ts
 * import { type RedisClient, redisKeyValue } from "@jizai/jizai/session/redis";
 *
 * // redis: new Redis(url) of ioredis
 * export const valuesOn = (redis: RedisClient) => redisKeyValue(redis);
 * ```
 */
export function redisKeyValue(redis: RedisClient, options: Pick<RedisOptions, "prefix"> = {}): KeyValue {
  return scriptKeyValue(scriptsOf(redis), options);
}
