/** A served agent whose sessions are in Postgres. The driver is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { options } from "../assistant.ts";

export const server = (sql: PostgresSql) => serve(agent(options), { store: postgresStore(sql) });

export default serve(agent(options));
