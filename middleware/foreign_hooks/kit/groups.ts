/**
 * Groups of calls, as the home systems run them.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";

/** Returns `groups` for a middleware: each call runs alone, with its hooks around it, unless its tool says that it may overlap with others. */
export function separateCalls(): Required<Pick<Middleware, "groups">> {
  return { groups: ({ parallel }) => parallel ? "parallel" : "alone" };
}
