/**
 * Logs in Redis: a hash with the end of each record, and a stream of its additions.
 *
 * @module
 */
import { FinalError } from "../../core/store.ts";
import { type Addition, type DeltaOptions, deltasEveryDefault, type Log, type LogPage } from "../log.ts";
import { followers, type FollowersOptions, notificationOf } from "../followers.ts";
import { collectLines, textOfLines } from "../pieces.ts";
import { records } from "../record/records_of.ts";
import { expireFunction, expiryOf, listOf, type RedisOptions, type RunScript, textOf } from "./script.ts";

/** A record that this process writes. */
interface Written {
  /** The number of its last event. */
  readonly last: number;
  /** Until when Redis must have it, in milliseconds since 1970. */
  readonly until: number;
}

/**
 * Creates a log. Each operation is one script. If Redis has lost events that it had accepted, `append()` and `tail()` fail: a stream is never continued behind
 * a gap, or from an older state.
 */
export function scriptLog(
  run: RunScript,
  { prefix = "jizai", expireIn = Infinity, deltasEvery = deltasEveryDefault }: RedisOptions & DeltaOptions,
  looks: Pick<FollowersOptions, "longest" | "watch">,
): Log {
  const keysOf = (id: string) => [`${prefix}:log:{${id}}`, `${prefix}:lines:{${id}}`];
  const following = followers({ ...looks, read: readSeen });
  const written = new Map<string, Written>();

  async function append(id: string, addition: Addition): Promise<boolean> {
    const { after, lines, ended } = addition;
    const known = written.get(id);
    const isKnown = known !== undefined && known.last === after && Date.now() < known.until;
    const until = Date.now() + expireIn;
    const last = after + lines.length;
    const notification = [channelOf(prefix, id), notificationOf({ last, ended })];
    const values = [
      after,
      last,
      ended ? 1 : 0,
      expiryOf(expireIn),
      textOfLines(lines),
      isKnown ? 1 : 0,
      ...notification,
    ];
    const done = Number(await run(add, keysOf(id), values));
    if (done < 0) throw lostError(id);
    if (done === 0 || ended) written.delete(id);
    else written.set(id, { last, until });
    if (done === 1) following.add(id, addition);
    return done === 1;
  }

  /** Reads a page. Returns "missing" for a record that Redis does not have, and "deleted" for one that was deleted lately. */
  async function readPage(id: string, after: number): Promise<LogPage | "missing" | "deleted"> {
    const [state, last, ended, firstNumber, ...pieces] = listOf(await run(read, keysOf(id), [after]));
    if (state !== 1) return state === 2 ? "deleted" : "missing";
    const collector = collectLines(after);
    for (let at = 0; at + 1 < pieces.length; at += 2) {
      const piece = { first: Number(pieces[at]), part: 0, text: textOf(pieces[at + 1]) };
      if (!collector.add(piece)) break;
    }
    const page = { ...collector.lines(), last: Number(last), ended: ended === 1 };
    const expected = Math.max(after, Number(firstNumber)) + 1;
    const isWhole = page.lines.length > 0 ? page.first === expected : page.last < expected;
    if (!isWhole) throw lostError(id);
    return page;
  }

  /** Reads a page for followers. Throws if the record has become shorter than event `seen`, or has gone without being deleted. */
  async function readSeen(id: string, after: number, seen: number | undefined): Promise<LogPage | undefined> {
    const page = await readPage(id, after);
    if (page === "deleted" || (page === "missing" && seen === undefined)) return undefined;
    if (page === "missing" || page.last < (seen ?? 0)) throw lostError(id);
    return page;
  }

  return {
    records,
    deltasEvery,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    append,
    async read(id, after) {
      const page = await readPage(id, after);
      return typeof page === "string" ? undefined : page;
    },
    tail: following.tail,
    async delete(id) {
      written.delete(id);
      await run(remove, keysOf(id), [channelOf(prefix, id), ""]);
      following.remove(id);
    },
  };
}

/** Returns the channel on which the additions to a record are published. */
export function channelOf(prefix: string, id: string): string {
  return `${prefix}:additions:${id}`;
}

function lostError(id: string): FinalError {
  return new FinalError(`Cannot continue the record of "${id}": Redis has lost events that it had accepted`);
}

/**
 * Appends lines if the record ends where the writer expects, and publishes that. Returns 1 if it has, 0 if another process has written, and -1 if the writer
 * knows that the record ended there.
 */
const add = `${expireFunction}
local after, last = tonumber(ARGV[1]), tonumber(ARGV[2])
local head = redis.call('HMGET', KEYS[1], 'last', 'deleted')
local stored = head[1] and not head[2] and tonumber(head[1]) or nil
if ARGV[6] == '1' and (not stored or stored < after) then return -1 end
if stored and stored ~= after then return 0 end
if not stored then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'begin', ARGV[1])
end
redis.call('HSET', KEYS[1], 'last', ARGV[2], 'ended', ARGV[3])
if last > after then redis.call('XADD', KEYS[2], string.format('%.0f-0', after + 1), 'body', ARGV[5]) end
expire(KEYS[1], ARGV[4])
expire(KEYS[2], ARGV[4])
redis.call('PUBLISH', ARGV[7], ARGV[8])
return 1`;

/** Reads the end of a record and the next additions, about a million bytes of them. */
const read = `local head = redis.call('HMGET', KEYS[1], 'last', 'ended', 'begin', 'deleted')
if head[4] then return {2} end
if not head[1] then return {0} end
local after, page = tonumber(ARGV[1]), {1, tonumber(head[1]), tonumber(head[2]), tonumber(head[3])}
if after >= page[2] then return page end
local start = string.format('%.0f', after + 1)
local before = redis.call('XREVRANGE', KEYS[2], start, '-', 'COUNT', 1)
local from, size = before[1] and before[1][1] or start, 0
while size < 1000000 do
  local entries = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', 50)
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    from = '(' .. entry[1]
    if size < 1000000 then
      page[#page + 1] = tonumber(string.match(entry[1], '^%d+'))
      page[#page + 1] = ':' .. entry[2][2]
      size = size + #entry[2][2]
    end
  end
end
return page`;

/** Deletes a record. What is left for a minute tells followers that it was deleted and not lost. */
const remove = `if redis.call('DEL', KEYS[1], KEYS[2]) > 0 then
  redis.call('HSET', KEYS[1], 'deleted', 1)
  redis.call('PEXPIRE', KEYS[1], 60000)
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return 0`;
