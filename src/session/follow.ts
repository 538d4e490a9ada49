/**
 * Following a record that grows.
 *
 * @module
 */
import type { LogPage } from "./log.ts";

/** Somebody's attention to one run. */
export interface Listening {
  /** Settles when something was added since it last settled: true; or when nobody is to listen any more: false. */
  next(): Promise<boolean>;
  /** Ends it. */
  leave(): void | Promise<void>;
}

/** Gives page after page, as `read` gives them, and has `listen` wait for more where they end. */
export async function* follow(
  after: number,
  signal: AbortSignal,
  read: (after: number) => Promise<LogPage | undefined>,
  listen: () => Listening,
): AsyncIterable<LogPage> {
  const listening = listen(); // before it reads, so that nothing is added unseen in between
  try {
    for (let at = after; !signal.aborted;) {
      const page = await read(at);
      if (!page) return;
      if (page.lines.length > 0) {
        yield page;
        at = page.first + page.lines.length - 1;
        if (at < page.last) continue;
      }
      if (page.ended || !await listening.next()) return;
    }
  } finally {
    await listening.leave();
  }
}

/** What tells those who listen within one process. */
export interface Bell {
  /** Tells whoever listens to `run`. */
  ring(run: string): void;
  /** Listens to `run` until `signal` aborts. */
  listen(run: string, signal: AbortSignal): Listening;
}

/** Makes a bell. */
export function bell(): Bell {
  const listeners = new Map<string, Set<() => void>>();

  function listen(run: string, signal: AbortSignal): Listening {
    let rung = Promise.withResolvers<boolean>();
    const ring = () => rung.resolve(true);
    const stop = () => rung.resolve(false);
    const here = listeners.get(run) ?? new Set();
    listeners.set(run, here.add(ring));
    signal.addEventListener("abort", stop, { once: true });
    return {
      async next() {
        const more = await rung.promise;
        rung = Promise.withResolvers();
        return more;
      },
      leave() {
        signal.removeEventListener("abort", stop);
        here.delete(ring);
        if (here.size === 0) listeners.delete(run);
      },
    };
  }

  return {
    ring(run) {
      for (const ring of listeners.get(run) ?? []) ring();
    },
    listen,
  };
}
