/**
 * Processes that serve from the same store, and can be killed.
 *
 * @module
 */
import { type Agent, memory, serve, type ServedApp, type ServeOptions, type Store } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";

/** The data that processes share. */
export interface Shared {
  readonly store: Store;
}

/** A process. */
export interface Process {
  readonly app: ServedApp;
  /** Kills the process: later operations have no effect. */
  kill(): void;
}

/** A store that outlives processes. */
export function shared(): Shared {
  return { store: durable(memory().journal) };
}

/** A process that serves an agent. */
export function processOf(
  { store }: Shared,
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
    read: whileAlive(journal.read),
    trim: whileAlive(journal.trim),
    sweep: whileAlive(journal.sweep),
    pending: whileAlive(journal.pending),
    list: whileAlive(journal.list),
    delete: whileAlive(journal.delete),
  };

  return {
    app: serve(assistant, {
      store: durable(alive),
      onClientGone: "detach",
      heartbeat: 60_000, // no comments among the events while a store fails
      ...options,
    }),
    kill() {
      dead = true;
    },
  };
}
