/**
 * D1 in miniflare and libSQL as places of simulations. Batches take no simulated time, and run one after another.
 *
 * @module
 */
import { type D1, d1KeyValue, type D1Statement, d1Store, migrate as migrateD1 } from "@jizai/jizai/session/d1";
import { type LibsqlClient, libsqlKeyValue, libsqlStore, migrate } from "@jizai/jizai/session/libsql";
import { folder } from "../../platforms/folder.ts";
import { type Batch, batchesOver } from "../../servers/batch_socket.ts";
import { libsqlBatches } from "../../servers/libsql_server.ts";
import { miniflare } from "../../servers/miniflare.ts";
import { inOrder } from "./in_order.ts";
import type { Places } from "./places.ts";
import type { Kept } from "./storage.ts";

const tables = [
  ...["jizai_value"],
  ...["jizai_journal", "jizai_journal_entry", "jizai_journal_event"],
];

/** Serves a D1 database. */
export async function d1Places(): Promise<Places> {
  return await placesOn(d1Batches, async (batch) => {
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
    return { store: d1Store(database), keyValue: d1KeyValue(database) };
  });
}

/** Serves a libSQL database. */
export async function libsqlPlaces(): Promise<Places> {
  return await placesOn(libsqlBatches, async (batch) => {
    const client: LibsqlClient = {
      batch: async (statements) =>
        (await batch(statements.map(({ sql, args }) => [sql, ...args]))).map((rows) => ({ rows })),
    };
    await migrate(client);
    return { store: libsqlStore(client), keyValue: libsqlKeyValue(client) };
  });
}

/** Serves a Worker that connects to `port`, and executes batches on its D1 database until the connection closes. */
async function d1Batches(path: string, port: number): Promise<void> {
  await using server = await miniflare("tests/servers/d1_batches.ts", path, { d1Persist: false });
  const response = await server.request("/", { method: "POST", body: `${port}` });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
}

async function placesOn(
  executeBatches: (path: string, port: number) => Promise<void>,
  adaptersOn: (batch: Batch) => Promise<Kept>,
): Promise<Places> {
  const disk = await folder();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const executed = executeBatches(disk.path, listener.addr.port).finally(() => listener.close());
  const socket = await listener.accept(); // rejects if the program ends before it connects
  socket.setNoDelay();
  const execute = batchesOver(socket);
  const inTurn = inOrder();
  const batch: Batch = (statements) => inTurn(() => execute(statements));
  const kept = await adaptersOn(batch);
  return {
    open: () => ({ open: () => kept, singleProcess: false }),
    async empty() {
      await batch(tables.map((table) => [`DELETE FROM ${table}`]));
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await executed;
      await disk[Symbol.asyncDispose]();
    },
  };
}
