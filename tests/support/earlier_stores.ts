/**
 * The operations of version 0.1.0 of the package on databases of sessions, with its statements: a process of it that has used the database before.
 *
 * @module
 */
import type { Session } from "@jizai/jizai";
import type { EarlierEntries, EarlierSession } from "./earlier_sessions.ts";

/** A store of version 0.1.0. */
export interface EarlierStore {
  /** Returns a session, or undefined if there is none. Rejects if it cannot be read. */
  load(id: string): Promise<Session | undefined>;
  /** Saves a session of which it knows the version. Returns false if another process was faster. */
  save(session: Session): Promise<boolean>;
  delete(id: string): Promise<void>;
  /** Returns the ids of sessions whose lease has ended. */
  pending(before: number): Promise<readonly string[]>;
  /** Moves a lease. Returns false if the session has another version or lease. */
  touch(session: Pick<Session, "id" | "version" | "lease">, until: number): Promise<boolean>;
  /** Stores a session that was recorded. */
  put(session: EarlierSession): Promise<void>;
  /** Stores a session with entries as the versions after 0.1.0 did, in columns and tables that are added. */
  putEntries(session: EarlierEntries): Promise<void>;
}

/** Returns a session as a text, as version 0.1.0 stores it. */
function textOf({ messages, version: _, ...rest }: Session): string {
  return JSON.stringify({ messages, ...rest });
}

function sessionOf(text: string, version: unknown, until: unknown): Session {
  const session: Session = JSON.parse(text);
  const end = until === null || until === "" ? session.lease?.until : Number(until);
  return {
    ...session,
    version: Number(version),
    ...(session.lease && { lease: { ...session.lease, until: end ?? 0 } }),
  };
}

/** Executes a statement, and returns its rows. */
export type Query = (
  sql: string,
  ...values: (string | number | null)[]
) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Returns the statements that create the tables of sessions in SQLite. `hasWriter` is true for D1 and libSQL. */
export function earlierTables(hasWriter: boolean): readonly string[] {
  return [
    `CREATE TABLE jizai_session (id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER, lease INTEGER
      ${hasWriter ? ", writer TEXT NOT NULL" : ""}) WITHOUT ROWID`,
    `CREATE TABLE jizai_session_piece (
      id TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, part)) WITHOUT ROWID`,
  ];
}

/** Creates a store in SQLite. `hasWriter` is true for D1 and libSQL, whose rows name their writer. */
export function earlierSqlite(query: Query, hasWriter: boolean): EarlierStore {
  const alive = "(expires IS NULL OR expires > ?)";

  async function write({ id, version, lease, text }: EarlierSession): Promise<void> {
    const [column, value] = hasWriter ? [", writer", ", 'w'"] : ["", ""];
    await query(
      `INSERT OR REPLACE INTO jizai_session (id, version, expires, lease${column}) VALUES (?, ?, ?, ?${value})`,
      id,
      version,
      null,
      lease,
    );
    for (const [part, piece] of [text.slice(0, 50), text.slice(50)].entries()) {
      await query(
        `INSERT INTO jizai_session_piece VALUES (?, ?, ?)
         ON CONFLICT (id, part) DO UPDATE SET text = excluded.text WHERE text <> excluded.text`,
        id,
        part,
        piece,
      );
    }
    await query("DELETE FROM jizai_session_piece WHERE id = ? AND part >= ?", id, 2);
  }

  return {
    put: write,
    async putEntries({ id, holder, n, base, last, until, head, entries }) {
      await query(`CREATE TABLE jizai_session_entry (
        id TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, first, part)
      ) WITHOUT ROWID`);
      const values = [id, holder, base, last, head, until] as const;
      if (hasWriter) {
        await query(`CREATE TABLE jizai_session_head (
          id TEXT PRIMARY KEY, version INTEGER NOT NULL, holder TEXT NOT NULL, base INTEGER NOT NULL, last INTEGER NOT NULL,
          head TEXT NOT NULL, until INTEGER, ends INTEGER
        ) WITHOUT ROWID`);
        await query("INSERT INTO jizai_session (id, version, writer) VALUES (?, -1, 'moved')", id);
        await query(`INSERT INTO jizai_session_head VALUES (?, ${n}, ?, ?, ?, ?, ?, NULL)`, ...values);
      } else {
        for (
          const column of [
            "holder TEXT",
            ...["base", "last"].map(integer),
            "head TEXT",
            ...["until", "ends"].map(integer),
          ]
        ) {
          await query(`ALTER TABLE jizai_session ADD COLUMN ${column}`);
        }
        await query(
          `INSERT INTO jizai_session (version, id, holder, base, last, head, until) VALUES (${-n}, ?, ?, ?, ?, ?, ?)`,
          ...values,
        );
      }
      for (const [first, lines] of entries) {
        for (const [part, text] of [lines.slice(0, 50), lines.slice(50)].entries()) {
          await query("INSERT INTO jizai_session_entry VALUES (?, ?, ?, ?)", id, first, part, text);
        }
      }
    },
    async load(id) {
      const rows = await query(
        `SELECT version, lease, text FROM jizai_session JOIN jizai_session_piece USING (id) WHERE id = ? AND ${alive} ORDER BY part`,
        id,
        Date.now(),
      );
      const [row] = rows;
      return row && sessionOf(rows.map(({ text }) => text).join(""), row.version, row.lease);
    },
    async save(session) {
      const { id, version, lease } = session;
      const [row] = await query(`SELECT version FROM jizai_session WHERE id = ? AND ${alive}`, id, Date.now());
      if (Number(row?.version ?? 0) !== version) return false;
      await write({ id, version: version + 1, lease: lease?.until ?? null, text: textOf(session) });
      return true;
    },
    async delete(id) {
      await query("DELETE FROM jizai_session_piece WHERE id = ?", id);
      await query("DELETE FROM jizai_session WHERE id = ?", id);
    },
    async pending(before) {
      const due = `SELECT id FROM jizai_session WHERE lease <= ? AND ${alive} ORDER BY lease`;
      return (await query(due, before, Date.now())).map(({ id }) => String(id));
    },
    async touch({ id, version, lease }, until) {
      const found = await query(
        `SELECT 1 FROM jizai_session WHERE id = ? AND version = ? AND lease = ? AND ${alive}`,
        id,
        version,
        lease?.until ?? null,
        Date.now(),
      );
      if (found.length > 0) await query("UPDATE jizai_session SET lease = ? WHERE id = ?", until, id);
      return found.length > 0;
    },
  };
}

function integer(column: string): string {
  return `${column} INTEGER`;
}

/** Creates a store in Postgres. */
export function earlierPostgres(query: Query): EarlierStore {
  const alive = (at: number) => `(expires IS NULL OR expires > $${at})`;
  return {
    async put({ id, version, lease, text }) {
      await query(
        "INSERT INTO jizai_session (id, version, body, lease) VALUES ($1, $2, $3, $4)",
        id,
        version,
        text,
        lease,
      );
    },
    async putEntries({ id, holder, n, base, last, until, head, entries }) {
      for (const column of ["holder text", "base bigint", "last bigint", "head text", "until bigint", "ends bigint"]) {
        await query(`ALTER TABLE jizai_session ADD COLUMN ${column}`);
      }
      await query(
        'CREATE TABLE jizai_session_entry (id text COLLATE "C", first bigint, body text, PRIMARY KEY (id, first))',
      );
      await query(
        `INSERT INTO jizai_session (version, body, id, holder, base, last, head, until)
          VALUES (${-n}, '-', $1, $2, $3, $4, $5, $6)`,
        ...[id, holder, base, last, head, until],
      );
      for (const [first, lines] of entries) {
        await query("INSERT INTO jizai_session_entry VALUES ($1, $2, $3)", id, first, lines);
      }
    },
    async load(id) {
      const [row] = await query(
        `SELECT version, lease, body FROM jizai_session WHERE id = $1 AND ${alive(2)}`,
        id,
        Date.now(),
      );
      return row && sessionOf(String(row.body), row.version, row.lease);
    },
    async save(session) {
      const { id, version, lease } = session;
      const values = [id, textOf(session), null, Date.now(), lease?.until ?? null] as const;
      const insert = `INSERT INTO jizai_session AS stored (id, version, body, expires, lease) VALUES ($1, 1, $2, $3, $5)
        ON CONFLICT (id) DO UPDATE SET version = 1, body = excluded.body, expires = excluded.expires, lease = excluded.lease
          WHERE stored.expires <= $4
        RETURNING version`;
      const update = `UPDATE jizai_session SET version = version + 1, body = $2, expires = $3, lease = $5
        WHERE id = $1 AND version = $6 AND ${alive(4)} RETURNING version`;
      const rows = version === 0 ? await query(insert, ...values) : await query(update, ...values, version);
      return rows.length > 0;
    },
    async delete(id) {
      await query("DELETE FROM jizai_session WHERE id = $1", id);
    },
    async pending(before) {
      const due = `SELECT id FROM jizai_session WHERE lease <= $1 AND ${alive(2)} ORDER BY lease`;
      return (await query(due, before, Date.now())).map(({ id }) => String(id));
    },
    async touch({ id, version, lease }, until) {
      const rows = await query(
        `UPDATE jizai_session SET lease = $4, expires = $5
         WHERE id = $1 AND version = $2 AND lease = $3 AND ${alive(6)} RETURNING version`,
        id,
        version,
        lease?.until ?? null,
        until,
        null,
        Date.now(),
      );
      return rows.length > 0;
    },
  };
}

/** Executes a Lua script. */
type Evaluate = (script: string, keys: readonly string[], values: readonly (string | number)[]) => Promise<unknown>;

/** Creates a store in Redis. */
export function earlierRedis(evaluate: Evaluate, prefix: string): EarlierStore {
  const keyOf = (id: string) => `{${prefix}}:session:${id}`;
  const indexes = ["sessions", "leases"].map((name) => `{${prefix}}:${name}`);
  const write = `redis.call('HSET', KEYS[1], 'version', ARGV[2], 'body', ARGV[3], 'lease', ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
if ARGV[4] == '' then redis.call('ZREM', KEYS[3], ARGV[1]) else redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1]) end
return 1`;
  return {
    async put({ id, version, lease, text }) {
      await evaluate(write, [keyOf(id), ...indexes], [id, version, text, lease ?? ""]);
    },
    async putEntries({ id, holder, n, base, last, until, head, entries }) {
      const keys = ["head", "entries"].map((name) => `${prefix}:{${id}}:${name}`);
      const lines = entries.flatMap(([, lines]) => lines.split("\n").slice(0, -1));
      const script =
        `redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'n', ARGV[2], 'base', ARGV[3], 'last', ARGV[4], 'until', ARGV[5], 'head', ARGV[6])
for entry = 7, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[entry]) end
return 1`;
      await evaluate(script, keys, [holder, n, base, last, until, head, ...lines]);
      await evaluate(
        "return redis.call('HSET', KEYS[1], 'version', 2^52, 'lease', '', 'body', 'moved')",
        [keyOf(id)],
        [],
      );
      const add = "return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])";
      await evaluate(add, [`{${prefix}}:ids`], [0, id]);
      await evaluate(add, [`{${prefix}}:ends`], [until, id]);
    },
    async load(id) {
      const reply = await evaluate("return redis.call('HMGET', KEYS[1], 'version', 'lease', 'body')", [keyOf(id)], []);
      const [version, lease, body] = Array.isArray(reply) ? reply : [];
      return version ? sessionOf(String(body), version, lease) : undefined;
    },
    async save(session) {
      const { id, version, lease } = session;
      const script = `local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
if version ~= tonumber(ARGV[5]) then return 0 end
${write}`;
      const values = [id, version + 1, textOf(session), lease?.until ?? "", version];
      return Number(await evaluate(script, [keyOf(id), ...indexes], values)) === 1;
    },
    async delete(id) {
      const script = `redis.call('DEL', KEYS[1])
for index = 2, 3 do redis.call('ZREM', KEYS[index], ARGV[1]) end
return 0`;
      await evaluate(script, [keyOf(id), ...indexes], [id]);
    },
    async pending(before) {
      const script = "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])";
      const reply = await evaluate(script, indexes.slice(1), [before]);
      return Array.isArray(reply) ? reply.map(String) : [];
    },
    async touch({ id, version, lease }, until) {
      const script = `local stored = redis.call('HMGET', KEYS[1], 'version', 'lease')
if stored[1] ~= ARGV[2] or not stored[2] or stored[2] == '' or stored[2] ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], 'lease', ARGV[4])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
return 1`;
      const values = [id, version, lease?.until ?? "", until];
      return Number(await evaluate(script, [keyOf(id), ...indexes], values)) === 1;
    },
  };
}

/** Creates a store in Deno KV. */
export function earlierDenoKv(kv: Deno.Kv, prefix = "jizai"): EarlierStore {
  interface Head {
    readonly record: string;
    readonly expires: number;
    readonly version: number;
    readonly pieces: readonly { readonly name: string }[];
    readonly lease: number | null;
  }
  const headKey = (id: string) => [prefix, "session", id];
  const pieceKey = (record: string, name: string) => [prefix, "session_piece", record, name];
  const see = async (id: string) => {
    const { value, versionstamp } = await kv.get<Head>(headKey(id));
    return { head: value && value.expires > Date.now() ? value : undefined, versionstamp };
  };

  async function write({ id, version, lease, text }: EarlierSession, versionstamp: string | null): Promise<boolean> {
    const pieces = [{ name: crypto.randomUUID() }, { name: crypto.randomUUID() }];
    const commit = kv.atomic().check({ key: headKey(id), versionstamp });
    for (const [index, { name }] of pieces.entries()) {
      commit.set(pieceKey(id, name), index === 0 ? text.slice(0, 50) : text.slice(50));
    }
    commit.set(headKey(id), { record: id, expires: Infinity, version, pieces, lease });
    if (lease !== null) commit.set([prefix, "lease", lease, id], Infinity);
    return (await commit.commit()).ok;
  }

  return {
    async put(session) {
      await write(session, (await see(session.id)).versionstamp);
    },
    async putEntries({ id, holder, n, base, last, until, head: text, entries }) {
      const common = { record: id, expires: Infinity, at: until, version: -1, pieces: "in entries" };
      await kv.set(headKey(id), { ...common, mark: { holder, n }, base, last, until, text });
      await kv.set([prefix, "session_end", until, id], Infinity);
      for (const [first, lines] of entries) {
        for (const [part, text] of [lines.slice(0, 50), lines.slice(50)].entries()) {
          await kv.set([prefix, "session_entry", id, first, `${holder}:${n}`, part], text);
        }
      }
    },
    async load(id) {
      const { head } = await see(id);
      if (!head) return undefined;
      const texts = await kv.getMany<string[]>(head.pieces.map(({ name }) => pieceKey(head.record, name)));
      return sessionOf(texts.map(({ value }) => value).join(""), head.version, head.lease);
    },
    async save(session) {
      const { id, version, lease } = session;
      const { head, versionstamp } = await see(id);
      const { version: stored = 0, pieces = [] } = head ?? {};
      if (stored !== version) return false;
      pieces.filter(() => true); // it compares the pieces with those that it writes
      return await write(
        { id, version: version + 1, lease: lease?.until ?? null, text: textOf(session) },
        versionstamp,
      );
    },
    async delete(id) {
      await kv.delete(headKey(id));
    },
    async pending(before) {
      const start = [prefix, "lease"];
      const found = await Array.fromAsync(kv.list({ start, end: [...start, before + 1] }));
      return found.map(({ key }) => String(key[3]));
    },
    async touch({ id, version, lease }, until) {
      const { head, versionstamp } = await see(id);
      if (!head || head.lease === null || head.version !== version || head.lease !== lease?.until) return false;
      const moved = { ...head, lease: until };
      return (await kv.atomic().check({ key: headKey(id), versionstamp }).set(headKey(id), moved).commit()).ok;
    },
  };
}
