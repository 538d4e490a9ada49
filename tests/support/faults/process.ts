/**
 * A process that serves an agent with faults: its storage fails, is slow, or fails after the operation was done, and the process dies.
 *
 * @module
 */
import { serve, type ServeOptions } from "@jizai/jizai";
import { durable, SlowStoreError, StoreDeadlineError } from "@jizai/jizai/session/durable";
import type { Done, RandomAgent } from "../random_agent/agent.ts";
import type { App } from "../requests.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import type { Kept } from "./storage.ts";

/** A process. */
export interface Process {
  readonly app: App;
  /** Aborts when the process dies: later operations have no effect. */
  readonly died: AbortSignal;
}

/** A fault of a process's storage: before an operation, or after it. */
export type Fault = "fail" | "delay" | "die";

/** Receives a line for each event of the simulation, for a reader. */
export type Trace = (what: string) => void;

/** Options of `processOf()`. */
export interface ProcessOptions {
  readonly chance: Chance;
  readonly agent: RandomAgent;
  readonly kept: Kept;
  readonly serving: ServeOptions;
  /** Receives the effects of its tools. */
  readonly done: Done[];
  /** Milliseconds between two calls of `recover()`. Default: it is not called. */
  readonly wakeEvery?: number | undefined;
  /** Returns the next fault; `undefined` for none. */
  readonly fate: () => Fault | undefined;
  /** Receives reported errors. */
  readonly onError: (error: unknown) => void;
  /** Called when the process dies. */
  readonly onDeath: () => void;
  readonly trace: Trace;
}

/** A failure of the storage. */
class StorageError extends Error {}

/** The most failures of the storage in a row. */
const most = 2;

/** Starts a process. */
export function processOf(
  { chance, agent, kept, serving, done, wakeEvery, fate, onError, onDeath, trace }: ProcessOptions,
): Process {
  const { below, one } = chance;
  const { store: { journal } } = kept;
  const death = new AbortController();
  const shutdown = new AbortController();
  const { signal: died } = death;
  let failures = 0;

  function die(): void {
    if (died.aborted) return;
    trace("dies");
    death.abort();
    onDeath();
  }

  /** Kills the process now, or shuts it down and kills it later. */
  function fall(): void {
    if (below(4) > (wakeEvery === undefined ? 0 : 1)) return die();
    trace("shuts down");
    shutdown.abort();
    sleep(below(8_000)).then(die); // the promise never rejects
  }

  async function befall(fault: Fault | undefined, when: string): Promise<void> {
    if (fault) trace(`${fault} ${when}`);
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

  /** Sometimes waits. Never continues if the process has died. */
  async function linger(): Promise<void> {
    if (below(4) === 0) await sleep(one([0, 1, 20, 500, 12_000]));
    await alive(died);
  }

  const app = serve(agent.make(done), {
    ...serving,
    store: durable({
      ...journal,
      head: faulty("head", journal.head),
      open: faulty("open", journal.open),
      entries: faulty("entries", journal.entries),
      append: faulty("append to the journal", journal.append),
      post: faulty("post", journal.post),
      read: faulty("read", journal.read),
      pending: faulty("pending", journal.pending),
      delete: faulty("delete", journal.delete),
    }),
    signal: shutdown.signal,
    vars: () => ({ atOnce: false, linger }),
    recoveryVars: () => ({ atOnce: false, linger }),
    onError: (error) => isPlayed(error) || onError(error),
  });
  const report = (error: unknown) => isPlayed(error) || onError(error);
  const wake = () => void app.recover().then(({ runs }) => runs.length > 0 && trace(`recovers ${runs}`), report);
  const timer = wakeEvery === undefined ? undefined : setInterval(wake, wakeEvery);
  died.addEventListener("abort", () => clearInterval(timer));
  return { app, died };
}

/** Whether an error is part of the simulation: of the storage, a model or a tool, or a refusal. */
function isPlayed(error: unknown): boolean {
  return error instanceof StorageError || error instanceof StoreDeadlineError || error instanceof SlowStoreError ||
    (error instanceof Error && (error.name === "RequestError" || ["Overloaded", "Flaky"].includes(error.message)));
}

/** Resolves if the process is alive; otherwise never. */
async function alive(died: AbortSignal): Promise<void> {
  if (died.aborted) await new Promise(() => {});
}
