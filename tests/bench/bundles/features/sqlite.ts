/** A served agent whose sessions and logs are in SQLite. The database comes from the platform, so it is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type SqliteDatabase, sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import { options } from "../assistant.ts";

export const server = (database: SqliteDatabase) =>
  serve(agent(options), { store: sqliteStore(database), log: sqliteLog(database) });

export default serve(agent(options));
