/**
 * A process that serves an agent, and what befalls it: its storage fails, is late, or fails although it did what it was told; and it dies.
 *
 * @module
 */
import { serve, type ServeOptions } from "@jizai/jizai";
import type { Done, RandomAgent } from "../random_agent/agent.ts";
import type { App } from "../requests.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import type { Kept } from "./storage.ts";

/** A process. */
export interface Process {
  readonly app: App;
  /** Aborts when it dies: nothing that it does from then on comes to pass. */
  readonly died: AbortSignal;
}

/** A fault of a process's storage: before an operation, or after it. */
export type Fault = "fail" | "delay" | "die";

/** Is told what happens, so that a person can follow. */
export type Tell = (what: string) => void;

/** The parts of a process, and its notification of faults. */
export interface ProcessOptions {
  readonly chance: Chance;
  readonly agent: RandomAgent;
  readonly kept: Kept;
  readonly serving: ServeOptions;
  /** Is given what its tools have done. */
  readonly done: Done[];
  /** Returns the next fault, if any. */
  readonly fate: () => Fault | undefined;
  /** Is told of what a person should hear of. */
  readonly onError: (error: unknown) => void;
  /** Is told of its death. */
  readonly onDeath: () => void;
  readonly tell: Tell;
}

/** A failure of the storage. */
class StorageError extends Error {}

/** How often the storage fails in a row at most. */
const most = 2;

/** Starts a process. */
export function processOf(
  { chance, agent, kept, serving, done, fate, onError, onDeath, tell }: ProcessOptions,
): Process {
  const { below, one } = chance;
  const { store, log } = kept;
  const death = new AbortController();
  const shutdown = new AbortController();
  const { signal: died } = death;
  let failures = 0;

  function die(): void {
    if (died.aborted) return;
    tell("dies");
    death.abort();
    onDeath();
  }

  /** Dies now, or is told to shut down and dies later. */
  function fall(): void {
    if (below(4) > 0) return die();
    tell("shuts down");
    shutdown.abort();
    sleep(below(8_000)).then(die); // it never rejects
  }

  async function befall(fault: Fault | undefined, when: string): Promise<void> {
    if (fault) tell(`${fault} ${when}`);
    if (fault === "die") fall();
    if (fault === "delay") await sleep(one([1, 10, 100, 1_000, 40_000]));
    await alive(died);
    failures = fault === "fail" ? failures + 1 : 0;
    if (fault === "fail" && failures <= most) throw new StorageError("The storage is away");
  }

  function faulty<A extends readonly unknown[], R>(
    what: string,
    work: (...given: A) => Promise<R>,
  ): (...given: A) => Promise<R> {
    return async (...given) => {
      await alive(died);
      const [early, late] = [fate(), fate()];
      await befall(early, `before ${what}`);
      const result = await work(...given);
      await befall(late, `after ${what}`);
      return result;
    };
  }

  /** Tools take their time, now and then, and stop in the middle of it when their process dies. */
  async function linger(): Promise<void> {
    if (below(4) === 0) await sleep(one([0, 1, 20, 500, 12_000]));
    await alive(died);
  }

  const app = serve(agent.make(done), {
    ...serving,
    store: { ...store, load: faulty("load", store.load), save: faulty("save", store.save) },
    log: {
      ...log,
      append: faulty("append", log.append),
      read: faulty("read", log.read),
      tail: (run, after, signal) => log.tail(run, after, AbortSignal.any([signal, died])),
    },
    signal: shutdown.signal,
    vars: () => ({ atOnce: false, linger }),
    onError: (error) => isPlayed(error) || onError(error),
  });
  return { app, died };
}

/** Whether a failure is one of the play: the storage's, a model's or a tool's; or a refusal. */
function isPlayed(error: unknown): boolean {
  return error instanceof StorageError ||
    (error instanceof Error && (error.name === "RequestError" || ["Overloaded", "Flaky"].includes(error.message)));
}

/** Settles where the process lives, and otherwise never. */
async function alive(died: AbortSignal): Promise<void> {
  if (died.aborted) await new Promise(() => {});
}
