/**
 * Disturbances: the acts of other hooks that a middleware has to endure at one point.
 *
 * @module
 */
import {
  cancelled,
  continueWith,
  declined,
  denied,
  deny,
  refused,
  reply,
  skip,
  skipped,
} from "../../core/hook_answers.ts";
import { callPoints } from "../../core/each_hook.ts";
import { isInterrupt } from "../../core/interrupt.ts";
import type { Hook } from "../../core/onion.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { Change, Scope } from "../../core/scope.ts";
import type { Point } from "../../protocol/event.ts";
import { expectAborted, half, type Participants, type Scenario, type Scene } from "./scenarios.ts";

type AnyHook = Hook<Scope, Change, unknown>;

/** A disturbance, and the hook that causes it. */
interface Disturbance {
  readonly act: string;
  readonly from: "outer" | "inner";
  readonly law?: "unwinds" | "stops";
  /** Whether it happens after `next()` has returned. Default: false. */
  readonly late?: boolean;
  readonly hook: (scene: Scene, point: Point) => AnyHook;
}

const fail = ({ trouble }: Scene): AnyHook => () => Promise.reject(trouble);
const end: AnyHook = ({ run }) => Promise.reject(run.end("enough"));
const pause: AnyHook = ({ run }) => Promise.reject(run.pause("Go on?"));

const failures: readonly Disturbance[] = [
  { act: "throws", from: "inner", hook: fail },
  { act: "throws late", from: "inner", late: true, hook: fail },
];

const interrupts: readonly Disturbance[] = [
  { act: "ends the run", from: "inner", law: "unwinds", hook: () => end },
  { act: "ends the run late", from: "inner", law: "unwinds", late: true, hook: () => end },
  { act: "pauses the run", from: "inner", law: "unwinds", hook: () => pause },
];

const stops: readonly Disturbance[] = [
  {
    act: "is stopped",
    from: "inner",
    law: "stops",
    hook: (scene, point) => ({ signal }, next) => {
      scene.stop();
      expectAborted(signal, scene, point);
      return next();
    },
  },
  {
    act: "is stopped late",
    from: "inner",
    law: "stops",
    late: true,
    hook: ({ stop }) => () => Promise.resolve(stop()),
  },
  {
    act: "is stopped",
    from: "outer",
    law: "stops",
    hook: ({ stop }) => (_, next) => {
      stop();
      return next();
    },
  },
  {
    act: "is stopped meanwhile",
    from: "outer",
    law: "stops",
    hook: ({ stop }) => (_, next) => {
      const result = next();
      stop();
      return result;
    },
  },
];

const twice: Disturbance = {
  act: "calls next() twice",
  from: "outer",
  hook: () => async (_, next) => {
    await next();
    return await next();
  },
};

/** The answer of a hook that does not call `next()`. */
const answers: { readonly [P in Point]?: () => unknown } = {
  session: () => refused("not now"),
  input: () => refused("not now"),
  prompt: () => cancelled("not now"),
  turn: () => ({ response: reply(""), results: [] }),
  model: () => reply(""),
  tool: () => denied("not now"),
  approval: () => deny("not now"),
  execute: () => skipped("not now"),
  stop: () => continueWith("Go on."),
  compact: () => declined("not now"),
  subagent: () => refused("not now"),
  error: () => skip(),
};

/** The setup that is needed to reach a point that a plain run does not reach. */
const setups: { readonly [P in Point]?: (scene: Scene) => Participants } = {
  compact: () => ({ limits: { context: 1 } }),
  abort: (scene) => ({ first: { reads: half(scene) } }),
};

/** Returns a scenario for each disturbance at `point`. */
export function disturbancesAt(point: Point): readonly Scenario[] {
  const answer = answers[point];
  const repeatable = point === "model" || point === "execute";
  const disturbances: readonly Disturbance[] = [
    ...failures,
    ...(answer ? [{ act: "answers", from: "inner", hook: () => () => Promise.resolve(answer()) } as const] : []),
    ...(point === "abort" ? [] : [...interrupts, ...stops]), // a cleanup cannot be ended or stopped
    ...(repeatable ? [twice] : []),
  ];
  const scenarios = disturbances.map(({ act, from, law, late = false, hook }): Scenario => ({
    name: `when an ${from} hook ${act} at ${point}`,
    ...(law && { law }),
    cast: (scene) => ({ ...setups[point]?.(scene), [from]: once(point, scene, hook(scene, point), late) }),
  }));
  return repeatable ? [...scenarios, retried(point)] : scenarios;
}

function retried(point: Point): Scenario {
  return {
    name: `when an outer hook tries again at ${point}`,
    cast: (scene) => ({ outer: at(point, tryTwice), inner: once(point, scene, fail(scene)) }),
  };
}

const tryTwice: AnyHook = async (_, next) => {
  try {
    return await next();
  } catch (error) {
    if (isInterrupt(error)) throw error;
    return await next();
  }
};

/** Returns a middleware with a hook at `point` that acts once. */
function once(point: Point, scene: Scene, hook: AnyHook, late = false): Middleware {
  let remaining = callPoints.includes(point) ? 2 : 1; // the second call, so that the first one waits at its gate
  return at(point, async (ctx, next) => {
    if (--remaining !== 0) return await next();
    const result = late ? await next() : undefined;
    scene.happened = true;
    const acted = await hook(ctx, next);
    return late ? result : acted;
  });
}

function at(point: Point, hook: AnyHook): Middleware {
  return { [point]: hook } as Middleware; // what it answers is made for the point: see `answers`
}
