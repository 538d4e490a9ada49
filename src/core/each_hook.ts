/**
 * Middleware made of middleware: something around every hook, whatever its point.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";
import type { Hook } from "./onion.ts";
import type { Middleware } from "./points.ts";
import type { Change, Scope } from "./scope.ts";

/** Every point. */
export const points = [
  "session",
  "prompt",
  "turn",
  "model",
  "tool",
  "approval",
  "execute",
  "stop",
  "compact",
  "subagent",
  "error",
  "abort",
] as const satisfies readonly Point[];

/** Those around one call. */
export const ofOneCall: readonly Point[] = ["tool", "approval", "execute"];

const ofNoPoint = ["name", "after", "requires", "inherit", "tools"] as const;

/** What makes a hook of a hook. */
export type WrapHook<V> = <C extends Scope<V>, D extends Change, R>(hook: Hook<C, D, R>, point: Point) => Hook<C, D, R>;

/** `middleware` with `wrap` around each of its hooks. All else stays as it is. */
export function eachHook<V>(middleware: Middleware<V>, wrap: WrapHook<V>): Middleware<V> {
  const kept = ofNoPoint.map((key) => [key, middleware[key]]);
  const hooks = points.map((point) => {
    const hook = middleware[point] as Hook<Scope<V>, Change, unknown> | undefined; // what a hook takes and gives stays as it is
    return [point, hook && wrap(hook.bind(middleware), point)];
  });
  return Object.fromEntries([...kept, ...hooks].filter(([, value]) => value !== undefined));
}
