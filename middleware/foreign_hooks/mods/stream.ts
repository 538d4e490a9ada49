/**
 * The chain of a streaming event: its hooks are generators around a core that streams. A chunk that a hook has yielded stays.
 *
 * @module
 */
import { type Dispatch, expectNone, Frame, Overrun, type Place, settleCore, skipped, WrongAnswer } from "./frame.ts";
import { copyOf, type Data, freeze } from "./patterns.ts";
import { isObject } from "../../../src/core/kit.ts";

/** The chunks of a response, and its result. */
export type Chunks = AsyncGenerator<Data, unknown, void>;

/** Dispatches a streaming event, and returns the stream that leaves the outermost hook. */
export function dispatchStream(all: Dispatch<Chunks>, e: Data, signal: AbortSignal): Chunks {
  return proceed(all, { at: 0, signal, step: {} }, freeze(copyOf(e) as Data)); // a copy of an object
}

/** Runs the links from a place on, and then the core. */
function proceed(all: Dispatch<Chunks>, place: Place, e: Data): Chunks {
  const link = all.links[place.at];
  if (!link) return runCore(all, place, e);
  const behind = skipped(place, link, all.event, e);
  if (behind) return proceed(all, behind, e);
  return new StreamFrame(all, link, place, e).run();
}

async function* runCore(all: Dispatch<Chunks>, place: Place, e: Data): Chunks {
  const started = Date.now();
  try {
    const value = yield* all.core(e, place.signal);
    settleCore(all, place, e, { value }, started);
    return value;
  } catch (error) {
    settleCore(all, place, e, { error }, started);
    throw error;
  }
}

const isNumber = (value: unknown) => typeof value === "number";
const isText = (value: unknown) => typeof value === "string";

/** The fields of each kind of chunk. */
const chunkFields: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  text: { index: isNumber, text: isText },
  thinking: { index: isNumber, text: isText },
  tool: { index: isNumber, id: isText, name: isText },
  input: { index: isNumber, json: isText },
  stop: {},
  engine: { ref: isNumber },
};

/** Returns a chunk as a copy. Throws a `WrongAnswer` for a wrong one. */
function chunkOf(chunk: unknown): Data {
  const fields = isObject(chunk) ? chunkFields[String(chunk.kind)] : undefined;
  const wrong = Object.entries(fields ?? { kind: isText }).find(([name, form]) => !form(Object(chunk)[name]));
  if (!fields || wrong) throw new WrongAnswer(`it yielded a wrong chunk: its "${wrong?.[0] ?? "kind"}" is not valid`);
  return copyOf(chunk) as Data; // a copy of an object
}

/** The stream that `next(e)` returns to a hook: a generator of the chunks beneath, with the promise of their result. */
class ChunkStream implements AsyncIterableIterator<Data, unknown, void> {
  readonly #source: Chunks;
  readonly #frame: StreamFrame;
  readonly #result = Promise.withResolvers<unknown>();
  /** The chunks that were read for `result`. */
  readonly #read: Data[] = [];
  /** The chunks that the hook has read before it yielded one. If it fails, they follow in its place. */
  readonly unanswered: Data[] = [];
  #reading: Promise<void> | undefined;
  isDone = false;

  constructor(source: Chunks, frame: StreamFrame) {
    this.#source = source;
    this.#frame = frame;
    this.#result.promise.catch(() => {}); // the hook that awaits it, or the chunks, sees the error
  }

  /** The result of the response. Chunks that the hook has not read are kept for it. */
  get result(): Promise<unknown> {
    if (!this.isDone) this.#reading ??= this.#readAll();
    return this.#frame.inFlight(this.#result.promise);
  }

  async #readAll(): Promise<void> {
    try {
      for (let step = await this.#pull(); !step.done; step = await this.#pull()) this.#read.push(step.value);
    } catch {
      return; // `result` and `next()` reject with it
    }
  }

  async next(): Promise<IteratorResult<Data, unknown>> {
    if (this.#reading) await this.#frame.inFlight(this.#reading);
    const value = this.#read.shift();
    if (value) return { done: false, value };
    return this.isDone ? { done: true, value: await this.#result.promise } : await this.#pull();
  }

  async #pull(): Promise<IteratorResult<Data, unknown>> {
    try {
      const step = await this.#frame.inFlight(this.#source.next());
      if (!step.done) {
        if (this.#frame.chunks === 0) this.unanswered.push(step.value);
        return { done: false, value: copyOf(step.value) as Data }; // a copy of a chunk
      }
      const value = copyOf(step.value);
      this.isDone = true;
      this.#frame.resolved = { value };
      this.#result.resolve(value);
      return { done: true, value };
    } catch (error) {
      this.isDone = true;
      this.#frame.rejected = { error };
      this.#result.reject(error);
      throw error;
    }
  }

  /** Leaves the response, as `break` and an error in `for await` do. What is left of it is read if the hook fails. */
  return(value?: unknown): Promise<IteratorResult<Data, unknown>> {
    return Promise.resolve({ done: true, value });
  }

  /** Ends the response. */
  async abandon(): Promise<void> {
    if (this.isDone) return;
    this.isDone = true;
    this.#result.reject(new DOMException("The response was abandoned.", "AbortError"));
    await this.#source.return(undefined);
  }

  throw(error?: unknown): Promise<IteratorResult<Data, unknown>> {
    return Promise.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Returns a stream that could not be opened: its chunks and its result reject. */
function failedStream(error: unknown): object {
  const result = Promise.reject(error);
  result.catch(() => {}); // the hook that reads the stream sees the error
  return {
    result,
    next: () => result,
    return: (value: unknown) => Promise.resolve({ done: true, value }),
    throw: (error: unknown) => Promise.reject(error),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** A hook whose `next()` returns a stream. */
class StreamFrame extends Frame<Chunks> {
  /** The streams that `next()` opened. */
  readonly #streams: ChunkStream[] = [];
  override chunks = 0;
  /** True in the handler, whose `next()` reads the stream of the hook. */
  #isReplaying = false;

  protected override proceed(place: Place, e: Data): Chunks {
    return proceed(this.dispatch, place, e);
  }

  protected override open(run: () => Chunks): Chunks {
    try {
      const stream = new ChunkStream(after(this.#isReplaying ? undefined : this.#streams.at(-1), run()), this);
      this.#streams.push(stream);
      return stream as never; // it is used as an iterator
    } catch (error) {
      return failedStream(error) as never; // the same
    }
  }

  /** Runs the hook, and yields what it yields. */
  async *run(): Chunks {
    let isLeft = true;
    try {
      try {
        const value = yield* this.#pass(this.link.hook, this.next(), false);
        await this.#abandonAll();
        this.close("returned", value);
        isLeft = false;
        return value;
      } catch (error) {
        if (this.isPassing(error)) throw error;
        const value = yield* this.#recover(error);
        isLeft = false;
        return value;
      }
    } finally {
      if (isLeft) {
        this.close("rejected", undefined);
        this.abandon();
        await this.#abandonAll();
      }
    }
  }

  async #abandonAll(): Promise<void> {
    for (const stream of this.#streams) await stream.abandon();
  }

  /** Yields the chunks of a hook or a handler, and returns its result. A generator without a result keeps the one beneath. */
  async *#pass(hook: Frame<Chunks>["link"]["hook"], next: object, isHandler: boolean): Chunks {
    const returned = await this.call(hook, next, isHandler);
    if (!isIterable(returned)) {
      throw new WrongAnswer("it returned no stream: expected a generator, or the stream of next(e)");
    }
    const iterator = returned[Symbol.asyncIterator]();
    let isDone = false;
    try {
      while (true) {
        const step = await this.timed(() => iterator.next()) as IteratorResult<unknown, unknown>; // of an iterator
        if (step.done) {
          isDone = true;
          return await this.#resultOf(step.value);
        }
        const chunk = chunkOf(step.value);
        this.chunks++;
        yield chunk;
      }
    } catch (error) {
      isDone = true;
      throw error;
    } finally {
      if (!isDone) void Promise.resolve(iterator.return?.()).catch(() => {}); // its chunks are not read any more
    }
  }

  /** Returns the result of a hook; without one, that of the response beneath, the rest of which is read. */
  async #resultOf(value: unknown): Promise<unknown> {
    if (value !== undefined) return this.accepted(value);
    const last = this.#streams.at(-1);
    return last && !last.isDone ? await last.result : this.resolved?.value;
  }

  async *#recover(error: unknown): Chunks {
    const { dispatch: { event, report }, link } = this;
    report(link, event, error);
    const handler = link.handler();
    const read = this.#streams.at(-1);
    this.#isReplaying = true;
    if (handler) {
      try {
        const value = yield* this.#pass(handler, this.replayingNext(error, (e) => this.#rest(e, read)), true);
        await this.#abandonAll();
        this.close("caught", value);
        return value;
      } catch (late) {
        if (this.isPassing(late)) throw late;
        report(link, event, late);
      }
    }
    const wasCalled = read !== undefined;
    const value = yield* this.#rest(this.e, this.#streams.at(-1));
    this.close(error instanceof Overrun ? "expired" : wasCalled ? "kept" : "skipped", value);
    return value;
  }

  /** Yields the chunks of a stream that were not read. Without one, the hook has not called `next()`: runs the links beneath. */
  async *#rest(e: Data, stream: ChunkStream | undefined): Chunks {
    expectNone(this.dispatch.interrupts);
    if (!stream) return yield* this.beneath(e);
    if (this.chunks === 0) yield* stream.unanswered.splice(0);
    if (!stream.isDone) { for await (const chunk of stream) yield chunk; }
    if (this.resolved) return this.resolved.value;
    throw this.rejected?.error;
  }
}

/** Yields a stream once the one before it has ended: requests follow one another. */
async function* after(before: ChunkStream | undefined, chunks: Chunks): Chunks {
  await before?.abandon();
  return yield* chunks;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && Symbol.asyncIterator in value && typeof value[Symbol.asyncIterator] === "function";
}
