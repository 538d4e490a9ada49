/** A served agent whose sessions and logs are in Postgres. The driver is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { postgresLog, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { options } from "../assistant.ts";

export const server = (sql: PostgresSql) => serve(agent(options), { store: postgresStore(sql), log: postgresLog(sql) });

export default serve(agent(options));
