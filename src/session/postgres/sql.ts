/**
 * The Postgres driver that the caller passes, the schema, and statements that change many rows.
 *
 * @module
 */
import type { DeltaOptions } from "../journal_rows.ts";

/**
 * The part of postgres.js that is used. `postgres(url, { fetch_types: false })` returns it. The adapters use no arrays, and if Postgres terminates a new connection while
 * postgres.js reads their types, the process exits with an unhandled rejection.
 */
export interface PostgresSql {
  /** Executes a statement. With `prepare`, the driver may prepare it once for each connection. */
  unsafe(
    query: string,
    parameters?: (string | number | boolean | null)[],
    options?: { readonly prepare?: boolean },
  ): PromiseLike<readonly unknown[]>;
  /**
   * Listens to a channel, on a connection for all channels. `onListen` is called whenever that connection has been established. Resolves to the function that ends it.
   */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onListen?: () => void,
  ): PromiseLike<{ unlisten(): Promise<unknown> }>;
}

/** Options of the adapters. */
export interface PostgresOptions extends DeltaOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * What has expired is not found, and `sweep()` of the app deletes it. Default: never.
   */
  readonly expireIn?: number;
}

/** A row of a result, by column name. */
export type Row = Readonly<Record<string, unknown>>;

/** The schema, as SQL that changes nothing where it exists: `migrate()` executes it. */
export const schema: string = `CREATE TABLE IF NOT EXISTS jizai_journal (
  key text COLLATE "C" PRIMARY KEY, session text COLLATE "C", owner text COLLATE "C" NOT NULL, holder text NOT NULL,
  n bigint NOT NULL, run bigint NOT NULL, state bigint NOT NULL, base bigint NOT NULL, last bigint NOT NULL, events bigint NOT NULL,
  waiting bigint NOT NULL, due bigint, keep bigint, expires bigint, head text NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS jizai_journal_entry (
  key text COLLATE "C" NOT NULL REFERENCES jizai_journal ON DELETE CASCADE, first bigint NOT NULL, body text NOT NULL,
  PRIMARY KEY (key, first)
);
CREATE TABLE IF NOT EXISTS jizai_journal_event (
  key text COLLATE "C" NOT NULL REFERENCES jizai_journal ON DELETE CASCADE, run bigint NOT NULL, first bigint NOT NULL,
  last bigint NOT NULL, body text NOT NULL, PRIMARY KEY (key, run, first)
);
CREATE TABLE IF NOT EXISTS jizai_journal_ended (
  key text COLLATE "C" PRIMARY KEY REFERENCES jizai_journal ON DELETE CASCADE, at bigint NOT NULL, unpacked bigint
);
CREATE INDEX IF NOT EXISTS jizai_journal_ended_at ON jizai_journal_ended (at);
CREATE INDEX IF NOT EXISTS jizai_journal_unpacked ON jizai_journal_ended (unpacked) WHERE unpacked IS NOT NULL;
CREATE INDEX IF NOT EXISTS jizai_journal_owner ON jizai_journal (owner, session) WHERE session IS NOT NULL;
CREATE INDEX IF NOT EXISTS jizai_journal_due ON jizai_journal (due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS jizai_journal_expires ON jizai_journal (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS jizai_value (
  key text COLLATE "C" PRIMARY KEY, body text NOT NULL, expires bigint
);
CREATE INDEX IF NOT EXISTS jizai_value_expires ON jizai_value (expires) WHERE expires IS NOT NULL;
`;

/**
 * Creates the tables and indexes that are missing. Several processes may call it at once.
 *
 * ```ts
 * import { migrate, type PostgresSql } from "@jizai/jizai/session/postgres";
 *
 * export const prepare = (sql: PostgresSql) => migrate(sql); // sql: postgres(url, { fetch_types: false })
 * ```
 */
export async function migrate(sql: PostgresSql): Promise<void> {
  // Statements of one message are one transaction. The lock makes processes that start together wait for each other. A driver prints notices of what exists.
  const settings =
    "SELECT pg_advisory_xact_lock(hashtext('jizai_schema')), set_config('client_min_messages', 'warning', true)";
  await sql.unsafe(`${settings};\n${schema}`);
}

/** Executes a statement, and returns its rows. */
export type Query = (query: string, ...parameters: (string | number | boolean | null)[]) => Promise<readonly Row[]>;

/** Returns the function that executes statements. */
export function queryOf(sql: PostgresSql): Query {
  return async (query, ...parameters) => {
    try {
      const rows = await sql.unsafe(query, parameters, { prepare: true });
      return rows as readonly Row[]; // drivers do not type rows; they are objects by column name
    } catch (cause) {
      if (!isSchemaMissing(cause)) throw cause;
      throw new Error("Cannot use Postgres: it does not have the schema; expected a call of migrate() before", {
        cause,
      });
    }
  };
}

/** Whether Postgres has rejected a statement because a table or a column is missing. */
function isSchemaMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "42P01" || error.code === "42703");
}

// Changes of many rows in one statement: Postgres commits one statement after another, so fewer of them are faster.

/** The most statements at once. Changes that arrive meanwhile go together. */
const mostStatements = 2;

/** The most changes of a statement, and the characters beyond which it takes no more. */
const mostChanges = 200;
const mostCharacters = 1_000_000;

/** A change that waits for its statement. */
interface Waiting<T> {
  readonly key: string;
  readonly change: T;
  readonly length: number;
  readonly done: PromiseWithResolvers<boolean>;
}

/**
 * Returns the function that changes the row with a key. `execute` changes several rows in one statement, each at most once, and returns the keys of those that it has
 * changed. If a statement fails, each change is tried alone, so that none fails because of another one: a change that was made all the same must not be made again.
 */
export function inGroups<T>(
  execute: (changes: readonly T[]) => Promise<ReadonlySet<unknown>>,
): (key: string, change: T, length: number) => Promise<boolean> {
  let waiting: Waiting<T>[] = [];
  let statements = 0;
  /** The keys of the rows that statements are changing. */
  const busy = new Set<string>();

  /** Takes the changes of the next statement: one for each row, since a statement changes a row once. */
  function take(): readonly Waiting<T>[] {
    const batch = new Map<string, Waiting<T>>();
    const left: Waiting<T>[] = [];
    let characters = 0;
    for (const each of waiting) {
      if (batch.has(each.key) || busy.has(each.key) || batch.size >= mostChanges || characters >= mostCharacters) {
        left.push(each);
      } else {
        batch.set(each.key, each);
        characters += each.length;
      }
    }
    waiting = left;
    for (const key of batch.keys()) busy.add(key);
    return [...batch.values()];
  }

  async function make(group: readonly Waiting<T>[]): Promise<void> {
    try {
      const changed = await execute(group.map(({ change }) => change));
      for (const { key, done } of group) done.resolve(changed.has(key));
    } catch (error) {
      if (group.length === 1) group[0]?.done.reject(error);
      else await Promise.all(group.map((each) => make([each])));
    }
  }

  function flush(): void {
    while (waiting.length > 0 && statements < mostStatements) {
      const group = take();
      if (group.length === 0) return; // the statement that changes the row goes on with it
      statements++;
      void make(group).finally(() => { // make() never rejects: it passes failures to the changes
        for (const { key } of group) busy.delete(key);
        statements--;
        flush();
      });
    }
  }

  return (key, change, length) => {
    const done = Promise.withResolvers<boolean>();
    waiting.push({ key, change, length, done });
    if (statements < mostStatements) queueMicrotask(flush); // so that changes of one tick of the event loop go together
    return done.promise;
  };
}
