/**
 * Troubles: what the hooks above and beneath a middleware may do to it at one point.
 *
 * @module
 */
import { cancelled, continueWith, declined, denied, deny, refused, reply, skip, skipped } from "../core/answers.ts";
import { ofOneCall } from "../core/each_hook.ts";
import { isInterrupt } from "../core/interrupt.ts";
import type { Hook } from "../core/onion.ts";
import type { Middleware } from "../core/points.ts";
import type { Change, Scope } from "../core/scope.ts";
import type { Point } from "../protocol/event.ts";
import { type Cast, expectAborted, half, type Scenario, type Scene } from "./scenarios.ts";

type AnyHook = Hook<Scope, Change, unknown>;

/** A trouble: what it is, where it comes from, and what a hook does about it. */
interface Trouble {
  readonly what: string;
  readonly from: "above" | "beneath";
  readonly law?: "unwinds" | "stops";
  /** Whether it comes when what lies beneath the hook is done. Default: false. */
  readonly late?: boolean;
  readonly hook: (scene: Scene, point: Point) => AnyHook;
}

const fail = ({ trouble }: Scene): AnyHook => () => Promise.reject(trouble);
const end: AnyHook = ({ run }) => Promise.reject(run.end("enough"));
const pause: AnyHook = ({ run }) => Promise.reject(run.pause("Go on?"));

const failures: readonly Trouble[] = [
  { what: "throws", from: "beneath", hook: fail },
  { what: "throws late", from: "beneath", late: true, hook: fail },
];

const interrupts: readonly Trouble[] = [
  { what: "ends the run", from: "beneath", law: "unwinds", hook: () => end },
  { what: "ends the run late", from: "beneath", law: "unwinds", late: true, hook: () => end },
  { what: "pauses the run", from: "beneath", law: "unwinds", hook: () => pause },
];

const stops: readonly Trouble[] = [
  {
    what: "is stopped",
    from: "beneath",
    law: "stops",
    hook: (scene, point) => ({ signal }, next) => {
      scene.stop();
      expectAborted(signal, scene, point);
      return next();
    },
  },
  {
    what: "is stopped late",
    from: "beneath",
    law: "stops",
    late: true,
    hook: ({ stop }) => () => Promise.resolve(stop()),
  },
  {
    what: "is stopped",
    from: "above",
    law: "stops",
    hook: ({ stop }) => (_, next) => {
      stop();
      return next();
    },
  },
  {
    what: "is stopped meanwhile",
    from: "above",
    law: "stops",
    hook: ({ stop }) => (_, next) => {
      const result = next();
      stop();
      return result;
    },
  },
];

const twice: Trouble = {
  what: "calls next() twice",
  from: "above",
  hook: () => async (_, next) => {
    await next();
    return await next();
  },
};

/** What a hook answers that asks nothing beneath it. */
const answers: { readonly [P in Point]?: () => unknown } = {
  session: () => refused("not now"),
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

/** What it takes to come by a point where a plain run does not. */
const ways: { readonly [P in Point]?: (scene: Scene) => Cast } = {
  compact: () => ({ limits: { context: 1 } }),
  abort: (scene) => ({ first: { reads: half(scene) } }),
};

/** Everything that may happen at `point`. */
export function troublesAt(point: Point): readonly Scenario[] {
  const answer = answers[point];
  const again = point === "model" || point === "execute";
  const troubles: readonly Trouble[] = [
    ...failures,
    ...(answer ? [{ what: "answers", from: "beneath", hook: () => () => Promise.resolve(answer()) } as const] : []),
    ...(point === "abort" ? [] : [...interrupts, ...stops]), // nothing ends or stops what is being cleaned up
    ...(again ? [twice] : []),
  ];
  const scenarios = troubles.map(({ what, from, law, late = false, hook }): Scenario => ({
    name: `when a hook ${from} it ${what} at ${point}`,
    ...(law && { law }),
    cast: (scene) => ({ ...ways[point]?.(scene), [from]: once(point, scene, hook(scene, point), late) }),
  }));
  return again ? [...scenarios, retried(point)] : scenarios;
}

function retried(point: Point): Scenario {
  return {
    name: `when a hook above it tries again at ${point}`,
    cast: (scene) => ({ above: at(point, tryTwice), beneath: once(point, scene, fail(scene)) }),
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

/** A middleware with a hook at `point` that acts once, and passes otherwise. */
function once(point: Point, scene: Scene, hook: AnyHook, late = false): Middleware {
  let left = ofOneCall.includes(point) ? 2 : 1; // for the second call, so that the first one is parked
  return at(point, async (ctx, next) => {
    if (--left !== 0) return await next();
    const result = late ? await next() : undefined;
    scene.happened = true;
    const acted = await hook(ctx, next);
    return late ? result : acted;
  });
}

function at(point: Point, hook: AnyHook): Middleware {
  return { [point]: hook } as Middleware; // what it answers is made for the point: see `answers`
}
