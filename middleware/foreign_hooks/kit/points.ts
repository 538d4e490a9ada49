/**
 * The points of the lifecycle that an adapter uses.
 *
 * @module
 */
import type { Middleware, Point } from "../../../mod.ts";
import { points } from "../../../src/core/kit.ts";

/** For each point, the names of the hooks that need it. */
export type Needs<Name extends string> = Readonly<Partial<Record<Point, readonly Name[]>>>;

/** Returns `middleware` without the hooks at points that no configured hook needs. */
export function atNeededPoints<Name extends string>(
  { name, inherit, ...hooks }: Middleware & { readonly name: string; readonly inherit: boolean },
  needs: Needs<Name>,
  has: (name: Name) => boolean,
): Middleware {
  const used = points.filter((point) => needs[point]?.some(has));
  return { name, inherit, ...Object.fromEntries(used.map((point) => [point, hooks[point]])) };
}
