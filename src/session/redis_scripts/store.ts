/**
 * Sessions in Redis.
 *
 * @module
 */
import { durable } from "../../core/persistence/session_writer.ts";
import type { Store } from "../../core/persistence/store.ts";
import { sessionOf, textOfSession } from "../pieces.ts";
import { expireFunction, expiryOf, listOf, type RedisOptions, type RunScript, textOf } from "./script.ts";

/** Creates a store. Each operation is one script. All keys are in one slot of a cluster. */
export function scriptStore(
  run: RunScript,
  { prefix = "jizai", expireIn = Infinity }: RedisOptions,
): Store {
  const keyOf = (id: string) => `{${prefix}}:session:${id}`;
  const ids = `{${prefix}}:sessions`;
  return durable({
    async load(id) {
      const [version, body] = listOf(await run(load, [keyOf(id)], []));
      return version === undefined ? undefined : sessionOf(textOf(body), Number(version));
    },
    async save(session) {
      const { id, version } = session;
      const values = [version, textOfSession(session), expiryOf(expireIn), id];
      return Number(await run(save, [keyOf(id), ids], values)) === 1 ? version + 1 : undefined;
    },
    async delete(id) {
      await run(remove, [keyOf(id), ids], [id]);
    },
    async list({ after = "", limit = 100 } = {}) {
      return listOf(await run(list, [ids, keyOf("")], [after, limit])).map(textOf);
    },
  });
}

const load = `local stored = redis.call('HMGET', KEYS[1], 'version', 'body')
if not stored[1] then return {} end
return {tonumber(stored[1]), ':' .. stored[2]}`;

const save = `${expireFunction}
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
if version ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', version + 1, 'body', ARGV[2])
expire(KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[4])
return 1`;

const remove = `redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 0`;

/** Lists ids in the order of their bytes, and removes those of expired sessions from the index. */
const list = `local found, from = {}, '-'
if ARGV[1] ~= '' then from = '(' .. ARGV[1] end
while #found < tonumber(ARGV[2]) do
  local ids = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, ARGV[2])
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    from = '(' .. id
    if redis.call('EXISTS', KEYS[2] .. id) == 0 then redis.call('ZREM', KEYS[1], id)
    elseif #found < tonumber(ARGV[2]) then found[#found + 1] = ':' .. id end
  end
end
return found`;
