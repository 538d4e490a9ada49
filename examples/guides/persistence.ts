/**
 * The sessions of the guides, with the events of their runs: in memory. The guide "Databases" has the same file for each database.
 *
 * @module
 */
import { memory } from "@jizai/jizai";

/** The options of `serve()` that keep sessions and events. */
export const persistence = { store: memory() };
