/**
 * The check for misspelt hooks.
 *
 * @module
 */
import { points } from "../each_hook.ts";
import type { Middleware } from "../middleware.ts";

/** Throws a `TypeError` that starts with `subject` and suggests a point if a function of a middleware has a name that resembles one. */
export function checkHookNames(subject: string, middleware: Middleware): void {
  for (const [key, value] of Object.entries(middleware)) {
    if (typeof value !== "function" || points.some((point) => point === key)) continue;
    const plain = key.replace(/^(on|before|after|pre|post|wrap)_?/i, "").toLowerCase();
    const point = points.find((point) => distance(point, plain) <= (point.length > 4 ? 2 : 1));
    if (point) throw new TypeError(`${subject}: there is no point "${key}"; expected "${point}"`);
  }
}

/** Returns the number of characters to insert, delete or replace to make `b` of `a`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...a].entries()) {
    const next = [line + 1];
    for (const [column, other] of [...b].entries()) {
      const [left = 0, above = 0, diagonal = 0] = [next[column], row[column + 1], row[column]];
      next.push(Math.min(left + 1, above + 1, diagonal + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? a.length;
}
