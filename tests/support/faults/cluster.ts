/**
 * Processes that serve one agent from one place, and what befalls them: writes that fail, are late, or fail although they were made; and death.
 *
 * @module
 */
import { type Busy, type ClientGone, serve } from "@jizai/jizai";
import { type Done, type Improvised } from "../improvised/agent.ts";
import type { App } from "../requests.ts";
import { type Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import type { Place } from "./storage.ts";

/** A process. */
export interface Process {
  readonly app: App;
  /** Aborts when it dies. */
  readonly died: AbortSignal;
}

/** Processes, one of which comes for each that goes. */
export interface Cluster {
  /** One that lives; nothing where there is none at the moment. */
  any(): Process | undefined;
  /** What tools have done, in whichever process. */
  readonly done: readonly Done[];
  /** What has gone wrong, by what it is. */
  readonly figures: Readonly<Record<"deaths" | "shutdowns" | "failures" | "delays", number>>;
  /** What was reported that is no fault of ours. */
  readonly errors: readonly unknown[];
  /** From now on nothing goes wrong. */
  calm(): void;
}

/** What a cluster is made of. */
export interface ClusterOptions {
  readonly chance: Chance;
  readonly agent: Improvised;
  readonly place: Place;
  /** Is told what happens. */
  readonly tell: Tell;
}

/** Is told what happens, so that a person can follow. */
export type Tell = (what: string) => void;

/** A failure of the storage. */
class Fault extends Error {}

/** Starts processes. */
export function cluster({ chance, agent, place, tell }: ClusterOptions): Cluster {
  const { below, one } = chance;
  const done: Done[] = [];
  const errors: unknown[] = [];
  const figures = { deaths: 0, shutdowns: 0, failures: 0, delays: 0 };
  const sole = place.sole || below(2) === 0;
  const serving = {
    sole,
    lease: one([5_000, 30_000]),
    busy: one<Busy>(["refuse", "queue", "replace"]),
    onClientGone: one<ClientGone>(["detach", "detach", "detach", "drain", "stop"]),
  };
  tell(`serving ${JSON.stringify(serving)}`);
  const living = new Set<Process>();
  let rough = 1 + below(4);
  let lives = 6;
  let booted = 0;

  function boot(): void {
    const death = new AbortController();
    const shutdown = new AbortController();
    const { signal: died } = death;
    const { store, log } = place.open();
    const name = `process ${++booted}`;
    tell(`${name} begins`);
    const process = {
      died,
      app: serve(agent.make(doneBy(died)), {
        ...serving,
        store: { ...store, load: faulty("load", store.load), save: faulty("save", store.save) },
        log: {
          ...log,
          append: faulty("append", log.append),
          read: faulty("read", log.read),
          tail: (run, after, signal) => log.tail(run, after, AbortSignal.any([signal, died])),
        },
        signal: shutdown.signal,
        vars: () => ({ atOnce: false, linger: () => linger(died) }),
        onError: (error) => void (isPlayed(error) || errors.push(error)),
      }),
    };
    living.add(process);

    function end(): void {
      if (died.aborted) return;
      tell(`${name} dies`);
      lives--;
      living.delete(process);
      death.abort();
      sleep(below(3) * below(2_000)).then(boot); // it never rejects
    }

    /** Dies now, or is told to end and dies later. */
    function fall(): void {
      if (below(4) > 0) {
        figures.deaths++;
        return end();
      }
      tell(`${name} shuts down`);
      figures.shutdowns++;
      shutdown.abort();
      sleep(below(8_000)).then(end);
    }

    let row = 0;
    function faulty<A extends readonly unknown[], R>(
      what: string,
      work: (...given: A) => Promise<R>,
    ): (...given: A) => Promise<R> {
      return async (...given) => {
        await alive(died);
        const [early, late] = [faultBy(), faultBy()];
        await befall(early, `before ${what}`);
        const result = await work(...given);
        await alive(died);
        await befall(late, `after ${what}`);
        if (!early && !late) row = 0;
        return result;
      };
    }

    async function befall(fault: "fail" | "delay" | "die" | undefined, when: string): Promise<void> {
      if (fault) tell(`${name}: ${fault} ${when}`);
      if (fault === "die") fall();
      if (fault === "delay") {
        figures.delays++;
        await sleep(one([1, 10, 100, 1_000, 40_000]));
      }
      await alive(died);
      if (fault !== "fail" || row >= 2) return;
      row++;
      figures.failures++;
      throw new Fault("The storage is away");
    }
  }

  function faultBy() {
    if (below(100) >= rough) return undefined;
    const fault = one(["fail", "fail", "delay", "delay", "die"] as const);
    return fault === "die" && lives === 0 ? undefined : fault;
  }

  /** What is done by a process while it lives. */
  function doneBy(died: AbortSignal): Done[] {
    return new Proxy(done, {
      get: (target, key) => key === "push" && died.aborted ? () => {} : Reflect.get(target, key),
    });
  }

  async function linger(died: AbortSignal): Promise<void> {
    if (below(4) === 0) await sleep(one([0, 1, 20, 500, 12_000]));
    await alive(died);
  }

  for (let n = sole ? 1 : 2; n > 0; n--) boot();
  return {
    any: () => [...living][below(living.size)],
    done,
    errors,
    figures,
    calm() {
      rough = 0;
    },
  };
}

/** Whether a failure is one of the play: the storage's, a model's or a tool's. */
function isPlayed(error: unknown): boolean {
  return error instanceof Fault ||
    (error instanceof Error && (error.name === "Refusal" || ["Overloaded", "Flaky"].includes(error.message)));
}

/** Settles where the process lives, and otherwise never. */
async function alive(died: AbortSignal): Promise<void> {
  if (died.aborted) await new Promise(() => {});
}
