/**
 * A channel from one writer to one reader. Items wait in a buffer until the reader pulls. The only web stream is the one that the reader gets.
 *
 * @module
 */

/** The writing end. */
export interface Sink<T> {
  /** Takes an item. Never waits. */
  write(item: T): void;
  /** Holds items until `uncork()`, the high-water mark, or until the reader asks for more, so that they leave as one chunk. */
  cork(): void;
  /** Releases the held items. */
  uncork(): void;
  /** Resolves when the buffer has room again; undefined while it has room. A writer that can wait should await it. */
  readonly full: Promise<void> | undefined;
  /** True if so much is buffered that a writer should leave out what it can, also before the first read. Default: false. */
  readonly congested?: boolean;
  /** Ends the stream after the items that were written. */
  close(): void;
}

/** Options of a channel. `T` is an item, `K` the form in which the buffer keeps one item or several, `C` a chunk. */
export interface ChannelOptions<T, K, C> {
  /** Converts an item when it is written. */
  readonly keep: (item: T) => K;
  /** Adds an item to those in the buffer. It may change `buffered`. */
  readonly merge: (buffered: K, kept: K) => K;
  /** Packs the buffered items into chunks and sends them. */
  readonly pack: (buffered: K, send: (chunk: C) => void) => void;
  /** Returns the size of an item. Default: 1. */
  readonly size?: (kept: K) => number;
  /** The size of the buffer at which the writer should wait. Default: 1,024. */
  readonly highWater?: number;
  /** The size of the buffer at which the sink is congested. Default: `highWater`. */
  readonly congestedAt?: number;
  /** True if the writer should wait before the first read too. Default: false, for a reader that may never come. */
  readonly awaitsReader?: boolean;
  /** Called if the reader cancels before the end. */
  readonly onCancel?: ((reason: unknown) => void) | undefined;
  /** Called when the channel takes no more items, whether it was closed or cancelled. */
  readonly onEnd?: () => void;
}

/** Creates a channel. From the first read on, `full` asks the writer to wait; before, only if `awaitsReader` is set. */
export function channel<T, K, C>(
  options: ChannelOptions<T, K, C>,
): { readonly sink: Sink<T>; readonly stream: ReadableStream<C> } {
  const sink = new Channel(options);
  return { sink, stream: sink.stream };
}

/** The stream asks for a chunk only when it is read. */
const pulled: QueuingStrategy = { highWaterMark: 0 };

/** A channel: the sink, and the source of the stream. A class, because an object literal with accessors costs a microsecond each time it is created. */
class Channel<T, K, C> implements Sink<T>, UnderlyingDefaultSource<C> {
  readonly stream: ReadableStream<C>;
  readonly #options: ChannelOptions<T, K, C>;
  readonly #highWater: number;
  #controller!: ReadableStreamDefaultController<C>; // the stream's constructor sets it
  /** The buffered items, if there are any. */
  #pending: K | undefined;
  /** The size of the buffered items. */
  #bufferedSize = 0;
  #read = false;
  #corked = false;
  #closed = false;
  #room: PromiseWithResolvers<void> | undefined;
  /** Ends the open pull. One pull stays open while the reader keeps up, because a pull for each chunk would add a fifth to its cost. */
  #endPull: () => void = () => {};

  constructor(options: ChannelOptions<T, K, C>) {
    this.#options = options;
    this.#highWater = options.highWater ?? 1_024;
    this.stream = new ReadableStream<C>(this, pulled);
  }

  start(controller: ReadableStreamDefaultController<C>): void {
    this.#controller = controller;
  }

  write(item: T): void {
    if (this.#closed) return;
    const kept = this.#options.keep(item);
    if (this.#pending !== undefined) this.#pending = this.#options.merge(this.#pending, kept);
    else if (!this.#corked && this.#isDrained()) return this.#options.pack(kept, this.#send);
    else this.#pending = kept;
    this.#bufferedSize += this.#options.size?.(kept) ?? 1;
    if (!this.#corked) this.#endPull();
    else if (this.#bufferedSize >= this.#highWater && this.#isDrained()) this.#flush(this.#pending);
  }

  cork(): void {
    this.#corked = true;
  }

  uncork(): void {
    this.#corked = false;
    if (this.#pending === undefined) return;
    if (this.#isDrained()) this.#flush(this.#pending);
    else this.#endPull();
  }

  get full(): Promise<void> | undefined {
    if (!(this.#read || this.#options.awaitsReader) || this.#bufferedSize < this.#highWater || this.#closed) {
      return undefined;
    }
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  get congested(): boolean {
    return this.#bufferedSize >= (this.#options.congestedAt ?? this.#highWater) && !this.#closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.onEnd?.();
    if (this.#pending === undefined) this.#controller.close();
    else this.#endPull();
  }

  readonly #send = (chunk: C): void => this.#controller.enqueue(chunk);

  /** Returns true if the reader has taken every chunk. */
  #isDrained(): boolean {
    return this.#read && this.#controller.desiredSize === 0;
  }

  #flush(buffered: K): void {
    this.#pending = undefined;
    this.#bufferedSize = 0;
    this.#options.pack(buffered, this.#send);
    this.#release();
  }

  /** Lets a waiting writer continue. */
  #release(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  pull(): Promise<void> | void {
    this.#read = true;
    if (this.#pending !== undefined) this.#flush(this.#pending);
    if (this.#closed) return this.#controller.close();
    return new Promise((resolve) => {
      this.#endPull = resolve;
    });
  }

  cancel(reason: unknown): void {
    this.#closed = true;
    this.#pending = undefined;
    this.#release();
    this.#options.onEnd?.();
    this.#options.onCancel?.(reason);
  }
}

/** A sink in front of another one. It passes on everything except the items. */
export class SinkFilter<T, U> implements Sink<T> {
  readonly write: (item: T) => void;
  readonly close: () => void;
  readonly #target: Sink<U>;

  /** `write` takes the items, and `close` the end. Default of `close`: closes `target`. */
  constructor(target: Sink<U>, write: (item: T) => void, close: () => void = () => target.close()) {
    this.#target = target;
    this.write = write;
    this.close = close;
  }

  cork(): void {
    this.#target.cork();
  }
  uncork(): void {
    this.#target.uncork();
  }
  get full(): Promise<void> | undefined {
    return this.#target.full;
  }
  get congested(): boolean {
    return this.#target.congested ?? false;
  }
}
