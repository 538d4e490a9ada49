/**
 * Readers of a log, and signals whose listeners are counted.
 *
 * @module
 */
import type { LogPage } from "../../session/log.ts";

/** A reader that follows a run. */
export interface LogReader {
  /** Resolves when the reader has received the event of this number, or when there are no more events. */
  upTo(number: number): Promise<void>;
  /** Resolves at the end with every event and its number. */
  readonly all: Promise<readonly string[]>;
}

/** Reads pages to the end. */
export function readLog(pages: AsyncIterable<LogPage>): LogReader {
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
  all.catch(() => {}); // callers that await it receive the error
  return {
    all,
    async upTo(number) {
      while (last < number) await turned.promise;
    },
  };
}

/** A signal whose listeners are counted. */
export interface CountedSignal {
  readonly signal: AbortSignal;
  /** Returns the number of listeners. */
  listeners(): number;
  abort(): void;
}

/** Creates a signal whose listeners are counted. */
export function countedSignal(): CountedSignal {
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
