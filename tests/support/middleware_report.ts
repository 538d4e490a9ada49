/**
 * The reports of `testMiddleware()`, and the simplest middleware to test.
 *
 * @module
 */
import type { Middleware, Scope } from "@jizai/jizai";
import { points } from "@jizai/jizai/kit";
import { testMiddleware, type TestOptions } from "@jizai/jizai/testing";
import { assertRejects } from "@std/assert";

/** Returns a report without counts, line numbers and fixes. */
export async function reportOf<V>(make: () => Middleware<V>, options?: TestOptions<V>): Promise<readonly string[]> {
  return (await linesOf(make, options)).filter((line) => !line.startsWith("  "));
}

/** Returns the fixes in a report. */
export async function fixesOf<V>(make: () => Middleware<V>, options?: TestOptions<V>): Promise<readonly string[]> {
  return (await linesOf(make, options)).filter((line) => line.startsWith("  ")).map((line) => line.trim());
}

async function linesOf<V>(make: () => Middleware<V>, options?: TestOptions<V>): Promise<readonly string[]> {
  const { message } = await assertRejects(() => testMiddleware(make, options), Error);
  return message.replaceAll(/, and \d+ more/g, "").replaceAll(/ at file:\S+/g, "").split("\n");
}

/** A middleware with the same hook at every point. */
export function everywhere(hook: (ctx: Scope, next: () => Promise<never>) => Promise<never>): Middleware {
  return Object.fromEntries<unknown>([["name", "everywhere"], ...points.map((point) => [point, hook] as const)]);
}
