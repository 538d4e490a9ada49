/**
 * Texts by key in Redis.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { decodeValue, encodeKey, encodeValue, notANumber } from "../key_value/encoding.ts";
import { expiryOf, listOf, type RedisOptions, type RunScript, textOf } from "./script.ts";

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
