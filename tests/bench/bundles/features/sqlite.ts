/** A served agent whose sessions are in SQLite. The database comes from the platform, so it is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type SqliteDatabase, sqliteStore } from "@jizai/jizai/session/sqlite";
import { options } from "../assistant.ts";

export const server = (database: SqliteDatabase) => serve(agent(options), { store: sqliteStore(database) });

export default serve(agent(options));
