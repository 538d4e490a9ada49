/**
 * What turns, calls and hooks cost, in deltas of the floor.
 *
 * @module
 */
import { compose } from "../../src/core/onion.ts";
import { lawOf } from "../../src/core/law.ts";
import { calling, passing, served, working } from "./load.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

/** What one hook costs that lets everything pass. */
export async function hookMeasure(): Promise<Measure> {
  const dispatches = 1_000;
  const law = lawOf<object, object, string, undefined>("execute", []);
  const core = () => Promise.resolve("ok");
  const hook = async (_: object, next: () => Promise<string>) => await next();
  const hooks = Array.from({ length: 10 }, (_, index) => ({ name: `m${index}`, hook }));
  const dispatch = (onion: ReturnType<typeof compose<object, object, string, undefined>>) => async () => {
    for (let index = 0; index < dispatches; index++) await onion({}, undefined);
  };
  const time = await medians({
    one: dispatch(compose(hooks.slice(0, 1), core, law)),
    ten: dispatch(compose(hooks, core, law)),
  }, { rounds: 60, warmUp: 20 });
  return { what: "a hook call", figure: (time.ten - time.one) / 9 / dispatches, budget: 0.2, unit: "µs" };
}

/** What a turn with one call costs, without hooks and with ten at every point. `delta` is what one costs at the floor. */
export async function turnMeasures(delta: number): Promise<readonly Measure[]> {
  const turns = 40;
  const time = await medians({
    none: served(calling(1, 0), working()),
    bare: served(calling(1, turns), working()),
    noneBeneath: served(calling(1, 0), { ...working(), use: passing }),
    beneath: served(calling(1, turns), { ...working(), use: passing }),
  }, { rounds: 60, warmUp: 20 });
  const bare = time.bare - time.none;
  const beneath = time.beneath - time.noneBeneath;
  return [
    { what: "a turn with one call", figure: bare / turns / delta, budget: 12, unit: "deltas" },
    { what: "... beneath ten hooks at every point", figure: beneath / bare, budget: 2, unit: "x" },
  ];
}

/** What calls cost that are made at once. */
export async function callMeasures(delta: number): Promise<readonly Measure[]> {
  const rest = () => new Promise<string>((resolve) => setTimeout(() => resolve("ok"), 20));
  const { resting } = await medians({ resting: served(calling(64), working(rest)) }, { rounds: 15, warmUp: 5 });
  const time = await medians({
    ten: served(calling(10), working()),
    thousand: served(calling(1_000), working()),
  }, { rounds: 60, warmUp: 20 });
  const many = await medians({ calls: served(calling(10_000), working()) }, { rounds: 7, warmUp: 1 });
  const call = (time.thousand - time.ten) / 990;
  const ofMany = (many.calls - time.thousand) / 9_000;
  return [
    { what: "64 parallel calls of 20 ms", figure: resting / 1_000, budget: 23, unit: "ms" },
    { what: "one of 1,000 parallel calls", figure: call / delta, budget: 5, unit: "deltas" },
    { what: "... from 1,000 to 10,000 beside from 10 to 1,000", figure: ofMany / call, budget: 1.25, unit: "x" },
  ];
}
