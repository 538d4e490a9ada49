/**
 * Processes that serve from the same store and log, each of which can be killed.
 *
 * @module
 */
import { type Agent, memory, serve, type ServeOptions, type Store } from "@jizai/jizai";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { durable } from "@jizai/jizai/session/durable";
import type { App } from "./requests.ts";

/** The data that processes share. */
export interface Shared {
  readonly store: Store;
  readonly log: Log;
}

/** A process. */
export interface Process {
  readonly app: App;
  /** Ends it without a word: nothing that it does from now on comes to pass. */
  kill(): void;
}

/** A store and a log that outlive processes. */
export function shared(): Shared {
  return { store: durable(memory()), log: memoryLog({ expireIn: Infinity }) };
}

/** A process that serves an agent. */
export function processOf(
  { store, log }: Shared,
  assistant: Agent<unknown, unknown>,
  options: ServeOptions = {},
): Process {
  let dead = false;
  const never = new Promise<never>(() => {});

  /** Does what it does while its process lives. */
  function mortal<A extends readonly unknown[], R>(work: (...given: A) => Promise<R>): (...given: A) => Promise<R> {
    return async (...given) => {
      if (dead) return await never;
      const done = await work(...given);
      return dead ? await never : done;
    };
  }

  return {
    app: serve(assistant, {
      store: { ...store, load: mortal(store.load), save: mortal(store.save) },
      log: { ...log, append: mortal(log.append), read: mortal(log.read) },
      onClientGone: "detach",
      ...options,
    }),
    kill() {
      dead = true;
    },
  };
}
