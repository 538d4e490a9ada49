/**
 * Fake time: the part of `@std/testing/time` that the tests use.
 *
 * @module
 */

const { Date, setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
const { timeout } = AbortSignal;

interface Timer {
  readonly id: number;
  readonly due: number;
  /** Milliseconds between calls, if it repeats. */
  readonly every?: number;
  readonly run: () => void;
}

let faked: FakeTime | undefined;

/** Thrown if time is faked twice, or restored twice. */
export class TimeError extends Error {
  override readonly name = "TimeError";
}

/** Replaces `Date`, the timers and `AbortSignal.timeout` until it is restored. */
export class FakeTime implements Disposable {
  /** The start of the fake time, in milliseconds since the epoch. */
  readonly start: number;
  readonly #timers = new Map<number, Timer>();
  #now: number;
  #ids = 0;

  constructor(start?: number | string | Date | null) {
    if (faked) throw new TimeError("Cannot construct FakeTime: time is already faked");
    this.start = this.#now = start == null ? Date.now() : new Date(start).valueOf();
    if (Number.isNaN(this.start)) throw new TypeError(`Cannot construct FakeTime: invalid start time ${start}`);
    this.#replace();
    faked = this;
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
  delay(ms: number): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, ms);
    });
  }

  /** Restores real time. */
  restore(): void {
    if (faked !== this) throw new TimeError("Cannot restore time: time is already restored");
    Object.assign(globalThis, { Date, setTimeout, clearTimeout, setInterval, clearInterval });
    AbortSignal.timeout = timeout;
    faked = undefined;
  }

  [Symbol.dispose](): void {
    this.restore();
  }

  #replace() {
    const clear = (id?: number) => void (id !== undefined && this.#timers.delete(id));
    Object.assign(globalThis, {
      Date: fakeDate(() => this.#now),
      setTimeout: (run: () => void, ms = 0, ...args: []) => this.#add(() => run(...args), Math.max(0, ms)),
      setInterval: (run: () => void, ms = 0, ...args: []) => this.#add(() => run(...args), Math.max(1, ms), true),
      clearTimeout: clear,
      clearInterval: clear,
    });
    AbortSignal.timeout = (ms) => {
      const controller = new AbortController();
      this.#add(() => controller.abort(new DOMException("Signal timed out.", "TimeoutError")), ms);
      return controller.signal;
    };
  }

  #add(run: () => void, ms: number, repeats = false): number {
    const id = ++this.#ids;
    const delay = Math.floor(ms);
    this.#timers.set(id, { id, run, due: this.#now + delay, ...(repeats && { every: delay }) });
    return id;
  }

  /** Returns the timer that is due first; of those due together, the one set first. */
  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers.values()) if (!first || timer.due < first.due) first = timer;
    return first;
  }

  #fire(timer: Timer) {
    this.#now = timer.due;
    this.#timers.delete(timer.id);
    if (timer.every) this.#timers.set(timer.id, { ...timer, due: timer.due + timer.every });
    timer.run();
  }
}

function fakeDate(now: () => number): DateConstructor {
  return new Proxy(Date, {
    construct: (date, args, target) => Reflect.construct(date, args.length > 0 ? args : [now()], target),
    apply: () => new Date(now()).toString(),
    get: (date, key, receiver) => key === "now" ? now : Reflect.get(date, key, receiver),
  });
}
