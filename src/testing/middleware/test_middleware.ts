/**
 * `testMiddleware()`: the test of a middleware.
 *
 * @module
 */
import type { Middleware } from "../../core/middleware.ts";
import type { AnyTool } from "../../core/tool.ts";
import { checkIsolation, recordRun, runScenario, type TestSetup } from "./run_scenario.ts";
import { pointsOf } from "./checked_hooks.ts";
import { exclusively, findings } from "./findings.ts";
import { defaultScenarios } from "./scenarios.ts";
import { disturbancesAt } from "./disturbances.ts";

/** Options of `testMiddleware()`. */
export interface TestOptions<V = unknown> {
  /** The vars of the runs. */
  readonly vars?: V;
  /** Tools beside those of the test, for a middleware that expects them. */
  readonly tools?: readonly AnyTool<V>[];
  /** Calls that the model makes beside those of the test, as `[name, input]`. */
  readonly calls?: readonly (readonly [name: string, input: unknown])[];
  /** Middleware that it requires, which are placed before it. */
  readonly use?: readonly Middleware<V>[];
  /** Whether it shares data between runs on purpose, such as a cache. Default: false. */
  readonly shares?: boolean;
  /** Milliseconds that one run may take. Default: 5,000. */
  readonly time?: number;
  /** Returns the time for `ctx.run.now()`, in milliseconds since 1970. Default: the time at which the test begins, so a middleware that waits for a later time needs `Date.now`. */
  readonly now?: () => number;
}

/**
 * Tests a middleware at every point that it hooks, with failures, stops, pauses, parallel calls and a second entry, alone and beside other runs.
 * `make` creates a new one for every agent. Timers are real: give it short ones. `Date` is another one for some milliseconds.
 *
 * Throws an `Error` that names every law it breaks, when, and the fix. A middleware
 * - passes on the results and errors of the inner layers, unless it answers itself;
 * - passes on what ends or pauses a run;
 * - calls `next()` as the point allows, and awaits it: again only at `model`, and at `execute` for a tool with `idempotent: true`;
 * - changes nothing that it was given: contexts, requests, messages, calls and results are frozen;
 * - streams the text of the response that it returns: clients read a text in the deltas that is changed only in the response;
 * - leaves the transcript valid;
 * - leaves no listener and no timer behind;
 * - stops when its signal aborts;
 * - keeps one run apart from another: what belongs to a run is in its `state()`, not in the closure or the module;
 * - reads the time with `ctx.run.now()`, if a result, a request or an event depends on it.
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
  { vars, use = [], tools = [], calls = [], shares = false, time = 5_000, now = fixedClock() }: TestOptions<V> = {},
): Promise<void> {
  const setup = { make, use, tools, calls, time, now, vars: frozenCopy(vars) } as TestSetup; // the type of the options requires the vars that it needs
  const found = findings();
  const sample = setup.make();
  await exclusively(async () => {
    const first = await recordRun(setup, () => {}); // before a module keeps anything; the plain run reports the broken laws
    for (const scenario of [...defaultScenarios, ...pointsOf(sample).flatMap(disturbancesAt)]) {
      if (!await runScenario(scenario, setup, found.in(scenario.name))) return; // the other scenarios would take too long as well
    }
    const report = found.in("in several runs");
    if (!shares) await checkIsolation(setup, first, (law, ...rest) => law !== "streams" && report(law, ...rest)); // a plain run has reported it
  });
  const report = found.report(sample.name ?? "the middleware", { vars: vars === undefined });
  if (report !== "") throw new Error(report);
}

function fixedClock(): () => number {
  const time = Date.now();
  return () => time;
}

/** Returns a frozen copy of plain vars. */
function frozenCopy(vars: unknown): unknown {
  const plain = typeof vars === "object" && vars !== null && Object.getPrototypeOf(vars) === Object.prototype;
  return plain ? Object.freeze({ ...vars }) : vars;
}
