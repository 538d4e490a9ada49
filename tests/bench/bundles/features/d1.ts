/** A served agent whose sessions are in D1. The database comes from the platform, so it is not part of the bundle. */
import { agent, serve } from "@jizai/jizai";
import { type D1, d1Store } from "@jizai/jizai/session/d1";
import { options } from "../assistant.ts";

export const server = (database: D1) => serve(agent(options), { store: d1Store(database) });

export default serve(agent(options));
