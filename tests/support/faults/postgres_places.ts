/**
 * Postgres as a place of simulations: its queries take no simulated time, and run one after another.
 *
 * @module
 */
import { migrate, postgresKeyValue, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import postgres from "postgres";
import { time } from "../../../src/session/postgres/journal.ts";
import { postgresServer } from "../../servers/postgres_server.ts";
import { inOrder } from "./in_order.ts";
import type { Places } from "./places.ts";

/** Starts a server. Returns undefined where Postgres is not installed. */
export async function postgresPlaces(): Promise<Places | undefined> {
  const server = await postgresServer();
  if (!server) return undefined;
  const sql = postgres(server.url, { onnotice: () => {}, max: 1, max_lifetime: null, fetch_types: false });
  await migrate(sql);
  const inTurn = inOrder();
  const gate: PostgresSql = {
    unsafe(query, ...rest) {
      if (query === time) return Promise.resolve([{ now: Date.now() }]); // the simulated clock
      return inTurn(async () => await sql.unsafe(query, ...rest));
    },
    listen: (...given) => sql.listen(...given),
  };
  return {
    open: () => ({
      open: () => ({
        store: postgresStore(gate, { listen: false }),
        keyValue: postgresKeyValue(gate),
      }),
      singleProcess: false,
    }),
    async empty() {
      await sql.unsafe("TRUNCATE jizai_value, jizai_journal CASCADE");
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 0 });
      await server[Symbol.asyncDispose]();
    },
  };
}
