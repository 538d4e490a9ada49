/**
 * Processes that serve from the same store and log, and can be killed.
 *
 * @module
 */
import { type Agent, memory, serve, type ServedApp, type ServeOptions, type Store } from "@jizai/jizai";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { durable } from "@jizai/jizai/session/durable";

/** The data that processes share. */
export interface Shared {
  readonly store: Store;
  readonly log: Log;
}

/** A process. */
export interface Process {
  readonly app: ServedApp;
  /** Kills the process: later operations have no effect. */
  kill(): void;
}

/** A store and a log that outlive processes. */
export function shared(): Shared {
  return { store: durable(memory().journal), log: memoryLog({ expireIn: Infinity }) };
}

/** A process that serves an agent. */
export function processOf(
  { store, log }: Shared,
  assistant: Agent<unknown, unknown>,
  options: ServeOptions = {},
): Process {
  let dead = false;
  const never = new Promise<never>(() => {});

  /** Wraps a function so that it never returns after its process died. */
  function whileAlive<A extends readonly unknown[], R>(work: (...given: A) => Promise<R>): (...given: A) => Promise<R> {
    return async (...given) => {
      if (dead) return await never;
      const done = await work(...given);
      return dead ? await never : done;
    };
  }

  const { journal } = store;
  const alive = {
    ...journal,
    head: whileAlive(journal.head),
    open: whileAlive(journal.open),
    entries: whileAlive(journal.entries),
    append: whileAlive(journal.append),
    post: whileAlive(journal.post),
    pending: whileAlive(journal.pending),
    list: whileAlive(journal.list),
    delete: whileAlive(journal.delete),
  };

  return {
    app: serve(assistant, {
      store: durable(alive),
      log: { ...log, append: whileAlive(log.append), read: whileAlive(log.read) },
      onClientGone: "detach",
      ...options,
    }),
    kill() {
      dead = true;
    },
  };
}
