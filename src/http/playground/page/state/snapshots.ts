/**
 * The snapshots of the page: its state, which is stored over a reload, and the listeners that draw it.
 *
 * @module
 */
import { reduce } from "./reduce.ts";
import { emptyView, type Frame, isRunning, type View } from "./view.ts";

/** The state of the page. */
export interface Snapshot {
  readonly view: View;
  /** The state of a lost connection; an empty text if it is not lost. */
  readonly connection: string;
  /** The text to put back into the text field: a message that was refused. */
  readonly refused: string;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
}

/** The current snapshot and its listeners. */
export interface Snapshots {
  /** The current snapshot. It changes only when the listeners are notified. */
  read(): Snapshot;
  /** Adds a listener and returns the function that removes it. */
  listen(listener: () => void): () => void;
  /** Changes the snapshot and notifies the listeners. */
  set(change: Partial<Snapshot>): void;
  /** Adds an event. The listeners are notified once for all events of an animation frame. */
  receive(frame: Frame): void;
}

/** Opens the snapshots with the view that the tab has stored, or with an empty one. */
export function openSnapshots(storageKey: string): Snapshots {
  const listeners = new Set<() => void>();
  let isNotifyDue = false;
  let snapshot: Snapshot = {
    view: { ...emptyView, ...JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") },
    connection: "",
    refused: "",
    now: now(),
  };
  addEventListener("pagehide", () => store(storageKey, snapshot.view));
  setInterval(() => isRunning(snapshot.view) && set({}), 250);

  return {
    read: () => snapshot,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set,
    receive(frame) {
      snapshot = { ...snapshot, view: reduce(snapshot.view, frame, now()) };
      if (isNotifyDue) return;
      isNotifyDue = true;
      requestAnimationFrame(notifyOnce);
    },
  };

  function set(change: Partial<Snapshot>): void {
    snapshot = { ...snapshot, ...change, now: now() };
    for (const listener of listeners) listener();
  }

  /** Notifies the listeners. The next frame is due after twice the time that this one takes, so that a large page still reacts to its user. */
  function notifyOnce(): void {
    const drawn = snapshot.view;
    const start = performance.now();
    set({});
    setTimeout(() =>
      // after the frame was drawn
      setTimeout(() => {
        isNotifyDue = snapshot.view !== drawn;
        if (isNotifyDue) requestAnimationFrame(notifyOnce);
      }, 2 * (performance.now() - start))
    );
  }
}

/** Returns the time, in milliseconds since 1970. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Stores the view for a reload. If it is too large, only the fields that name the run are stored. */
function store(storageKey: string, view: View): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(view));
  } catch {
    const { run, session, status, began } = view;
    sessionStorage.setItem(storageKey, JSON.stringify({ ...emptyView, run, session, status, began }));
  }
}
