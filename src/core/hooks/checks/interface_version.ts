/**
 * The version of the interface of middleware.
 *
 * @module
 */
import { type Middleware, nameOf } from "../middleware.ts";

/** The versions that this package accepts. A new version means that a middleware of the version before needs a change. */
const accepted = { oldest: 1, newest: 1 };

/** Throws a `TypeError` that names a middleware which was written for a version of the interface that this package does not accept. */
export function checkInterfaceVersions(use: readonly Middleware[], { oldest, newest } = accepted): void {
  for (const [index, middleware] of use.entries()) {
    const { interfaceVersion: version = newest } = middleware;
    if (version >= oldest && version <= newest) continue;
    const name = nameOf(middleware, index);
    const update = version > newest ? "@jizai/jizai" : `the package of "${name}"`;
    const expected = oldest === newest ? `expected ${newest}` : `expected ${oldest} to ${newest}`;
    throw new TypeError(
      `Cannot use "${name}": it was written for version ${version} of the interface; ${expected}, update ${update}`,
    );
  }
}
