/**
 * The order of middleware: declared by name, checked when the agent is made.
 *
 * @module
 */
import { nameOf } from "./onions.ts";
import type { Middleware } from "./points.ts";

/** Throws a `TypeError` that names both middleware and the fix, where the order breaks what one of them declares. */
export function checkOrder(use: readonly Middleware[]): void {
  const names = use.map(({ name }) => name);
  use.forEach((middleware, index) => {
    const { after = [], requires = [] } = middleware;
    const name = nameOf(middleware, index);
    if (typeof middleware === "function") throw new TypeError(`Cannot use "${name}": call it, as ${name}()`);
    for (const other of requires) {
      if (!names.includes(other)) {
        throw new TypeError(`Cannot use "${name}" without "${other}": add ${other}() to use`);
      }
    }
    for (const other of after) {
      if (names.lastIndexOf(other) > index) {
        throw new TypeError(`Cannot use "${name}" before "${other}": put ${other}() first in use`);
      }
    }
  });
}
