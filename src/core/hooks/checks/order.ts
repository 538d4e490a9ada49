/**
 * The order of middleware: the check of the given order, and the sort by declarations.
 *
 * @module
 */
import { type Middleware, nameOf } from "../middleware.ts";

/** Returns `use`. Throws a `TypeError` that names both middleware and the fix if it breaks an order that one of them declares. */
export function checkOrder(use: readonly Middleware[]): readonly Middleware[] {
  for (const [outer, inner] of declaredPairs(use)) {
    if (outer < inner) continue;
    const [first, last] = namesOf(use, [outer, inner]);
    throw new TypeError(`Cannot use "${last}" before "${first}": put ${first}() first in use`);
  }
  return use;
}

/** Returns `use` in the order that `after` and `before` declare, and otherwise in the given order. Throws a `TypeError` that names the middleware of a cycle. */
export function sortByDeclaration(use: readonly Middleware[]): readonly Middleware[] {
  const pairs = declaredPairs(use);
  const rest = [...use.keys()];
  const sorted: number[] = [];
  while (rest.length > 0) {
    const isFree = (index: number) => !pairs.some(([outer, inner]) => inner === index && rest.includes(outer));
    const place = rest.findIndex(isFree);
    if (place < 0) throw cycleError(use, rest, pairs);
    sorted.push(...rest.splice(place, 1));
  }
  return sorted.flatMap((index) => use.slice(index, index + 1));
}

/** The places of two middleware: the first must stand outside of the second. */
type Pair = readonly [outer: number, inner: number];

/** Returns the order that the middleware declare. Throws a `TypeError` for a name that is missing or not unique. */
function declaredPairs(use: readonly Middleware[]): readonly Pair[] {
  const names = use.map(({ name }) => name);
  return use.flatMap((middleware, index) => {
    const { after = [], before = [], requires = [] } = middleware;
    const name = nameOf(middleware, index);
    for (const other of [...after, ...before, ...requires]) {
      if (names.indexOf(other) === names.lastIndexOf(other)) continue;
      throw new TypeError(
        `Cannot use "${name}" with two middleware named "${other}": expected one, give one another name`,
      );
    }
    for (const other of requires) {
      if (!names.includes(other)) {
        throw new TypeError(`Cannot use "${name}" without "${other}": add ${other}() to use`);
      }
    }
    const outer = after.map((other): Pair => [names.indexOf(other), index]);
    const inner = before.map((other): Pair => [index, names.indexOf(other)]);
    return [...outer, ...inner].filter((pair) => !pair.includes(-1)); // an order with a middleware that is not used
  });
}

/** Returns the error for middleware of which each must stand after another one. */
function cycleError(use: readonly Middleware[], rest: readonly number[], pairs: readonly Pair[]): TypeError {
  const path: number[] = [];
  let at: number | undefined = rest[0];
  while (at !== undefined && !path.includes(at)) {
    path.unshift(at);
    at = pairs.find(([outer, inner]) => inner === path[0] && rest.includes(outer))?.[0];
  }
  const cycle = path.slice(0, path.findIndex((index) => index === at) + 1);
  const chain = namesOf(use, [...cycle, ...cycle.slice(0, 1)]).map((name) => `"${name}"`).join(" before ");
  return new TypeError(`Cannot order the middleware: ${chain}; remove one of these declarations`);
}

function namesOf(use: readonly Middleware[], places: readonly number[]): readonly string[] {
  return places.map((place) => nameOf(use[place] ?? {}, place));
}
