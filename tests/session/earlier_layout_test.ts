/**
 * Sessions that earlier versions of the package have stored, on the databases of one process. Those of servers are in `tests/servers`.
 */
import { type D1, type D1Statement, d1Store, migrate as migrateD1 } from "@jizai/jizai/session/d1";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectStore } from "@jizai/jizai/session/durable_object";
import { type LibsqlClient, libsqlStore, migrate as migrateLibsql } from "@jizai/jizai/session/libsql";
import { migrate, type SqliteDatabase, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import { earlierDenoKv, earlierSqlite, earlierTables, type Query } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";
import { storage } from "../support/sql.ts";

type Values = readonly (string | number | null)[];

/** Opens an SQLite database with the tables of sessions of version 0.1.0. Those of D1 and libSQL name the writer of a row. */
function open(hasWriter: boolean): { readonly database: DatabaseSync; readonly query: Query } {
  const database = new DatabaseSync(":memory:");
  for (const table of earlierTables(hasWriter)) database.exec(table);
  return { database, query: (sql, ...values) => Promise.resolve(database.prepare(sql).all(...values)) };
}

Deno.test("sqliteStore() moves the sessions of earlier versions to journals", async () => {
  await moveLaws(() => {
    const { database, query } = open(false);
    migrate(database);
    return {
      earlier: earlierSqlite(query, false),
      open(requests) {
        let spend = dying();
        const limited: SqliteDatabase = {
          exec: (sql) => database.exec(sql),
          prepare(sql) {
            spend();
            return database.prepare(sql);
          },
        };
        const store = sqliteStore(limited);
        spend = dying(requests); // it has looked for the tables
        return store;
      },
    };
  });
});

Deno.test("durableObjectStore() moves the sessions of earlier versions to journals", async () => {
  await moveLaws(() => {
    const { database, query } = open(false);
    return {
      earlier: earlierSqlite(query, false),
      open(requests) {
        let spend = dying();
        const { sql, transactionSync } = storage(database);
        const exec: typeof sql.exec = (...given) => {
          spend();
          return sql.exec(...given);
        };
        const store = durableObjectStore({ sql: { exec }, transactionSync });
        spend = dying(requests); // it has created the tables
        return store;
      },
    };
  });
});

/** Executes the statements of a batch. */
function batchOn(database: DatabaseSync, requests?: number) {
  const spend = dying(requests);
  const { sql, transactionSync } = storage(database);
  return (statements: readonly (readonly [sql: string, values: Values])[]) =>
    transactionSync(() =>
      statements.map(([statement, values]) => {
        spend();
        return [...sql.exec(statement, ...values)];
      })
    );
}

Deno.test("d1Store() moves the sessions of earlier versions to journals", async () => {
  await moveLaws(async () => {
    const { database, query } = open(true);
    const d1 = (requests?: number): D1 => {
      const execute = batchOn(database, requests);
      const bound = new WeakMap<D1Statement, readonly [string, Values]>();
      const statement = (sql: string, values: Values = []): D1Statement => {
        const made: D1Statement = { bind: (...given) => statement(sql, given as Values) }; // the adapters bind nothing else
        bound.set(made, [sql, values]);
        return made;
      };
      return {
        prepare: (sql) => statement(sql),
        async batch(statements) {
          return await Promise.resolve(execute(statements.map((each) => bound.get(each) ?? ["", []])))
            .then((all) => all.map((results) => ({ results })));
        },
      };
    };
    await migrateD1(d1());
    return { earlier: earlierSqlite(query, true), open: (requests) => d1Store(d1(requests)) };
  });
});

Deno.test("libsqlStore() moves the sessions of earlier versions to journals", async () => {
  await moveLaws(async () => {
    const { database, query } = open(true);
    const client = (requests?: number): LibsqlClient => {
      const execute = batchOn(database, requests);
      return {
        batch: async (statements) =>
          await Promise.resolve(execute(statements.map(({ sql, args }) => [sql, args])))
            .then((all) => all.map((rows) => ({ rows }))),
      };
    };
    await migrateLibsql(client());
    return { earlier: earlierSqlite(query, true), open: (requests) => libsqlStore(client(requests)) };
  });
});

Deno.test("denoKvStore() moves the sessions of earlier versions to journals", async () => {
  using kv = await Deno.openKv(":memory:");
  await moveLaws(() => {
    const prefix = crypto.randomUUID();
    return {
      earlier: earlierDenoKv(kv, prefix),
      open(requests) {
        const spend = dying(requests);
        const limited = new Proxy(kv, {
          get(target, name) {
            const member: unknown = Reflect.get(target, name);
            if (typeof member !== "function") return member;
            return (...given: readonly unknown[]) => {
              spend();
              return Reflect.apply(member, target, given);
            };
          },
        });
        return denoKvStore(limited, { prefix });
      },
    };
  });
});
