/**
 * Fake time: a stand-in that behaves as `@std/testing/time`. The npm package that has the original lacks a module that the original imports.
 *
 * @module
 */

const real = { Date, setTimeout, clearTimeout, setInterval, clearInterval };
const { timeout } = AbortSignal;

interface Timer {
  readonly id: number;
  readonly due: number;
  /** Milliseconds between calls, if it repeats. */
  readonly every?: number;
  readonly run: () => void;
}

/** The fake time of this process, if there is one. */
let time: FakeTime | undefined;
let timersOf: (time: FakeTime) => Map<number, Timer>;
let nextId: (time: FakeTime) => number;

/** Thrown if time is faked twice or restored twice, or if a fake timer is used after time was restored. */
export class TimeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TimeError";
  }
}

/** The options of `FakeTime`. */
export interface FakeTimeOptions {
  /** Milliseconds of fake time per millisecond of real time. Default: 0, and fake time stands still. */
  advanceRate: number;
  /** Milliseconds of real time between two steps. Default: 10. */
  advanceFrequency?: number;
}

/** The options of `delay()`. */
export interface DelayOptions {
  /** Ends the delay with an `AbortError`. */
  signal?: AbortSignal;
}

/** Replaces `Date`, the timers and `AbortSignal.timeout` until it is restored. */
export class FakeTime implements Disposable {
  readonly #start: number;
  readonly #timers = new Map<number, Timer>();
  readonly #advancing: ReturnType<typeof setInterval> | undefined;
  #now: number;
  #ids = 0;

  constructor(
    start?: number | string | Date | null,
    { advanceRate = 0, advanceFrequency = 10 }: Partial<FakeTimeOptions> = {},
  ) {
    if (time) throw new TimeError("Cannot construct FakeTime: time is already faked");
    this.#start = this.#now = startOf(start);
    if (Number.isNaN(this.#start)) throw new TypeError(`Cannot construct FakeTime: invalid start time ${this.#start}`);
    time = this;
    fake();
    const [rate, frequency] = [Math.max(0, advanceRate), Math.max(0, advanceFrequency)];
    if (rate > 0) this.#advancing = real.setInterval(() => this.tick(rate * frequency), frequency);
  }

  /** Restores real time. */
  static restore(): void {
    if (!time) throw new TimeError("Cannot restore time: time is already restored");
    time.restore();
  }

  /** Restores real time while `callback` runs, and while the promise that it returns is pending. */
  static restoreFor<T, Args extends readonly unknown[]>(
    callback: (...args: Args) => Promise<T> | T,
    ...args: Args
  ): Promise<T> {
    if (!time) return Promise.reject(new TimeError("Cannot restore time: time is not faked"));
    unfake();
    try {
      const result = callback(...args);
      if (result instanceof Promise) return result.finally(fake);
      fake();
      return Promise.resolve(result);
    } catch (error) {
      fake();
      return Promise.reject(error);
    }
  }

  /** The start of the fake time, in milliseconds since the epoch. */
  get start(): number {
    return this.#start;
  }

  /** Milliseconds since the epoch. Setting it runs the timers that are due; a callback that throws stops the time there. */
  get now(): number {
    return this.#now;
  }

  set now(value: number) {
    if (value < this.#now) {
      throw new RangeError(`Cannot set current time in the past, time must be >= ${this.#now}: received ${value}`);
    }
    for (let timer = this.#first(); timer && timer.due <= value; timer = this.#first()) this.#fire(timer);
    this.#now = value;
  }

  /** Advances time by `ms` milliseconds. */
  tick(ms = 0): void {
    this.now += ms;
  }

  /** Waits for pending promises, then advances time by `ms` milliseconds. */
  async tickAsync(ms = 0): Promise<void> {
    await this.runMicrotasks();
    this.now += ms;
  }

  /** Advances time to the next timer. Returns false if there is none. */
  next(): boolean {
    const timer = this.#first();
    if (timer) this.now = timer.due;
    return timer !== undefined;
  }

  /** Waits for pending promises, then advances time to the next timer. Returns false if there is none. */
  async nextAsync(): Promise<boolean> {
    await this.runMicrotasks();
    return this.next();
  }

  /** Runs all timers. */
  runAll(): void {
    while (this.#timers.size > 0) this.next();
  }

  /** Runs all timers, and waits for pending promises before each. */
  async runAllAsync(): Promise<void> {
    while (this.#timers.size > 0) await this.nextAsync();
  }

  /** Waits for pending promises. */
  async runMicrotasks(): Promise<void> {
    await this.delay(0);
  }

  /** Waits `ms` milliseconds of real time. */
  async delay(ms: number, { signal }: DelayOptions = {}): Promise<void> {
    const aborted = () => new DOMException("Delay was aborted.", "AbortError");
    if (signal?.aborted) throw aborted();
    await new Promise<void>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const abort = () => FakeTime.restoreFor(() => clearTimeout(timer)).then(() => reject(aborted()));
      const done = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      FakeTime.restoreFor(() => setTimeout(done, ms)).then((id) => timer = id);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Restores real time. */
  restore(): void {
    if (!time) throw new TimeError("Cannot restore time: time is already restored");
    time = undefined;
    unfake();
    if (this.#advancing !== undefined) clearInterval(this.#advancing);
  }

  [Symbol.dispose](): void {
    this.restore();
  }

  static {
    timersOf = (time) => time.#timers;
    nextId = (time) => ++time.#ids;
  }

  /** Returns the timer that is due first; of those due together, the one set first. */
  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers.values()) if (!first || timer.due < first.due) first = timer;
    return first;
  }

  #fire(timer: Timer): void {
    this.#now = timer.due;
    this.#timers.delete(timer.id);
    if (timer.every) this.#timers.set(timer.id, { ...timer, due: timer.due + timer.every });
    timer.run();
  }
}

function startOf(start: number | string | Date | null | undefined): number {
  if (start instanceof real.Date) return start.valueOf();
  if (typeof start === "number") return Math.floor(start);
  return typeof start === "string" ? new real.Date(start).valueOf() : real.Date.now();
}

/** Sets a timer, and returns its id. */
function set(name: string, run: unknown, ms: number, args: readonly unknown[], repeats: boolean): number {
  if (typeof run !== "function") throw new TimeError(`FakeTime does not support non-function callbacks to ${name}`);
  if (!time) throw new TimeError(`Cannot set ${repeats ? "interval" : "timeout"}: time is not faked`);
  const id = nextId(time);
  const delay = Math.max(repeats ? 1 : 0, Math.floor(ms));
  const timer = { id, run: () => run.apply(null, args), due: time.now + delay };
  timersOf(time).set(id, repeats ? { ...timer, every: delay } : timer);
  return id;
}

function clear(name: string, id: unknown): void {
  if (!time) throw new TimeError(`Cannot clear ${name}: time is not faked`);
  if (typeof id === "number") timersOf(time).delete(id);
}

/** The functions that replace those of the global scope. They are the same for each fake time. */
const fakes: Record<keyof typeof real, unknown> = {
  Date: fakeDate(),
  setTimeout: (run: unknown, ms = 0, ...args: unknown[]) => set("setTimeout", run, ms, args, false),
  clearTimeout: (id?: number) => clear("timeout", id),
  setInterval: (run: unknown, ms = 0, ...args: unknown[]) => set("setInterval", run, ms, args, true),
  clearInterval: (id?: number) => clear("interval", id),
};

function fake(): void {
  Object.assign(globalThis, fakes);
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    const expired = new DOMException("Signal timed out.", "TimeoutError");
    globalThis.setTimeout(() => controller.abort(expired), ms);
    return controller.signal;
  };
}

function unfake(): void {
  Object.assign(globalThis, real);
  AbortSignal.timeout = timeout;
}

function fakeDate(): DateConstructor {
  const now = () => time?.now ?? real.Date.now();
  return new Proxy(Date, {
    construct: (date, args) => new date(...(args.length > 0 ? args : [now()]) as [number]), // as a caller passes them
    apply: () => new real.Date(now()).toString(),
    get: (date, key, receiver) => key === "now" ? now : Reflect.get(date, key, receiver),
  });
}
