/**
 * Sessions in Redis.
 *
 * @module
 */
import type { Addition, Store, StoreAdapter, StoredHead } from "../../core/store.ts";
import { byDatabaseClock, durable } from "../durable/mod.ts";
import { entriesOf, textOfEntries } from "../pieces.ts";
import { listOf, type RedisOptions, type RunScript, textOf } from "./script.ts";

/**
 * Creates a store. Each operation is one script on the keys of a session, a hash and a list of entries, which are in one slot of a cluster. Sorted sets in another slot
 * are the indexes of all ids, of leases and of expiries: a lease is in its index before it is stored or shortened, and what an index returns is looked up. In the slot of
 * earlier versions of the package, a mark keeps them away from a session before it is stored.
 */
export function scriptStore(run: RunScript, { prefix = "jizai", expireIn = Infinity }: RedisOptions): Store {
  const keysOf = (id: string) => ["head", "entries"].map((name) => `${prefix}:{${encodeURIComponent(id)}}:${name}`);
  const [ids, ends, expiries] = [`{${prefix}}:ids`, `{${prefix}}:ends`, `{${prefix}}:expiries`];
  /** The keys of earlier versions of the package: a session in one hash, and the indexes. */
  const wholeKey = (id: string) => `{${prefix}}:session:${id}`;
  const [wholeIds, wholeEnds] = [`{${prefix}}:sessions`, `{${prefix}}:leases`];
  const wholeKeys = (id: string) => [wholeKey(id), wholeIds, wholeEnds];
  const keep = expireIn < Infinity ? expireIn : 0;

  /** Returns a session of an earlier version of the package, also if its move was interrupted. */
  async function wholeOf(id: string): Promise<StoredHead | undefined> {
    const [version, lease, body] = listOf(await run(readWhole, [wholeKey(id)], []));
    if (version === undefined) return undefined;
    const mark = { holder: "", n: Number(version) };
    return { mark, base: 1, last: 0, until: endOf(lease), head: textOf(body) };
  }

  /** Reads a head, and the entries from number `first` on, or from its base, if they are asked for. */
  async function read(id: string, first?: number, last?: number) {
    const reply = await run(openScript, keysOf(id), first === undefined ? [0, 0] : [first, last ?? -1]);
    const [holder, n, base, end, until, head, from, ...entries] = listOf(reply);
    if (n === undefined) return undefined;
    const stored: StoredHead = {
      mark: { holder: textOf(holder), n: Number(n) },
      base: Number(base),
      last: Number(end),
      until: endOf(until),
      head: textOf(head),
    };
    return { stored, first: Number(from), texts: entries.map(textOf) };
  }

  /** Returns entries, which are elements of the list. */
  function numbered(id: string, texts: readonly string[], first: number, last: number) {
    return entriesOf(id, texts.map((text, index) => ({ first: first + index, part: 0, text: `${text}\n` })), {
      first,
      last,
    });
  }

  async function append(id: string, addition: Addition): Promise<boolean> {
    const { from, to, head, entries, first, base, until } = addition;
    const isMove = from?.holder === "";
    const isFirst = !from || isMove;
    if (isFirst) await run(add, [ids], [0, id]);
    if (isMove) await run(addEarlier, [ends], [0, id]); // it has left the indexes of earlier versions if this process dies
    const reserved = isFirst ? Number(await run(keepAway, wholeKeys(id), [from?.n ?? "", id])) : 0;
    if (isFirst && reserved === 0) return false;
    if (typeof until === "number") await run(addEarlier, [ends], [until, id]);
    const lines = textOfEntries(entries).split("\n").slice(0, -1);
    const mark = reserved === 1 || !from ? ["", ""] : [from.holder, from.n];
    const values = [
      ...mark,
      to.holder,
      to.n,
      base,
      first + entries.length - 1,
      head,
      until === undefined ? "keep" : until ?? "",
    ];
    const isStored = Number(await run(put, keysOf(id), [...values, keep, Date.now(), ...lines])) === 1;
    if (!isStored) return false;
    if (isFirst) await run(add, [ids], [0, id]); // a process that lists ids may have removed it before it was stored
    if (isMove) await run(forgetWhole, wholeKeys(id), [id]);
    if (until === undefined) return true;
    if (until === null) await run(remove, [ends], [id]);
    else await run(add, [ends], [until, id]);
    await sweep(id, until);
    return true;
  }

  /** Notes when a session expires, and removes a few expired ones from the indexes. */
  async function sweep(id: string, until: number | null): Promise<void> {
    const now = Date.now();
    if (keep > 0) await run(add, [expiries], [Math.ceil(Math.max(until ?? 0, now) + keep), id]);
    const expired = listOf(await run(earliest, [expiries], [now, 10])).map(textOf);
    if (expired.length === 0) return;
    const living = new Set((await livingOf(expiries, expired)).map(([id]) => id));
    for (const gone of expired.filter((id) => !living.has(id))) {
      await run(remove, [ids], [gone]);
      await run(remove, [ends], [gone]);
      await run(drop, [wholeKey(gone)], []);
    }
  }

  /** Returns which of the ids in an index are of sessions, and forgets the others. */
  async function livingOf(
    index: string,
    ids: readonly string[],
  ): Promise<readonly (readonly [id: string, head: StoredHead])[]> {
    const heads = await Promise.all(
      ids.map(async (id) => [id, (await read(id))?.stored ?? await wholeOf(id)] as const),
    );
    const gone = heads.filter(([, head]) => !head).map(([id]) => id);
    if (gone.length > 0) await run(remove, [index], gone);
    return heads.flatMap(([id, head]) => head ? [[id, head] as const] : []);
  }

  /** Reads the ids of ended leases in an index. A lease that ends later is moved in the index. */
  async function endedIn(
    index: string,
    before: number,
    limit: number,
  ): Promise<readonly (readonly [number, string])[]> {
    const found = new Map<string, number>();
    for (let size = limit;; size *= 2) {
      const due = listOf(await run(earliest, [index], [Math.trunc(before), size])).map(textOf);
      for (const [id, { until }] of await livingOf(index, due.filter((id) => !found.has(id)))) {
        if (until === null) await run(remove, [index], [id]);
        else if (until > before) await run(add, [index], [until, id]);
        else found.set(id, until);
      }
      if (found.size >= limit || due.length < size) return [...found].map(([id, until]) => [until, id] as const);
    }
  }

  /** Lists ids of an index. */
  async function listIn(index: string, after: string, limit: number): Promise<readonly string[]> {
    const found: string[] = [];
    for (let from = after; found.length < limit;) {
      const page = listOf(await run(listAfter, [index], [from, limit])).map(textOf);
      found.push(...(await livingOf(index, page)).map(([id]) => id));
      if (page.length < limit) break;
      from = page.at(-1) ?? "";
    }
    return found;
  }

  const adapter: StoreAdapter = {
    head: async (id) => (await read(id))?.stored ?? await wholeOf(id),
    async open(id) {
      const found = await read(id, -1);
      if (!found) {
        const whole = await wholeOf(id);
        return whole && { ...whole, entries: [] };
      }
      const { stored, first, texts } = found;
      return { ...stored, entries: numbered(id, texts, first, stored.last) };
    },
    async entries(id, first, last) {
      const found = last < first ? undefined : await read(id, first, last);
      return found ? numbered(id, found.texts, first, last) : [];
    },
    append,
    async delete(id) {
      await run(remove, [ids], [id]);
      await run(remove, [ends], [id]);
      await run(remove, [expiries], [id]);
      await run(drop, keysOf(id), []);
      await run(forgetWhole, wholeKeys(id), [id]);
      await run(drop, [wholeKey(id)], []);
    },
    async list({ after = "", limit = 100 } = {}) {
      const found = new Set([...await listIn(ids, after, limit), ...await listIn(wholeIds, after, limit)]);
      return [...found].sort(byBytes).slice(0, limit);
    },
    async pending(before, limit) {
      const found = [...await endedIn(ends, before, limit), ...await endedIn(wholeEnds, before, limit)];
      const sorted = found.sort(([a], [b]) => a - b).map(([, id]) => id);
      return [...new Set(sorted)].slice(0, limit); // both indexes have a session whose move was interrupted
    },
    async touch({ id, version, lease }, until) {
      if (!lease) return false;
      const end = Math.trunc(until);
      await run(addEarlier, [ends], [end, id]);
      const values = [version, Math.trunc(lease.until), end, keep, Date.now()];
      if (Number(await run(move, keysOf(id), values)) === 1) {
        await run(add, [ends], [end, id]);
        return true;
      }
      return Number(await run(moveWhole, [wholeKey(id), wholeEnds], [...values, id])) === 1;
    },
  };
  return durable(byDatabaseClock(adapter, async () => Number(await run(time, [ids], []))));
}

/** Returns the end of a lease that a script has returned; null without a lease. */
function endOf(reply: unknown): number | null {
  return textOf(reply) === "" ? null : Number(textOf(reply));
}

/** Compares ids as Redis does: by their UTF-8 bytes, which is the order of their code points. */
function byBytes(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)];
  const at = left.findIndex((character, index) => character !== right[index]);
  return at < 0 ? left.length - right.length : (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? -1);
}

/** Reads the clock. Exported for simulations, which replace it. */
export const time = `local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Lua: lets the keys of a session expire `keep` milliseconds after now, or after the end of its lease. 0: never. */
const expireFunction = `local function expire(keep, now, lease)
  for _, key in ipairs(KEYS) do
    if tonumber(keep) > 0 then redis.call('PEXPIRE', key, math.ceil(math.max(tonumber(lease) or 0, tonumber(now)) - now + keep))
    else redis.call('PERSIST', key) end
  end
end
`;

/** Reads a head, and the entries from ARGV[1] to ARGV[2]; from the base for -1, and none for 0. */
const openScript = `local head = redis.call('HMGET', KEYS[1], 'holder', 'n', 'base', 'last', 'until', 'head')
if not head[2] then return {} end
local first = tonumber(ARGV[1])
if first < 0 then first = tonumber(head[3]) end
local reply = {':' .. head[1], tonumber(head[2]), tonumber(head[3]), tonumber(head[4]), ':' .. head[5], ':' .. head[6], first}
if first > 0 then
  local last = tonumber(ARGV[2])
  if last > 0 then last = last - 1 end
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], first - 1, last)) do reply[#reply + 1] = ':' .. entry end
end
return reply`;

/** Stores a head, and appends entries, if the mark is that of the caller. */
const put = `${expireFunction}
local stored = redis.call('HMGET', KEYS[1], 'holder', 'n', 'until')
if stored[1] == ARGV[3] and stored[2] == ARGV[4] then return 1 end
if stored[2] then
  if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then return 0 end
elseif ARGV[2] ~= '' then return 0
else redis.call('DEL', KEYS[2]) end
local lease = ARGV[8]
if lease == 'keep' then lease = stored[3] or '' end
redis.call('HSET', KEYS[1], 'holder', ARGV[3], 'n', ARGV[4], 'base', ARGV[5], 'last', ARGV[6], 'head', ARGV[7], 'until', lease)
for entry = 11, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[entry]) end
expire(ARGV[9], ARGV[10], lease)
return 1`;

/** Moves the lease that the caller has read. */
const move = `${expireFunction}
local stored = redis.call('HMGET', KEYS[1], 'n', 'until')
if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'until', ARGV[3])
expire(ARGV[4], ARGV[5], ARGV[3])
return 1`;

/** Adds ids with scores. */
const add = "return redis.call('ZADD', KEYS[1], unpack(ARGV))";

/** Adds an id, or lowers its score. */
const addEarlier = "return redis.call('ZADD', KEYS[1], 'LT', unpack(ARGV))";

const remove = "return redis.call('ZREM', KEYS[1], unpack(ARGV))";

const drop = "return redis.call('DEL', unpack(KEYS))";

const earliest = `local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for index, id in ipairs(found) do found[index] = ':' .. id end
return found`;

const listAfter =
  `local found = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1] == '' and '-' or '(' .. ARGV[1], '+', 'LIMIT', 0, ARGV[2])
for index, id in ipairs(found) do found[index] = ':' .. id end
return found`;

/** Reads a session of an earlier version of the package. One that is being moved is in other fields. */
const readWhole =
  `local stored = redis.call('HMGET', KEYS[1], 'version', 'lease', 'body', 'moved_version', 'moved_lease', 'moved_body')
if stored[6] then return {tonumber(stored[4]), ':' .. (stored[5] or ''), ':' .. stored[6]} end
if not stored[1] or stored[3] == 'moved' then return {} end
return {tonumber(stored[1]), ':' .. (stored[2] or ''), ':' .. stored[3]}`;

/**
 * Keeps earlier versions of the package away from a session before it is stored: they cannot read its body, and know neither its version nor a lease. ARGV[1] is the
 * version of theirs that is moved; empty for a new session. Returns 0 if another one is stored, and 2 if a session was kept away before, so that only the same save succeeds.
 */
const keepAway = `local stored = redis.call('HMGET', KEYS[1], 'version', 'lease', 'body', 'moved_version')
if stored[4] then return stored[4] == ARGV[1] and 1 or 0 end
if stored[3] == 'moved' then return ARGV[1] == '' and 1 or 2 end
if (stored[1] or '') ~= ARGV[1] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('HSET', KEYS[1], 'version', 2^52, 'lease', '', 'body', 'moved')
if stored[1] then redis.call('HSET', KEYS[1], 'moved_version', stored[1], 'moved_lease', stored[2] or '', 'moved_body', stored[3]) end
return 1`;

/** Removes what is left of a session that was moved, apart from what keeps earlier versions of the package away. */
const forgetWhole = `redis.call('HDEL', KEYS[1], 'moved_version', 'moved_lease', 'moved_body')
redis.call('PERSIST', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 0`;

/** Moves the lease of a session of an earlier version of the package. One that is being moved is in other fields. */
const moveWhole = `local moved = redis.call('HEXISTS', KEYS[1], 'moved_version') == 1 and 'moved_' or ''
local stored = redis.call('HMGET', KEYS[1], moved .. 'version', moved .. 'lease')
if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], moved .. 'lease', ARGV[3])
if moved == '' then redis.call('ZADD', KEYS[2], ARGV[3], ARGV[6]) end
if tonumber(ARGV[4]) > 0 then redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(tonumber(ARGV[3]), tonumber(ARGV[5])) - ARGV[5] + ARGV[4])) end
return 1`;
