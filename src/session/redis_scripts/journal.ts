/**
 * Journals in Redis: a hash with the head, a list of entries, and a stream of events, in one slot of a cluster.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  type Created,
  expectHead,
  type Journal,
  type JournalHead,
  type JournalPage,
  journalWatchers,
  outcomeOf,
  runStates,
} from "../../core/journal.ts";
import type { Store } from "../../core/store.ts";
import { clockOffset } from "../database_clock.ts";
import { storeOf } from "../earlier_rows.ts";
import {
  deltasEveryDefault,
  headOf,
  type PackedRow,
  pageOf,
  rangeOf,
  type Subscribe,
  subscribedWatch,
} from "../journal_rows.ts";
import { entriesOf, textOfEntries, textOfLines } from "../pieces.ts";
import { redisEarlierRows } from "./earlier_rows.ts";
import { earliestIn, listOf, type RedisStoreOptions, type RunScript, textOf, time } from "./script.ts";

/** Options of `scriptJournal()`. */
export interface RedisJournalOptions extends RedisStoreOptions {
  /** Subscribes to the channel of a journal, for the changes of other processes. Default: watchers are notified of those of this process. */
  readonly subscribe?: Subscribe;
}

/** Creates a store. */
export function scriptStore(script: RunScript, options: RedisJournalOptions): Store {
  return storeOf(scriptJournal(script, options), redisEarlierRows(script, options.prefix ?? "jizai"));
}

/**
 * Creates journals. Each operation is one script on the keys of a journal. Sorted sets in other slots are the indexes of what is due and of owners' sessions: they
 * are written before the journal, and what an index returns is looked up. A third one finds those that have expired, and a fourth one those whose run is over. The
 * clock is that of Redis.
 */
export function scriptJournal(
  script: RunScript,
  { prefix = "jizai", expireIn = Infinity, pollEvery = 200, deltasEvery = deltasEveryDefault, subscribe }:
    RedisJournalOptions = {},
): Journal {
  const { watch, notify } = journalWatchers();
  const indexKey = (name: string) => `{${prefix}}:journals:${name}`;
  const [dues, expiries, ends] = [indexKey("due"), indexKey("expiries"), indexKey("ends")];
  const clock = clockOffset(async () => Number(await script(time, [dues], [])));
  const now = async () => Date.now() + await clock.ahead();
  const keysOf = (key: string) => ["head", "entries", "events"].map((name) => `${prefix}:{journal:${key}}:${name}`);
  const channelOf = (key: string) => `${prefix}:journal:${key}`;
  const sessionsOf = (owner = "") => `{${prefix}}:journals:of:${owner}`;

  async function run(body: string, key: string, ...values: readonly (string | number)[]): Promise<readonly unknown[]> {
    return listOf(await script(body, keysOf(key), values));
  }

  async function head(key: string): Promise<JournalHead | undefined> {
    const at = await now();
    return headIn(await run(readHead, key), at);
  }

  /** Returns entries, which are elements of the list. */
  function numbered(id: string, texts: readonly unknown[], first: number, last: number) {
    const pieces = texts.map((text, index) => ({ first: first + index, part: 0, text: `${textOf(text)}\n` }));
    return entriesOf(id, pieces, { first, last });
  }

  async function append(key: string, addition: Append): Promise<Appended | undefined> {
    const { from, to, created = {}, change, events, due } = addition;
    expectHead(addition);
    const { session, owner, expireIn: own = expireIn } = created;
    const at = await now();
    const until = typeof due === "number" ? Math.ceil(at + due) : due === null ? "" : "keep";
    if (!from && session !== undefined) await script(add, [sessionsOf(owner)], [0, `${session}\0${key}`]);
    if (change?.state === "over" && change.run > 0) await script(add, [ends], [Math.ceil(at), key]);
    if (typeof until === "number") await script(addEarlier, [dues], [until, key]); // it is found if this process dies
    const { run: number = "", state, base = "", waiting = "", head: text = "", last = "", entries = [] } = change ?? {};
    const properties = from
      ? ["", "", ""]
      : [session === undefined ? "" : `:${session}`, owner ?? "", own < Infinity ? own : 0];
    const values = [
      ...[from?.holder ?? "", from?.n ?? "", to.holder, to.n, ...properties, Math.ceil(at), channelOf(key), until],
      ...[number, state === undefined ? "" : runStates.indexOf(state), base, waiting, text, last],
      ...[events?.first ?? "", events ? events.first + events.lines.length - 1 : "", textOfLines(events?.lines ?? [])],
      ...textOfEntries(entries).split("\n").slice(0, -1),
    ];
    const [status, end, holder, n] = await run(put, key, ...values);
    if (status !== 1) {
      return outcomeOf(
        addition,
        status === 0 ? undefined : { mark: { holder: textOf(holder), n: Number(n) }, last: Number(end) },
      );
    }
    if (typeof until === "number") await script(add, [dues], [until, key]);
    if (!from && session !== undefined && own < Infinity) { // what is not listed leaves the indexes when they are read
      await script(add, [expiries], [Math.ceil(at + own), JSON.stringify([key, owner ?? "", session])]);
    }
    notify(key, false);
    return { stored: true, last: Number(end) };
  }

  /** Removes a session that has expired from the indexes. One that was used since is noted anew. */
  async function unlistExpired(noted: string, at: number): Promise<void> {
    const [key, owner, session] = JSON.parse(noted);
    const left = Number(await script("return redis.call('PTTL', KEYS[1])", keysOf(key).slice(0, 1), []));
    if (left >= 0) await script(add, [expiries], [Math.ceil(at + left), noted]);
    else await unlist(key, { owner, session });
  }

  /** Removes a journal that is gone from the indexes. A session that was created anew meanwhile stays listed. */
  async function unlist(key: string, { owner = "", session }: Created): Promise<void> {
    for (const index of [dues, ends]) await script(remove, [index], [key]);
    if (session === undefined) return;
    await script(remove, [expiries], [JSON.stringify([key, owner, session])]);
    await script(remove, [sessionsOf(owner)], [`${session}\0${key}`]);
    if (await head(key)) await script(add, [sessionsOf(owner)], [0, `${session}\0${key}`]);
  }

  /** Returns the journals of an index that are due. What is due later, or not at all, moves in the index or leaves it, unless it has moved meanwhile. */
  async function dueOf(
    keys: readonly (readonly [key: string, score: number])[],
    within: number,
  ): Promise<readonly string[]> {
    const at = await now();
    const heads = await Promise.all(keys.map(async ([key, score]) => [key, score, await head(key)] as const));
    const due: string[] = [];
    for (const [key, score, found] of heads) {
      if (found?.due != null && found.due <= within) due.push(key);
      else await script(moveScore, [dues], [key, score, found?.due != null ? Math.ceil(at + found.due) : ""]);
    }
    return due;
  }

  return {
    watch: subscribe ? subscribedWatch(watch, (key, watcher) => subscribe(channelOf(key), watcher)) : watch,
    pollEvery,
    deltasEvery,
    head,
    async open(key) {
      const at = await now();
      const [fields, ...texts] = await run(readFrom, key, -1, -1);
      const found = headIn(listOf(fields), at);
      return found && { ...found, entries: numbered(found.session ?? key, texts, found.base, found.last) };
    },
    async entries(key, first, last) {
      const [fields, ...texts] = await run(readFrom, key, Math.max(first, 1), last);
      const found = headIn(listOf(fields), 0);
      const range = rangeOf(found, first, last);
      return numbered(found?.session ?? key, range.last < range.first ? [] : texts, range.first, range.last);
    },
    append,
    async post(key, { run: number, entry, most = "" }) {
      const values = [number, most, JSON.stringify(entry), Math.ceil(await now()), channelOf(key)];
      const [status, last] = await run(raise, key, ...values);
      if (status === 1) notify(key, true);
      return status === 1 ? { status: "posted", last: Number(last) } : { status: status === 2 ? "full" : "over" };
    },
    async read(key, number, after): Promise<JournalPage | undefined> {
      const [fields, end, ...rows] = await run(readEvents, key, number, after + 1);
      const found = headIn(listOf(fields), 0);
      return found && pageOf(found, { run: number, after, end: Number(end ?? 0) }, additionsIn(rows));
    },
    async pending(limit, within = 0) {
      for (let size = limit;; size *= 2) {
        const keys = await earliestIn(script, dues, { before: await now() + within, limit: size });
        const due = await dueOf(keys, within);
        if (due.length >= limit || keys.length < size) return due.slice(0, limit);
      }
    },
    async list({ owner, after = "", limit = 100 } = {}) {
      const sessions: string[] = [];
      for (let from = after; sessions.length < limit;) {
        const page = listOf(await script(listAfter, [sessionsOf(owner)], [from, limit])).map((member) =>
          textOf(member).split("\0")
        );
        for (const [session = "", key = ""] of page) {
          const found = await head(key);
          if (found) sessions.push(session);
          else await script(remove, [sessionsOf(owner)], [`${session}\0${key}`]);
        }
        if (page.length < limit) break;
        from = page.at(-1)?.[0] ?? "";
      }
      return sessions.slice(0, limit);
    },
    async trim(key, number) {
      await run("redis.call('XTRIM', KEYS[3], 'MINID', ARGV[1] .. '-0') return {}", key, number);
    },
    async sweep(limit, keep) {
      const at = await now();
      const expired = await earliestIn(script, expiries, { before: at, limit });
      await Promise.all(expired.map(([noted]) => unlistExpired(noted, at)));
      if (expired.length >= limit) return expired.length;
      const ended = await earliestIn(script, ends, { before: at - keep, limit: limit - expired.length });
      await Promise.all(ended.map(async ([key, score]) => {
        await run(deleteEnded, key);
        await script(moveScore, [ends], [key, score, ""]);
      }));
      return expired.length + ended.length;
    },
    async delete(...keys) {
      for (const key of keys) {
        const found = headIn(await run(deleteAll, key, channelOf(key)), 0);
        notify(key);
        if (found) await unlist(key, found);
      }
    },
  };
}

/** Returns the head in the fields that a script has returned. */
function headIn(fields: readonly unknown[], now: number): JournalHead | undefined {
  if (fields.length === 0) return undefined;
  const row = Object.fromEntries(names.map((name, index) => [name, textOf(fields[index])]));
  const { session, due } = row;
  return headOf({ ...row, session: session ? session.slice(1) : null, due: due || null }, now);
}

/** The fields of a head, in the order in which scripts return them. */
const names = ["session", "owner", "holder", "n", "run", "state", "base", "last", "events", "waiting", "due", "head"];

function additionsIn(rows: readonly unknown[]): readonly PackedRow[] {
  return Array.from({ length: rows.length / 2 }, (_, index) => {
    return { first: Number(rows[2 * index]), part: 0, last: 0, text: textOf(rows[2 * index + 1]) };
  });
}

// Scripts. Their keys are the head, the entries and the events of a journal.

/** Lua: returns the fields of the head, or none. */
const headFunction = `local function head()
  local fields = redis.call('HMGET', KEYS[1], ${names.map((name) => `'${name}'`).join(", ")})
  if not fields[4] then return {} end
  for index, field in ipairs(fields) do fields[index] = ':' .. field end
  return fields
end
`;

/** Lua: lets the keys of a journal expire, as long after now, or after it is due, as the journal is kept. */
const expireFunction = `local function expire(now)
  local stored = redis.call('HMGET', KEYS[1], 'keep', 'due')
  local keep = tonumber(stored[1])
  for _, key in ipairs(KEYS) do
    if keep > 0 then redis.call('PEXPIRE', key, math.ceil(math.max(tonumber(stored[2]) or 0, tonumber(now)) - now + keep)) end
  end
end
`;

const readHead = `${headFunction}return head()`;

/** Reads the head, and the entries from ARGV[1] to ARGV[2]; from the base for -1. */
const readFrom = `${headFunction}local fields, first, last = head(), tonumber(ARGV[1]), tonumber(ARGV[2])
if #fields == 0 then return {fields} end
if first < 0 then first = tonumber(string.sub(fields[7], 2)) end
local reply = {fields}
if last == 0 then return reply end
if last > 0 then last = last - 1 end
for _, entry in ipairs(redis.call('LRANGE', KEYS[2], first - 1, last)) do reply[#reply + 1] = ':' .. entry end
return reply`;

/** Deletes the events of runs that are over. If another run has begun, its end is noted again. */
const deleteEnded = "if redis.call('HGET', KEYS[1], 'state') == '0' then redis.call('DEL', KEYS[3]) end return {}";

/** Deletes a journal. Returns its head. */
const deleteAll = `${headFunction}local fields = head()
redis.call('DEL', unpack(KEYS))
redis.call('PUBLISH', ARGV[1], '')
return fields`;

/** Moves the mark, and appends. Returns 0 if there is no journal, 2 and its mark if it has another one or later entries, and otherwise 1 and the last entry. */
const put = `${expireFunction}
local stored = redis.call('HMGET', KEYS[1], 'holder', 'n', 'last', 'run', 'events')
if stored[2] then
  local other = ARGV[2] == '' or stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2]
  if other or (ARGV[16] ~= '' and stored[3] ~= ARGV[16]) then return {2, tonumber(stored[3]), ':' .. stored[1], tonumber(stored[2])} end
else
  if ARGV[2] ~= '' then return {0} end
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'session', ARGV[5], 'owner', ARGV[6], 'keep', ARGV[7], 'due', '')
end
local run, events = stored[4], stored[5]
if ARGV[11] ~= '' then
  if run ~= ARGV[11] then events = '0' end
  run = ARGV[11]
  redis.call('HSET', KEYS[1], 'run', run, 'state', ARGV[12], 'base', ARGV[13], 'waiting', ARGV[14], 'head', ARGV[15])
end
if ARGV[18] ~= '' then events = ARGV[18] end
if ARGV[19] ~= '' then redis.call('XADD', KEYS[3], run .. '-' .. ARGV[17], 'last', ARGV[18], 'body', ARGV[19]) end
for entry = 20, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[entry]) end
local last = (tonumber(stored[3]) or 0) + #ARGV - 19
redis.call('HSET', KEYS[1], 'holder', ARGV[3], 'n', ARGV[4], 'last', last, 'events', events)
if ARGV[10] ~= 'keep' then redis.call('HSET', KEYS[1], 'due', ARGV[10]) end
expire(ARGV[8])
redis.call('PUBLISH', ARGV[9], '')
return {1, last}`;

/** Adds a post. Returns 0 if the run is not running, and 2 if too many wait. */
const raise = `${expireFunction}
local stored = redis.call('HMGET', KEYS[1], 'run', 'state', 'waiting')
if stored[1] ~= ARGV[1] or stored[2] ~= '2' then return {0} end
if ARGV[2] ~= '' then
  if tonumber(stored[3]) >= tonumber(ARGV[2]) then return {2} end
  redis.call('HINCRBY', KEYS[1], 'waiting', 1)
end
redis.call('RPUSH', KEYS[2], ARGV[3])
local last = redis.call('HINCRBY', KEYS[1], 'last', 1)
expire(ARGV[4])
redis.call('PUBLISH', ARGV[5], 'post')
return {1, last}`;

/** Reads the head, the last event of a run, and its additions from the one that contains event ARGV[2], about a million bytes of them. */
const readEvents = `${headFunction}local fields, run = head(), ARGV[1]
local last = redis.call('XREVRANGE', KEYS[3], run, run, 'COUNT', 1)
local page = {fields, last[1] and tonumber(last[1][2][2]) or 0}
local before = redis.call('XREVRANGE', KEYS[3], run .. '-' .. ARGV[2], run, 'COUNT', 1)
local from, size = before[1] and before[1][1] or run, 0
while size < 1000000 do
  local additions = redis.call('XRANGE', KEYS[3], from, run, 'COUNT', 50)
  if #additions == 0 then break end
  for _, addition in ipairs(additions) do
    from = '(' .. addition[1]
    if size < 1000000 then
      page[#page + 1] = tonumber(string.match(addition[1], '%d+$'))
      page[#page + 1] = ':' .. addition[2][4]
      size = size + #addition[2][4]
    end
  end
end
return page`;

// Scripts of indexes.

const add = "return redis.call('ZADD', KEYS[1], unpack(ARGV))";

/** Adds a key, or lowers its score. */
const addEarlier = "return redis.call('ZADD', KEYS[1], 'LT', unpack(ARGV))";

const remove = "return redis.call('ZREM', KEYS[1], unpack(ARGV))";

/** Changes the score of a key, or removes it, if it has the score that the caller has read. */
const moveScore = `if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 'nan') ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])`;

/** Lists the members of an owner's index after a session. The characters of a key come before "~". */
const listAfter = `local from = ARGV[1] == '' and '-' or '(' .. ARGV[1] .. string.char(0) .. '~'
local found = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, ARGV[2])
for index, member in ipairs(found) do found[index] = ':' .. member end
return found`;
