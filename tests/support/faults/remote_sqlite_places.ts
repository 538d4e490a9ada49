/**
 * D1 in miniflare and libSQL as places of simulations. Batches take no simulated time, and run one after another.
 *
 * @module
 */
import { type D1, d1KeyValue, d1Log, type D1Statement, d1Store, migrate as migrateD1 } from "@jizai/jizai/session/d1";
import { type LibsqlClient, libsqlKeyValue, libsqlLog, libsqlStore, migrate } from "@jizai/jizai/session/libsql";
import { folder } from "../../platforms/folder.ts";
import { libsqlServer } from "../../servers/libsql_server.ts";
import { miniflare } from "../../servers/miniflare.ts";
import { inOrder } from "./in_order.ts";
import type { Places } from "./places.ts";
import type { Kept } from "./storage.ts";

const tables = ["jizai_session", "jizai_session_piece", "jizai_log", "jizai_log_piece", "jizai_value"];

/** Executes the statements of a batch. */
type Batch = (statements: readonly (readonly [sql: string, ...values: unknown[]])[]) => Promise<
  readonly (readonly unknown[])[]
>;

/** Serves a D1 database. */
export async function d1Places(): Promise<Places> {
  return await placesOn((path) => miniflare("tests/servers/d1_batches.ts", path), async (batch) => {
    const values = new WeakMap<D1Statement, readonly [sql: string, ...values: unknown[]]>();
    function statement(...given: readonly [sql: string, ...values: unknown[]]): D1Statement {
      const prepared: D1Statement = { bind: (...more) => statement(given[0], ...more) };
      values.set(prepared, given);
      return prepared;
    }
    const database: D1 = {
      prepare: (sql) => statement(sql),
      batch: async (statements) =>
        (await batch(statements.map((each) => values.get(each) ?? [""]))).map((results) => ({ results })),
    };
    await migrateD1(database);
    return { store: d1Store(database), log: d1Log(database), keyValue: d1KeyValue(database) };
  });
}

/** Serves a libSQL database. */
export async function libsqlPlaces(): Promise<Places> {
  return await placesOn(libsqlServer, async (batch) => {
    const client: LibsqlClient = {
      batch: async (statements) =>
        (await batch(statements.map(({ sql, args }) => [sql, ...args]))).map((rows) => ({ rows })),
    };
    await migrate(client);
    return { store: libsqlStore(client), log: libsqlLog(client), keyValue: libsqlKeyValue(client) };
  });
}

async function placesOn(
  serve: (path: string) => Promise<AsyncDisposable & { request(path: string, init: RequestInit): Promise<Response> }>,
  adaptersOn: (batch: Batch) => Promise<Kept>,
): Promise<Places> {
  const disk = await folder();
  const server = await serve(disk.path);
  const inTurn = inOrder();
  const batch: Batch = (statements) =>
    inTurn(async () => {
      const response = await server.request("/", { method: "POST", body: JSON.stringify(statements) });
      if (!response.ok) throw new Error(await response.text());
      return await response.json();
    });
  const kept = await adaptersOn(batch);
  return {
    open: () => ({ open: () => kept, singleProcess: false }),
    async empty() {
      await batch(tables.map((table) => [`DELETE FROM ${table}`]));
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await disk[Symbol.asyncDispose]();
    },
  };
}
