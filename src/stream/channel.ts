/**
 * A channel: what is written now is read when the reader comes for it. One writer, one reader, no web stream in between but the one at the end.
 *
 * @module
 */

/** The writing end. */
export interface Sink<T> {
  /** Takes an item; never waits. */
  write(item: T): void;
  /** Holds what is written until `uncork()`, or until it is much, so that it travels together. */
  cork(): void;
  /** Lets go of what was held. */
  uncork(): void;
  /** Settles when there is room again; nothing where there is room. A writer that can wait, waits. */
  readonly full: Promise<void> | undefined;
  /** Settles when what was written so far is on record, where a record is kept. */
  settled?(): Promise<void>;
  /** Writes nothing more, where a record is kept: somebody else goes on with it. */
  yield?(): void;
  /** Ends the stream, after what was written. */
  close(): void;
}

/** How a channel packs and bounds what it holds. */
export interface ChannelOptions<T, K, C> {
  /** Makes of an item what is kept of it, as it is written. */
  readonly keep: (item: T) => K;
  /** Makes chunks of everything that is pending, and sends them. */
  readonly pack: (kept: readonly K[], send: (chunk: C) => void) => void;
  /** The size of what is kept of an item. Default: 1. */
  readonly size?: (kept: K) => number;
  /** The size of pending items from which on the writer is asked to wait. Default: 1,024. */
  readonly highWater?: number;
  /** Called when the reader leaves before the end. */
  readonly onCancel?: (reason: unknown) => void;
  /** Called when nothing more is taken, whoever ended it. */
  readonly onEnd?: () => void;
}

/** Both ends of a channel. The reader is waited for from its first read on; before that, everything is kept. */
export function channel<T, K, C>(
  { keep, pack, size = () => 1, highWater = 1_024, onCancel, onEnd }: ChannelOptions<T, K, C>,
): { readonly sink: Sink<T>; readonly stream: ReadableStream<C> } {
  let pending: K[] = [];
  let held = 0;
  let read = false;
  let corked = false;
  let closed = false;
  let room: PromiseWithResolvers<void> | undefined;
  /** Ends the pull that is open while the reader keeps up: a pull for each chunk would cost a fifth of what a chunk does. */
  let endPull = () => {};
  let controller: ReadableStreamDefaultController<C>;
  const send = (chunk: C) => controller.enqueue(chunk);

  /** Whether the reader has taken everything that was sent. */
  function taken(): boolean {
    return read && controller.desiredSize === 0;
  }

  function flush(): void {
    const kept = pending;
    pending = [];
    held = 0;
    pack(kept, send);
    release();
  }

  function release(): void {
    room?.resolve();
    room = undefined;
  }

  const sink: Sink<T> = {
    write(item) {
      if (closed) return;
      const kept = keep(item);
      if (!corked && pending.length === 0 && taken()) return pack([kept], send);
      pending.push(kept);
      held += size(kept);
      if (!corked) endPull();
      else if (held >= highWater && taken()) flush();
    },
    cork() {
      corked = true;
    },
    uncork() {
      corked = false;
      if (pending.length === 0) return;
      if (taken()) flush();
      else endPull();
    },
    get full() {
      if (!read || held < highWater || closed) return undefined;
      room ??= Promise.withResolvers();
      return room.promise;
    },
    close() {
      if (closed) return;
      closed = true;
      onEnd?.();
      if (pending.length === 0) controller.close();
      else endPull();
    },
  };

  const stream = new ReadableStream<C>({
    start(given) {
      controller = given;
    },
    pull() {
      read = true;
      if (pending.length > 0) flush();
      if (closed) return controller.close();
      return new Promise((resolve) => {
        endPull = resolve;
      });
    },
    cancel(reason) {
      closed = true;
      pending = [];
      release();
      onEnd?.();
      onCancel?.(reason);
    },
  }, { highWaterMark: 0 });

  return { sink, stream };
}
