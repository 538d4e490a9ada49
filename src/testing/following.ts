/**
 * Somebody who follows a run, and the signal that is lent for it.
 *
 * @module
 */
import type { LogPage } from "../session/log.ts";

/** Somebody who follows a run. */
export interface Follower {
  /** Settles when they have seen the event of that number, or when there are no more. */
  upTo(number: number): Promise<void>;
  /** Every event that they saw, with its number, when there are no more. */
  readonly all: Promise<readonly string[]>;
}

/** Follows a run to its end. */
export function follower(pages: AsyncIterable<LogPage>): Follower {
  const seen: string[] = [];
  let last = 0;
  let turned = Promise.withResolvers<void>();

  async function read(): Promise<readonly string[]> {
    try {
      for await (const { first, lines } of pages) {
        seen.push(...lines.map((line, index) => `${first + index} ${line}`));
        last = first + lines.length - 1;
        turned.resolve();
        turned = Promise.withResolvers();
      }
    } finally {
      last = Infinity;
      turned.resolve();
    }
    return seen;
  }

  const all = read();
  all.catch(() => {}); // whoever waits for it is told
  return {
    all,
    async upTo(number) {
      while (last < number) await turned.promise;
    },
  };
}

/** A signal that is lent. */
export interface Lent {
  readonly signal: AbortSignal;
  /** How many listeners it has. */
  listeners(): number;
  abort(): void;
}

/** Lends a signal. */
export function lend(): Lent {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: AddEventListenerOptions | boolean,
  ) => {
    listeners.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: EventListenerOptions | boolean,
  ) => {
    listeners.delete(listener);
    remove(type, listener, options);
  };
  return { signal, listeners: () => listeners.size, abort: () => controller.abort() };
}
