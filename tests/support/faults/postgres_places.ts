/**
 * Postgres as a place of simulations: its queries take no simulated time, and run one after another.
 *
 * @module
 */
import { migrate, postgresLog, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import postgres from "postgres";
import { postgresServer } from "../../servers/postgres_server.ts";
import { outside } from "../simulation.ts";
import type { Place } from "./storage.ts";

/** A server whose database is a place. It ends when it is disposed of. */
export interface PostgresPlaces extends AsyncDisposable {
  /** Opens the database. */
  open(): Place;
  /** Deletes all sessions and logs. */
  empty(): Promise<void>;
}

/** Starts a server. Returns undefined, and prints the reason, where Postgres is not installed. */
export async function postgresPlaces(): Promise<PostgresPlaces | undefined> {
  const server = await postgresServer();
  if (!server) {
    console.log("Left out: Postgres is not installed (apt-get install postgresql)");
    return undefined;
  }
  const sql = postgres(server.url, { onnotice: () => {}, max: 1, max_lifetime: null });
  await migrate(sql);
  const gate = oneByOne(sql);
  return {
    open: () => ({
      open: () => ({ store: postgresStore(gate), log: postgresLog(gate, { listen: false }) }),
      singleProcess: false,
    }),
    async empty() {
      await sql.unsafe("TRUNCATE jizai_session, jizai_log, jizai_log_lines");
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 0 });
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Returns a driver that executes one query after another, in the order of the simulation. */
function oneByOne(sql: PostgresSql): PostgresSql {
  let last: Promise<unknown> = Promise.resolve();
  return {
    unsafe(...query) {
      const done = last.then(() => outside(async () => await sql.unsafe(...query)));
      last = done.catch(() => {}); // the caller receives the error
      return done;
    },
    listen: (...given) => sql.listen(...given),
  };
}
