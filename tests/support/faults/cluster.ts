/**
 * Processes that serve one agent from one place: for each that dies, another one comes.
 *
 * @module
 */
import type { Busy, ClientGone } from "@jizai/jizai";
import type { Done, RandomAgent } from "../random_agent/agent.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import { type Fault, type Process, processOf, type Tell } from "./process.ts";
import type { Place } from "./storage.ts";

/** Processes. */
export interface Cluster {
  /** One that lives; nothing where there is none at the moment. */
  any(): Process | undefined;
  /** The effects of tools, in every process. */
  readonly done: readonly Done[];
  /** Reported errors that no fault explains. */
  readonly errors: readonly unknown[];
  /** How often each thing has befallen one of them. */
  readonly figures: Readonly<Record<Fault, number>>;
}

/** The parts of a cluster. */
export interface ClusterOptions {
  readonly chance: Chance;
  readonly agent: RandomAgent;
  readonly place: Place;
  readonly tell: Tell;
}

/** Starts processes. */
export function cluster({ chance, agent, place, tell }: ClusterOptions): Cluster {
  const { below, one } = chance;
  const sole = place.sole || below(2) === 0;
  const serving = {
    sole,
    lease: one([5_000, 30_000]),
    busy: one<Busy>(["refuse", "queue", "replace"]),
    onClientGone: one<ClientGone>(["detach", "detach", "detach", "drain", "stop"]),
  };
  tell(`They serve with ${JSON.stringify(serving)}`);
  const done: Done[] = [];
  const errors: unknown[] = [];
  const figures = { fail: 0, delay: 0, die: 0 };
  const living = new Set<Process>();
  const often = 1 + below(4); // times in a hundred
  let begun = 0;

  function fate(): Fault | undefined {
    if (below(100) >= often) return undefined;
    const fault = one<Fault>(["fail", "fail", "delay", "delay", "die"]);
    if (fault === "die" && figures.die === 6) return undefined; // enough
    figures[fault]++;
    return fault;
  }

  function begin(): void {
    const name = `Process ${++begun}`;
    tell(`${name} begins`);
    const process = processOf({
      ...{ chance, agent, serving, done, fate },
      kept: place.open(),
      onError: (error) => errors.push(error),
      onDeath() {
        living.delete(process);
        sleep(below(3) * below(2_000)).then(begin); // it never rejects
      },
      tell: (what) => tell(`${name}: ${what}`),
    });
    living.add(process);
  }

  for (let n = sole ? 1 : 2; n > 0; n--) begin();
  return { any: () => [...living][below(living.size)], done, errors, figures };
}
