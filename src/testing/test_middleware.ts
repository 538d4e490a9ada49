/**
 * The test that any middleware has to pass.
 *
 * @module
 */
import type { Middleware } from "../core/points.ts";
import type { AnyTool } from "../core/tool.ts";
import { playApart } from "./apart.ts";
import { pointsOf } from "./inspect.ts";
import { findings } from "./laws.ts";
import { type Kit, play } from "./play.ts";
import { usual } from "./scenarios.ts";
import { troublesAt } from "./troubles.ts";
import { alone } from "./watch.ts";

/** What a middleware is tested with. */
export interface TestOptions<V = unknown> {
  /** What the middleware reads as `ctx.vars`. */
  readonly vars?: V;
  /** Tools beside those of the test, for a middleware that knows them by name. */
  readonly tools?: readonly AnyTool<V>[];
  /** Calls that the model makes beside those of the test, as `[name, input]`. */
  readonly calls?: readonly (readonly [name: string, input: unknown])[];
  /** What it requires: middleware that stand before it. */
  readonly use?: readonly Middleware<V>[];
  /** Whether it keeps something from one run for another on purpose, such as a cache. Default: false. */
  readonly shares?: boolean;
  /** How long one run may take, in milliseconds. Default: 5,000. */
  readonly time?: number;
}

/**
 * Runs a middleware through every point that it hooks, with failures, stops, pauses, parallel calls and a second entry, alone and beside other runs.
 * `make` makes a new one for every agent. Times are real, so give it short ones, and a clock that stands still where it tells the time.
 *
 * Throws an `Error` that names every law it breaks, and when. A middleware
 * - lets what lies beneath come through: answers and failures as they are, unless it answers itself;
 * - lets what ends or pauses a run come through;
 * - calls `next()` as the point allows, and awaits it;
 * - changes nothing that it was given: contexts, requests, messages, calls and results are frozen;
 * - leaves the transcript valid;
 * - leaves no listener and no timer behind;
 * - stops when it is told to;
 * - keeps one run apart from another: what belongs to a run is in its `state()`, not in the closure.
 *
 * ```ts
 * import { mapText, type Middleware } from "@jizai/jizai";
 * import { testMiddleware } from "@jizai/jizai/testing";
 * import { assertRejects } from "@std/assert";
 *
 * const good = (): Middleware => ({
 *   name: "good",
 *   tool: async (ctx, next) => mapText(await next(), (text) => `[OK] ${text}`),
 * });
 * await testMiddleware(good);
 *
 * const bad = (): Middleware => ({
 *   name: "bad",
 *   async tool(ctx, next) {
 *     const result = await next();
 *     Object.assign(result, { parts: [] });
 *     return result;
 *   },
 * });
 * await assertRejects(() => testMiddleware(bad), Error, "changes nothing that it was given");
 * ```
 */
export async function testMiddleware<V = unknown>(
  make: () => Middleware<V>,
  { vars, use = [], tools = [], calls = [], shares = false, time = 5_000 }: TestOptions<V> = {},
): Promise<void> {
  const kit = { make, use, tools, calls, time, vars: lent(vars) } as Kit; // whoever needs vars is given them
  const found = findings();
  const sample = kit.make();
  await alone(async () => {
    for (const scenario of [...usual, ...pointsOf(sample).flatMap(troublesAt)]) {
      if (!await play(scenario, kit, found.in(scenario.name))) return; // it would be late everywhere
    }
    if (!shares) await playApart(kit, found.in("in several runs"));
  });
  const report = found.report(sample.name ?? "the middleware");
  if (report !== "") throw new Error(report);
}

/** Vars that cannot be written to, while the caller's own stay as they are. */
function lent(vars: unknown): unknown {
  const plain = typeof vars === "object" && vars !== null && Object.getPrototypeOf(vars) === Object.prototype;
  return plain ? Object.freeze({ ...vars }) : vars;
}
