/** A served agent whose sessions and logs are in D1. The database comes from the platform, so it is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type D1, d1Log, d1Store } from "@jizai/jizai/session/d1";
import { options } from "../assistant.ts";

export const server = (database: D1) => serve(agent(options), { store: d1Store(database), log: d1Log(database) });

export default serve(agent(options));
