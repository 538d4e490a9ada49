/**
 * Troubles: what the hooks above and beneath a middleware may do to it at one point.
 *
 * @module
 */
import { cancelled, declined, denied, deny, goOn, refused, reply, skip, skipped } from "../core/answers.ts";
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
  readonly hook: (scene: Scene, point: Point) => AnyHook;
}

const failures: readonly Trouble[] = [
  { what: "throws", from: "beneath", hook: ({ trouble }) => () => Promise.reject(trouble) },
  { what: "throws late", from: "beneath", hook: ({ trouble }) => late(() => Promise.reject(trouble)) },
];

const interrupts: readonly Trouble[] = [
  { what: "ends the run", from: "beneath", law: "unwinds", hook: () => end },
  { what: "ends the run late", from: "beneath", law: "unwinds", hook: () => late(end) },
  {
    what: "pauses the run",
    from: "beneath",
    law: "unwinds",
    hook: () => ({ run }) => Promise.reject(run.pause("Go on?")),
  },
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
  { what: "is stopped late", from: "beneath", law: "stops", hook: ({ stop }) => late(() => Promise.resolve(stop())) },
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
  stop: () => goOn("Go on."),
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
  const scenarios = troubles.map(({ what, from, law, hook }): Scenario => ({
    name: `when a hook ${from} it ${what} at ${point}`,
    ...(law && { law }),
    cast: (scene) => ({ ...ways[point]?.(scene), [from]: at(point, once(scene, hook(scene, point))) }),
  }));
  return again ? [...scenarios, retried(point)] : scenarios;
}

function retried(point: Point): Scenario {
  return {
    name: `when a hook above it tries again at ${point}`,
    cast: (scene) => ({
      above: at(point, tryTwice),
      beneath: at(point, once(scene, () => Promise.reject(scene.trouble))),
    }),
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

const end: AnyHook = ({ run }) => Promise.reject(run.end("enough"));

/** A hook that acts when what lies beneath it is done. */
function late(act: AnyHook): AnyHook {
  return async (ctx, next) => {
    const result = await next();
    await act(ctx, next);
    return result;
  };
}

/** A hook that acts the first time, and then passes. */
function once(scene: Scene, hook: AnyHook): AnyHook {
  let acted = false;
  return (ctx, next) => {
    if (acted) return next();
    acted = true;
    scene.happened = true;
    return hook(ctx, next);
  };
}

function at(point: Point, hook: AnyHook): Middleware {
  return { [point]: hook } as Middleware; // what it answers is made for the point: see `answers`
}
