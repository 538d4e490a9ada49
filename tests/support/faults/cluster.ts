/**
 * Processes that serve one agent from one storage. A process that dies is replaced.
 *
 * @module
 */
import type { Busy, ClientGone } from "@jizai/jizai";
import type { Done, RandomAgent } from "../random_agent/agent.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import { type Fault, type Process, processOf, type Trace } from "./process.ts";
import type { Place } from "./storage.ts";

/** Processes. */
export interface Cluster {
  /** Returns a live process, or `undefined` if there is none at the moment. */
  any(): Process | undefined;
  /** The effects of tools, in every process. */
  readonly done: readonly Done[];
  /** The reported errors that no fault explains. */
  readonly errors: readonly unknown[];
  /** The number of times that each fault occurred. */
  readonly figures: Readonly<Record<Fault, number>>;
}

/** Options of `cluster()`. */
export interface ClusterOptions {
  readonly chance: Chance;
  readonly agent: RandomAgent;
  readonly place: Place;
  readonly trace: Trace;
  /** Milliseconds between two calls of `recover()` in each process. Default: it is not called. */
  readonly wakeEvery?: number;
}

/** Starts processes. */
export function cluster({ chance, agent, place, trace, wakeEvery }: ClusterOptions): Cluster {
  const { below, one } = chance;
  const singleProcess = place.singleProcess || below(2) === 0;
  const serving = {
    singleProcess,
    lease: one([5_000, 30_000]),
    busy: one<Busy>(["refuse", "queue", "replace"]),
    onClientGone: one<ClientGone>(["detach", "detach", "detach", "drain", "stop"]),
  };
  trace(`They serve with ${JSON.stringify(serving)}`);
  const done: Done[] = [];
  const errors: unknown[] = [];
  const figures = { fail: 0, delay: 0, die: 0 };
  const living = new Set<Process>();
  const often = 1 + below(4); // percent
  let begun = 0;

  function fate(): Fault | undefined {
    if (below(100) >= often) return undefined;
    const fault = one<Fault>(["fail", "fail", "delay", "delay", "die"]);
    if (fault === "die" && figures.die === 6) return undefined; // at most 6 deaths
    figures[fault]++;
    return fault;
  }

  function begin(): void {
    const name = `Process ${++begun}`;
    trace(`${name} begins`);
    const process = processOf({
      ...{ chance, agent, serving, done, wakeEvery, fate },
      kept: place.open(),
      onError: (error) => errors.push(error),
      onDeath() {
        living.delete(process);
        sleep(below(3) * below(2_000)).then(begin); // the promise never rejects
      },
      trace: (what) => trace(`${name}: ${what}`),
    });
    living.add(process);
  }

  for (let n = singleProcess ? 1 : 2; n > 0; n--) begin();
  return { any: () => [...living][below(living.size)], done, errors, figures };
}
