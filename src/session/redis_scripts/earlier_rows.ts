/**
 * Sessions that earlier versions of the package have stored in Redis.
 *
 * @module
 */
import { byCodePoints, type EarlierRow, type EarlierRows } from "../earlier_rows.ts";
import { entriesOf } from "../pieces.ts";
import { earliestIn, listOf, type RunScript, textOf, time } from "./script.ts";

/** Returns the rows under a prefix. Those that have expired are deleted by Redis. */
export function redisEarlierRows(run: RunScript, prefix: string): EarlierRows {
  /** The keys of a head and its entries, and that of a whole session, which also keeps version 0.1.0 away from the other one. */
  const keysOf = (key: string) => ["head", "entries"].map((name) => `${prefix}:{${encodeURIComponent(key)}}:${name}`);
  const wholeKey = (key: string) => `{${prefix}}:session:${key}`;
  const [ids, ends, expiries, wholeIds, wholeEnds] = ["ids", "ends", "expiries", "sessions", "leases"]
    .map((name) => `{${prefix}}:${name}`) as [string, string, string, string, string]; // as many as names

  async function read(key: string): Promise<EarlierRow | undefined> {
    const [n, base, last, until, head, ...texts] = listOf(await run(readEntries, keysOf(key), []));
    if (n === undefined) return await readWhole(key);
    const pieces = texts.map((text, index) => ({ first: index + 1, part: 0, text: `${textOf(text)}\n` }));
    const entries = entriesOf(key, pieces, { first: 1, last: Number(last) });
    return { n: Number(n), head: textOf(head), base: Number(base), entries, due: await dueOf(until) };
  }

  async function readWhole(key: string): Promise<EarlierRow | undefined> {
    const [n, lease, body] = listOf(await run(readBody, [wholeKey(key)], []));
    if (n === undefined) return undefined;
    return { n: Number(n), head: textOf(body), base: 1, entries: [], due: await dueOf(lease) };
  }

  /** Returns the milliseconds until the end of a lease that a script has returned. */
  async function dueOf(end: unknown): Promise<number | null> {
    return textOf(end) === "" ? null : Number(textOf(end)) - Number(await run(time, [ids], []));
  }

  async function isStored(key: string): Promise<boolean> {
    const [head = ""] = keysOf(key);
    return Number(await run(hasHead, [head], [])) === 1 || Number(await run(hasBody, [wholeKey(key)], [])) === 1;
  }

  async function listIn(index: string, after: string, limit: number): Promise<readonly string[]> {
    const found: string[] = [];
    for (let from = after; found.length < limit;) {
      const page = listOf(await run(listAfter, [index], [from, limit])).map(textOf);
      const stored = await Promise.all(page.map(isStored));
      found.push(...page.filter((_, index) => stored[index]));
      if (page.length < limit) break;
      from = page.at(-1) ?? "";
    }
    return found;
  }

  return {
    exist: async () => Number(await run("return redis.call('EXISTS', unpack(KEYS))", [ids, wholeIds], [])) > 0,
    read,
    async delete(key) {
      await run(drop, keysOf(key), []);
      await run(drop, [wholeKey(key)], []);
      await run(remove, [ids, ends, expiries, wholeIds, wholeEnds], [key]);
    },
    async pending(limit, within) {
      const before = Number(await run(time, [ids], [])) + within;
      const withEntries = await earliestIn(run, ends, { before, limit });
      const found = new Map([...withEntries, ...await earliestIn(run, wholeEnds, { before, limit })]);
      return [...found].sort(([, a], [, b]) => a - b).slice(0, limit).map(([key]) => key);
    },
    async list(after, limit) {
      const found = new Set([...await listIn(ids, after, limit), ...await listIn(wholeIds, after, limit)]);
      return [...found].sort(byCodePoints).slice(0, limit);
    },
  };
}

const readEntries = `local head = redis.call('HMGET', KEYS[1], 'n', 'base', 'last', 'until', 'head')
if not head[1] then return {} end
local reply = {tonumber(head[1]), tonumber(head[2]), tonumber(head[3]), ':' .. head[4], ':' .. head[5]}
for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do reply[#reply + 1] = ':' .. entry end
return reply`;

/** Reads a whole session. One whose move was interrupted is in other fields. */
const readBody =
  `local stored = redis.call('HMGET', KEYS[1], 'version', 'lease', 'body', 'moved_version', 'moved_lease', 'moved_body')
if stored[6] then return {tonumber(stored[4]), ':' .. (stored[5] or ''), ':' .. stored[6]} end
if not stored[1] or stored[3] == 'moved' then return {} end
return {tonumber(stored[1]), ':' .. (stored[2] or ''), ':' .. stored[3]}`;

const hasHead = "return redis.call('EXISTS', KEYS[1])";

const hasBody = `local stored = redis.call('HMGET', KEYS[1], 'version', 'body', 'moved_body')
return (stored[3] or (stored[1] and stored[2] ~= 'moved')) and 1 or 0`;

const drop = "return redis.call('DEL', unpack(KEYS))";

const remove = `for _, key in ipairs(KEYS) do redis.call('ZREM', key, ARGV[1]) end
return 0`;

const listAfter =
  `local found = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1] == '' and '-' or '(' .. ARGV[1], '+', 'LIMIT', 0, ARGV[2])
for index, key in ipairs(found) do found[index] = ':' .. key end
return found`;
