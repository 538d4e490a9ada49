/**
 * Middleware made of middleware: something around every hook, whatever its point.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";
import type { Hook } from "./onion.ts";
import type { Middleware } from "./points.ts";
import type { Change, Scope } from "./scope.ts";

/** What makes a hook of a hook. */
export type WrapHook<V> = <C extends Scope<V>, D extends Change, R>(hook: Hook<C, D, R>, point: Point) => Hook<C, D, R>;

/** `middleware` with `wrap` around each of its hooks. Its name, its order and its tools stay as they are. */
export function eachHook<V>(middleware: Middleware<V>, wrap: WrapHook<V>): Middleware<V> {
  return Object.fromEntries(
    Object.entries(middleware).map(([key, value]) =>
      typeof value === "function" ? [key, wrap(value, key as Point)] : [key, value] // only hooks are functions
    ),
  );
}
