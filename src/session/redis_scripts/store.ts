/**
 * Sessions in Redis.
 *
 * @module
 */
import { byDatabaseClock, durable } from "../durable/mod.ts";
import type { Store, StoreAdapter } from "../../core/persistence/store.ts";
import { leaseEndOf, sessionOf, textOfSession } from "../pieces.ts";
import { expireFunction, expiryOf, listOf, type RedisOptions, type RunScript, textOf } from "./script.ts";

/**
 * Creates a store. Each operation is one script. A session is a hash; sorted sets are the indexes of all ids, of leases and of expiries. All keys are in one slot
 * of a cluster.
 */
export function scriptStore(
  run: RunScript,
  { prefix = "jizai", expireIn = Infinity }: RedisOptions,
): Store {
  const keyOf = (id: string) => `{${prefix}}:session:${id}`;
  const indexes = ["sessions", "leases", "expiries"].map((name) => `{${prefix}}:${name}`);
  const sessions = keyOf(""); // the indexes also contain ids of expired sessions, which scripts look up
  const adapter: StoreAdapter = {
    async load(id) {
      const [version, lease, body] = listOf(await run(load, [keyOf(id)], []));
      if (version === undefined) return undefined;
      return sessionOf(textOf(body), Number(version), textOf(lease) === "" ? null : Number(textOf(lease)));
    },
    async save(session) {
      const { id, version } = session;
      const lease = leaseEndOf(session);
      const values = [id, expiryOf(expireIn, lease), version, textOfSession(session), lease ?? ""];
      return Number(await run(save, [keyOf(id), ...indexes, sessions], values)) === 1 ? version + 1 : undefined;
    },
    async delete(id) {
      await run(remove, [keyOf(id), ...indexes], [id]);
    },
    async list({ after = "", limit = 100 } = {}) {
      return listOf(await run(list, [sessions, ...indexes], [after, limit])).map(textOf);
    },
    async pending(before, limit) {
      return listOf(await run(pending, [sessions, ...indexes], [Math.trunc(before), limit])).map(textOf);
    },
    async touch(session, until) {
      const { id, version } = session;
      const values = [id, expiryOf(expireIn, until), version, leaseEndOf(session) ?? "", Math.trunc(until)];
      return Number(await run(touch, [keyOf(id), ...indexes], values)) === 1;
    },
  };
  return durable(byDatabaseClock(adapter, async () => Number(await run(time, [sessions], []))));
}

/** Lua: the time in milliseconds. */
const nowFunction = `local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** Reads the clock. Exported for simulations, which replace it. */
export const time = `${nowFunction}
return now()`;

/** Lua: renews the expiry of the session KEYS[1], whose id and expiry are ARGV[1] and ARGV[2]. */
const renewFunction = `${expireFunction}${nowFunction}
local function renew()
  expire(KEYS[1], ARGV[2])
  if tonumber(ARGV[2]) > 0 then redis.call('ZADD', KEYS[4], now() + ARGV[2], ARGV[1])
  else redis.call('ZREM', KEYS[4], ARGV[1]) end
end
`;

/** Lua: removes an id from all indexes. */
const forgetFunction = `local function forget(id)
  for index = 2, 4 do redis.call('ZREM', KEYS[index], id) end
end
`;

const load = `local stored = redis.call('HMGET', KEYS[1], 'version', 'lease', 'body')
if not stored[1] then return {} end
return {tonumber(stored[1]), ':' .. (stored[2] or ''), ':' .. stored[3]}`;

/** Saves a session, and removes a few expired ones from the indexes. */
const save = `${renewFunction}${forgetFunction}
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
if version ~= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], 'version', version + 1, 'body', ARGV[4], 'lease', ARGV[5])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
if ARGV[5] == '' then redis.call('ZREM', KEYS[3], ARGV[1]) else redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1]) end
renew()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', string.format('%.0f', now()), 'LIMIT', 0, 10)) do
  if redis.call('EXISTS', KEYS[5] .. id) == 0 then forget(id) end
end
return 1`;

const remove = `${forgetFunction}
redis.call('DEL', KEYS[1])
forget(ARGV[1])
return 0`;

/** Lists ids in the order of their bytes. */
const list = `${forgetFunction}
local found, from, limit = {}, ARGV[1] == '' and '-' or '(' .. ARGV[1], tonumber(ARGV[2])
while #found < limit do
  local ids = redis.call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit)
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    from = '(' .. id
    if redis.call('EXISTS', KEYS[1] .. id) == 0 then forget(id)
    elseif #found < limit then found[#found + 1] = ':' .. id end
  end
end
return found`;

const pending = `${forgetFunction}
local found, limit = {}, tonumber(ARGV[2])
while #found < limit do
  local ids = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', #found, limit)
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    if redis.call('EXISTS', KEYS[1] .. id) == 0 then forget(id)
    elseif #found < limit then found[#found + 1] = ':' .. id end
  end
end
return found`;

/** Moves the lease that the caller has read. */
const touch = `${renewFunction}
local stored = redis.call('HMGET', KEYS[1], 'version', 'lease')
if stored[1] ~= ARGV[3] or not stored[2] or stored[2] == '' or stored[2] ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], 'lease', ARGV[5])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
renew()
return 1`;
