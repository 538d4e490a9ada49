/**
 * Following a log while a run adds to it, and notifications within one process.
 *
 * @module
 */
import type { LogPage } from "./log.ts";

/** A subscription to the additions of one run. */
export interface Subscription {
  /** Resolves with true after an addition, and with false when the subscription has ended. `idle` is true if the last look has found nothing. */
  next(idle: boolean): Promise<boolean>;
  /** Ends the subscription. */
  close(): void | Promise<void>;
}

/** Yields the pages that `read` returns. At the end of the log it waits for a notification. */
export async function* follow(
  after: number,
  signal: AbortSignal,
  read: (after: number) => Promise<LogPage | undefined>,
  subscribe: () => Subscription,
): AsyncIterable<LogPage> {
  const subscription = subscribe(); // before the first read, so that no addition in between is missed
  try {
    for (let at = after; !signal.aborted;) {
      const page = await read(at);
      if (!page) return;
      if (page.lines.length > 0) {
        yield page;
        at = page.first + page.lines.length - 1;
        if (at < page.last) continue;
      }
      if (page.ended || !await subscription.next(page.lines.length === 0)) return;
    }
  } finally {
    await subscription.close();
  }
}

/** Notifies the subscribers of a run within one process. */
export interface Notifier {
  /** Notifies the subscribers of `run`. Default: all subscribers. */
  notify(run?: string): void;
  /** Subscribes to `run` until `signal` aborts. */
  subscribe(run: string, signal: AbortSignal): Subscription;
}

/**
 * Creates a notifier. Subscribers are also notified at intervals, to look for additions of other processes: after `shortest` milliseconds if the last look
 * has found some, and otherwise after twice the interval before, up to `longest`. Default: never.
 */
export function notifier(longest = Infinity, shortest = longest): Notifier {
  const subscribers = new Map<string, Set<() => void>>();

  function subscribe(run: string, signal: AbortSignal): Subscription {
    let notified = Promise.withResolvers<boolean>();
    const onNotify = () => notified.resolve(true);
    const onAbort = () => {
      notified.resolve(false);
      close(); // the request may have ended, so that nothing continues after this
    };
    const ofRun = subscribers.get(run) ?? new Set();
    subscribers.set(run, ofRun.add(onNotify));
    signal.addEventListener("abort", onAbort, { once: true });
    let interval = shortest;
    let poll: ReturnType<typeof setTimeout> | undefined;

    function close(): void {
      signal.removeEventListener("abort", onAbort);
      clearTimeout(poll);
      ofRun.delete(onNotify);
      if (ofRun.size === 0 && subscribers.get(run) === ofRun) subscribers.delete(run);
    }

    return {
      async next(idle) {
        interval = idle ? Math.min(2 * interval, longest) : shortest;
        if (interval < Infinity) poll = setTimeout(onNotify, interval);
        const more = await notified.promise;
        clearTimeout(poll);
        notified = Promise.withResolvers();
        return more;
      },
      close,
    };
  }

  return {
    notify(run) {
      const notified = run === undefined ? [...subscribers.values()] : [subscribers.get(run) ?? []];
      for (const ofRun of notified) for (const onNotify of ofRun) onNotify();
    },
    subscribe,
  };
}
