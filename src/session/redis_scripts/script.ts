/**
 * Redis as the adapters use it: scripts, which Redis executes one at a time, and texts by key.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import type { DeltaOptions } from "../journal_rows.ts";
import { decodeValue, encodeKey, encodeValue, notANumber } from "../key_value/encoding.ts";

/** Executes a Lua script. Clients may parse texts as JSON, so scripts return texts after a colon. */
export type RunScript = (
  script: string,
  keys: readonly string[],
  values: readonly (string | number)[],
) => PromiseLike<unknown>;

/** Options of the adapters for Redis. */
export interface RedisOptions {
  /** The beginning of every key. Default: "jizai". */
  readonly prefix?: string;
  /** Milliseconds after its last change that Redis deletes an entry; for the session of an active run, after the end of its lease. Default: never. */
  readonly expireIn?: number;
}

/** Options of the stores in Redis. */
export interface RedisStoreOptions extends RedisOptions, DeltaOptions {
  /** Milliseconds between two looks for changes of other processes. Default: 200; on a connection that subscribes 1,000, in case a notification is lost. */
  readonly pollEvery?: number;
}

/** Returns an expiry for scripts: 0 for never. */
export function expiryOf(expireIn: number): number {
  return expireIn < Infinity ? Math.max(1, Math.ceil(expireIn)) : 0;
}

/** Returns the elements of a list that a script has returned. */
export function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [];
}

/** Returns a text that a script has returned after a colon. */
export function textOf(reply: unknown): string {
  return String(reply).slice(1);
}

/** Reads the clock. Exported for simulations, which replace it. */
export const time = `local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Returns the keys of at most `limit` journals or sessions that an index has up to a time, and their times, the earliest first. */
export async function earliestIn(
  run: RunScript,
  index: string,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<readonly (readonly [key: string, time: number])[]> {
  const found = listOf(await run(earliest, [index], [Math.floor(before), limit]));
  return Array.from({ length: found.length / 2 }, (_, at) => [textOf(found[2 * at]), Number(found[2 * at + 1])]);
}

const earliest = `local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for index = 1, #found, 2 do found[index] = ':' .. found[index] end
return found`;

// Texts by key in Redis.

/** Creates a key-value database. Each operation is one script. */
export function scriptKeyValue(
  run: RunScript,
  { prefix = "jizai" }: Pick<RedisOptions, "prefix">,
): KeyValue {
  const keyOf = (key: string) => `${prefix}:value:${encodeKey(key)}`;
  return {
    async get(key) {
      const [stored] = listOf(await run(get, [keyOf(key)], []));
      return stored === undefined ? undefined : decodeValue(textOf(stored));
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      await run(set, [keyOf(key)], [encodeValue(value), expiryOf(expireIn)]);
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      const [sum] = listOf(await run(add, [keyOf(key)], [by, expiryOf(expireIn)]));
      if (sum === undefined) throw notANumber(key);
      return Number(textOf(sum));
    },
    async delete(key) {
      await run(remove, [keyOf(key)], []);
    },
  };
}

const get = `local stored = redis.call('GET', KEYS[1])
if stored then return {':' .. stored} end
return {}`;

const set = `redis.call('SET', KEYS[1], ARGV[1])
if tonumber(ARGV[2]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`;

/** Adds to a counter. Returns an empty list if the text is not a whole number. The sum is read as text, since numbers of Lua are inexact. */
const add = `local stored = redis.call('GET', KEYS[1])
if stored and string.sub(stored, 1, 1) == '"' then return {} end
redis.call('INCRBY', KEYS[1], ARGV[1])
if not stored and tonumber(ARGV[2]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {':' .. redis.call('GET', KEYS[1])}`;

const remove = `redis.call('DEL', KEYS[1])
return 0`;
