/**
 * The check of the values in `use`.
 *
 * @module
 */
import { points } from "../each_hook.ts";
import { type Middleware, nameOf } from "../middleware.ts";
import { expectNoPromise } from "../policy.ts";

/** Throws a `TypeError` if `use` is not a list of middleware whose hooks are functions. */
export function checkMiddleware(use: readonly Middleware[]): void {
  if (!Array.isArray(use)) throw new TypeError("Cannot create the agent: expected a list of middleware in `use`");
  for (const [index, middleware] of use.entries()) {
    const given: unknown = middleware;
    if (typeof given === "function" && given.name !== "") {
      throw new TypeError(`Cannot use "${given.name}": call it, as ${given.name}()`);
    }
    const operation = `Cannot use use[${index}]`;
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      throw new TypeError(`${operation}: expected a middleware, an object with hooks`);
    }
    expectNoPromise(operation, given);
    const point = points.find((point) => middleware[point] !== undefined && typeof middleware[point] !== "function");
    if (point) {
      throw new TypeError(
        `Cannot use "${nameOf(middleware, index)}": its \`${point}\` is not a function; expected a hook`,
      );
    }
  }
}
