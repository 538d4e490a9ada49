/**
 * A channel from one writer to one reader. Items wait in a buffer until the reader pulls. The only web stream is the one that the reader gets.
 *
 * @module
 */

/** The writing end. */
export interface Sink<T> {
  /** Takes an item. Never waits. */
  write(item: T): void;
  /** Holds items until `uncork()` or the high-water mark, so that they leave as one chunk. */
  cork(): void;
  /** Releases the held items. */
  uncork(): void;
  /** Resolves when the buffer has room again; undefined while it has room. A writer that can wait should await it. */
  readonly full: Promise<void> | undefined;
  /** True if so much is buffered that a writer should leave out what it can, also before the first read. Default: false. */
  readonly congested?: boolean;
  /** Resolves when the items so far are logged. Only a sink with a log has it. */
  settled?(): Promise<void>;
  /** Stops logging, because another process continues the log. Only a sink with a log has it. */
  yield?(): void;
  /** Ends the stream after the items that were written. */
  close(): void;
}

/** Options of a channel. `T` is an item, `K` what the buffer keeps of it, `C` a chunk. */
export interface ChannelOptions<T, K, C> {
  /** Converts an item when it is written. */
  readonly keep: (item: T) => K;
  /** Packs the buffered items into chunks and sends them. */
  readonly pack: (kept: readonly K[], send: (chunk: C) => void) => void;
  /** Returns the size of a buffered item. Default: 1. */
  readonly size?: (kept: K) => number;
  /** The size of the buffer at which the writer should wait. Default: 1,024. */
  readonly highWater?: number;
  /** The size of the buffer at which the sink is congested. Default: `highWater`. */
  readonly congestedAt?: number;
  /** True if the writer should wait before the first read too. Default: false, for a reader that may never come. */
  readonly awaitsReader?: boolean;
  /** Called if the reader cancels before the end. */
  readonly onCancel?: (reason: unknown) => void;
  /** Called when the channel takes no more items, whether it was closed or cancelled. */
  readonly onEnd?: () => void;
}

/** Creates a channel. From the first read on, `full` asks the writer to wait; before, only if `awaitsReader` is set. */
export function channel<T, K, C>(
  options: ChannelOptions<T, K, C>,
): { readonly sink: Sink<T>; readonly stream: ReadableStream<C> } {
  const { keep, pack, size = () => 1, highWater = 1_024, congestedAt = highWater, onCancel, onEnd } = options;
  let pending: K[] = [];
  let held = 0;
  let read = false;
  let corked = false;
  let closed = false;
  let room: PromiseWithResolvers<void> | undefined;
  /** Ends the open pull. One pull stays open while the reader keeps up, because a pull for each chunk would add a fifth to its cost. */
  let endPull = () => {};
  let controller: ReadableStreamDefaultController<C>;
  const send = (chunk: C) => controller.enqueue(chunk);

  /** Whether the reader has taken every chunk. */
  function isDrained(): boolean {
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
      if (!corked && pending.length === 0 && isDrained()) return pack([kept], send);
      pending.push(kept);
      held += size(kept);
      if (!corked) endPull();
      else if (held >= highWater && isDrained()) flush();
    },
    cork() {
      corked = true;
    },
    uncork() {
      corked = false;
      if (pending.length === 0) return;
      if (isDrained()) flush();
      else endPull();
    },
    get full() {
      if (!(read || options.awaitsReader) || held < highWater || closed) return undefined;
      room ??= Promise.withResolvers();
      return room.promise;
    },
    get congested() {
      return held >= congestedAt && !closed;
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
