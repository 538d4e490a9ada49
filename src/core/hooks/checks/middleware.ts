/**
 * The checks of the values in `use`.
 *
 * @module
 */
import { points } from "../each_hook.ts";
import { type Middleware, nameOf } from "../middleware.ts";
import { expectNoPromise } from "../policy.ts";
import { checkHookNames } from "./hook_names.ts";

/** The version of the interface of middleware. Increase it if a change breaks existing middleware. */
const interfaceVersion = 1;

/** Throws a `TypeError` if `use` is not a list of middleware whose hooks are functions of points, written for this version of the interface. */
export function checkMiddleware(use: readonly Middleware[]): void {
  if (!Array.isArray(use)) throw new TypeError("Cannot create the agent: expected a list of middleware in `use`");
  for (const [index, middleware] of use.entries()) {
    checkShape(middleware, index);
    const name = nameOf(middleware, index);
    const subject = `Cannot use "${name}"`;
    const point = points.find((point) => middleware[point] !== undefined && typeof middleware[point] !== "function");
    if (point) throw new TypeError(`${subject}: its \`${point}\` is not a function; expected a hook`);
    const { interfaceVersion: version = interfaceVersion } = middleware;
    if (version !== interfaceVersion) {
      const update = version > interfaceVersion ? "@jizai/jizai" : `the package of "${name}"`;
      const why = `it was written for version ${version} of the interface`;
      throw new TypeError(`${subject}: ${why}; expected ${interfaceVersion}, update ${update}`);
    }
    checkHookNames(subject, middleware);
  }
}

/** Throws a `TypeError` if a value in `use` is not an object that may have hooks. */
function checkShape(given: unknown, index: number): void {
  if (typeof given === "function" && given.name !== "") {
    throw new TypeError(`Cannot use "${given.name}": call it, as ${given.name}()`);
  }
  const operation = `Cannot use use[${index}]`;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${operation}: expected a middleware, an object with hooks`);
  }
  expectNoPromise(operation, given);
}
