/**
 * The frame of one hook in one dispatch: its `next`, its budget of time, its signal, and the trace of the hooks beneath.
 *
 * @module
 */
import { copyOf, type Data, freeze, selectorOf } from "./patterns.ts";
import { type Link, type Tier, tierOf, tiers } from "./registration.ts";
import { isSameJson, messageOf } from "../kit/calls.ts";
import { isInterrupt } from "../../../mod.ts";
import { anySignal, isObject, isThenable, startTimer } from "../../../src/core/kit.ts";

// One dispatch: an event that passes the hooks which select it.

/** The source of a dispatch. */
export interface Origin {
  readonly plugin: string;
  readonly tier: Tier;
}

/** The engine, as the source of an event and the provider of what an agent has itself. */
export const engineOrigin: Origin = Object.freeze({ plugin: "engine", tier: "core" });

/** The rules of an event. */
export interface Rules {
  /** The fields that no hook may change. */
  readonly pinned: readonly string[];
  /** Returns the problem of an answer; undefined for a valid one. `called` is true if the hook has called `next()`. */
  readonly problem: (answer: Data, called: boolean) => string | undefined;
  /** Milliseconds of a hook's own time. Default: 10 seconds. */
  readonly budget?: number;
  /** The answer that refuses, for an event that guards. */
  readonly refusal?: (reason: string) => Data;
}

/** The error that ends or pauses the run, which no answer of a mod may hide. */
export interface Interrupts {
  thrown?: unknown;
}

/** Throws if the run ends or pauses. */
export function expectNone({ thrown }: Interrupts): void {
  if (thrown !== undefined) throw thrown;
}

/** Keeps an error that ends or pauses the run. */
export function keepInterrupt(interrupts: Interrupts, error: unknown): void {
  if (isInterrupt(error)) interrupts.thrown ??= error;
}

/** One dispatch. `T` is what its core returns: a promise, or a stream. */
export interface Dispatch<T> {
  readonly event: string;
  readonly rules: Rules;
  /** The hooks whose pattern selects the event, outermost first. */
  readonly links: readonly Link[];
  readonly origin: Origin;
  readonly core: (e: Data, signal: AbortSignal) => T;
  /** Returns `$` for a hook. Its calls hold the budget. */
  readonly engine: (link: Link, budget: () => Budget) => object;
  /** Reports the failure of a hook. */
  readonly report: (link: Link, event: string, error: unknown) => void;
  /** Once it is set, nothing beneath runs any more, and no handler. */
  readonly interrupts: Interrupts;
  /** Throws for fields that the core cannot use. Such a `next()` is a failure of the hook. */
  readonly expect?: ((e: Data) => void) | undefined;
  /** Whether a failed hook at an event that guards refuses. */
  readonly isClosed: boolean;
}

/** The place in a dispatch from which it continues. */
export interface Place {
  readonly at: number;
  readonly signal: AbortSignal;
  /** The step of the trace that the next link fills. */
  readonly step: Step;
  /** Set beneath a `next.to()`: the tiers between that are skipped. */
  readonly bypass?: Bypass | undefined;
}

/** A jump to a tier. */
interface Bypass {
  readonly plugin: string;
  readonly from: Tier;
  readonly to: Tier;
}

// The trace: what settled beneath a hook, nearest first.

/** The outcome of one link. */
type Outcome = "returned" | "passed" | "skipped" | "kept" | "expired" | "caught" | "rejected";

/** One settled link, as `next.trace` lists it. */
interface TraceEntry {
  readonly index: number;
  readonly plugin: string;
  readonly tier: Tier;
  readonly event: string;
  readonly outcome: Outcome;
  readonly reason?: string;
  readonly ms: number;
  readonly chunks?: number;
  readonly received: unknown;
  readonly returned: unknown;
}

/** A step of the trace. The links beneath fill those that follow. */
export interface Step {
  entry?: TraceEntry;
  below?: Step;
}

function* entriesOf(step: Step | undefined): Iterable<TraceEntry> {
  for (let at = step; at; at = at.below) if (at.entry) yield at.entry;
}

// Budgets: a hook's own time. The clock stands while `next()` and calls of `$` are in flight.

/** The default budget of a hook. */
const hookTime = 10_000;
/** The budget of a `.catch` handler. */
const handlerTime = 1_000;
/** The time that a hook may go on after its signal has aborted. */
const lingerTime = 5_000;

/** The own time of a hook. */
export class Budget {
  readonly ms: number;
  readonly #onSpent: () => void;
  #left: number;
  /** True while the hook's own code runs or waits. */
  #isRunning = false;
  /** The number of calls in flight, during which the clock stands. */
  #holds = 0;
  /** The time at which the clock started; undefined while it stands. */
  #since: number | undefined;
  #timer: ReturnType<typeof startTimer>;

  constructor(ms: number, onSpent: () => void) {
    this.ms = ms;
    this.#left = ms;
    this.#onSpent = onSpent;
  }

  get remainingMs(): number {
    return Math.max(0, this.#left - (this.#since === undefined ? 0 : Date.now() - this.#since));
  }

  /** Starts the clock. */
  start(): void {
    this.#isRunning = true;
    this.#update();
  }

  /** Stops the clock. */
  stop(): void {
    this.#isRunning = false;
    this.#update();
  }

  /** Stops the clock while `work` is in flight. */
  hold<T>(work: Promise<T>): Promise<T> {
    this.#holds++;
    this.#update();
    const release = () => {
      this.#holds--;
      this.#update();
    };
    work.then(release, release);
    return work;
  }

  #update(): void {
    this.#left = this.remainingMs;
    clearTimeout(this.#timer);
    const runs = this.#isRunning && this.#holds === 0;
    this.#since = runs ? Date.now() : undefined;
    if (runs) this.#timer = startTimer(this.#onSpent, this.#left);
  }
}

/** The failure of a hook that took longer than its budget. */
export class Overrun extends Error {
  override readonly name = "TimeoutError";

  constructor(ms: number) {
    super(`it took more than ${ms} ms of its own time`);
  }
}

/** The failure of a hook whose answer is no answer of its event. */
export class WrongAnswer extends TypeError {
  override readonly name = "WrongAnswer";
}

// The frame.

/** A settled `next()`. */
interface Settled {
  readonly value?: unknown;
  readonly error?: unknown;
}

/** One hook in one dispatch. `T` is what its `next()` returns. */
export abstract class Frame<T> {
  /** Aborts for the hook. */
  readonly #controller = new AbortController();
  /** Aborts what is in flight beneath. A budget that is spent ends the hook, and not what runs in its place. */
  readonly #beneath = new AbortController();
  readonly #started = Date.now();
  #inFlight = 0;
  #beneathMs = 0;
  #budget = new Budget(0, () => {});
  #isClosed = false;
  #trace: Step | undefined;
  /** True once the hook has called `next()`. */
  called = false;
  /** The last result of `next()`. */
  resolved: Settled | undefined;
  /** The last error of `next()`. */
  rejected: Settled | undefined;
  chunks: number | undefined;

  constructor(
    readonly dispatch: Dispatch<T>,
    readonly link: Link,
    readonly place: Place,
    readonly e: Data,
  ) {}

  /** Continues beneath the hook. */
  protected abstract proceed(place: Place, e: Data): T;
  /** Returns what `next()` returns for a run of the links beneath, or for the error that prevented it. */
  protected abstract open(run: () => T): T;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  get isBusy(): boolean {
    return this.#inFlight > 0;
  }

  /** Creates `next` for the hook. */
  next(): object {
    return this.#frozenNext(
      (e) => this.open(() => this.beneath(this.#checked(e))),
      (e, tier) => this.open(() => this.beneath(this.#checked(e), this.#bypass(tier))),
      {},
    );
  }

  /** Creates `next` for the `.catch` handler: it replays what the hook's `next()` gave. */
  replayingNext(error: unknown, replay: (e: Data) => T): object {
    const { called } = this;
    const failure = {
      kind: error instanceof Overrun ? "timeout" : "throw",
      message: error instanceof Overrun ? this.rejected && messageOf(this.rejected.error) : messageOf(error),
      budget: handlerTime,
    };
    const next = (e: unknown) => this.open(() => replay(called ? this.e : this.#checked(e)));
    return this.#frozenNext(next, next, { error: { value: Object.freeze(failure) }, called: { value: called } });
  }

  #frozenNext(
    next: (e?: unknown) => T,
    to: (e: unknown, tier: unknown) => T,
    more: PropertyDescriptorMap,
  ): object {
    const { event, origin } = this.dispatch;
    return Object.freeze(Object.defineProperties(next, {
      to: { value: to },
      signal: { get: () => this.signal },
      origin: { value: origin },
      event: { value: event },
      is: { value: (pattern: unknown) => selectorOf(pattern)(event) },
      budget: { get: () => Object.freeze({ ms: this.#budget.ms, remainingMs: this.#budget.remainingMs }) },
      trace: { get: () => Object.freeze([...entriesOf(this.#trace)]) },
      ...more,
    }));
  }

  /** Returns the fields for the links beneath: pinned ones that were left out are put back. Throws a `TypeError` for a change of one, and for no fields. */
  #checked(e: unknown): Data {
    const { event, rules: { pinned } } = this.dispatch;
    const operation = `Cannot call next() at ${event} in "${this.link.mod.name}"`;
    if (!isObject(e)) throw new TypeError(`${operation}: expected the fields of the event, got ${typeof e}`);
    const kept: Record<string, unknown> = { ...(copyOf(e) as object) }; // a copy of an object
    for (const field of pinned) {
      if (kept[field] === undefined) {
        if (field in this.e) kept[field] = this.e[field];
      } else if (!isSameJson(kept[field], this.e[field])) {
        throw new TypeError(`${operation}: "${field}" cannot be changed`);
      }
    }
    this.dispatch.expect?.(kept);
    return freeze(kept);
  }

  #bypass(tier: unknown): Bypass {
    const from = tierOf(this.link.mod);
    const to = tiers.find((each) => each === tier);
    const isAllowed = from === "prepend" || from === "append";
    if (isAllowed && to && to !== "user" && tiers.indexOf(to) > tiers.indexOf(from)) {
      return { plugin: this.link.mod.name, from, to };
    }
    const reason = isAllowed
      ? `expected a later tier: append, builtin or core, got ${tier}`
      : "only mods of the tiers prepend and append may skip a tier";
    throw new TypeError(`Cannot call next.to() in "${this.link.mod.name}": ${reason}`);
  }

  /** Runs the links beneath. Throws if the run ends or pauses. */
  beneath(e: Data, bypass = this.place.bypass): T {
    expectNone(this.dispatch.interrupts);
    this.called = true;
    this.#trace = {};
    this.place.step.below = this.#trace;
    const signal = anySignal([this.place.signal, this.#beneath.signal]);
    return this.proceed({ at: this.place.at + 1, signal, step: this.#trace, bypass }, e);
  }

  /** Stops the budget's clock while something beneath is in flight. */
  async inFlight<V>(work: Promise<V>): Promise<V> {
    const started = Date.now();
    this.#inFlight++;
    try {
      return await this.#budget.hold(work);
    } finally {
      this.#inFlight--;
      this.#beneathMs += Date.now() - started;
    }
  }

  /** Calls the hook or its handler. Throws if the run ends or pauses. Rejects if it is late, and at once if the signal of the dispatch aborts. */
  call(hook: Link["hook"], next: object, isHandler = false): Promise<unknown> {
    expectNone(this.dispatch.interrupts);
    const ms = isHandler ? handlerTime : this.dispatch.rules.budget ?? hookTime;
    const budget = new Budget(ms, () => {
      const error = new Overrun(ms);
      this.#controller.abort(error);
      this.#onLate?.(error);
    });
    this.#budget = budget;
    const engine = this.dispatch.engine(this.link, () => budget);
    return this.timed(() => (hook as (...args: unknown[]) => unknown)(engine, this.e, next)); // a hook takes these three
  }

  /** Ends the wait for a hook that is late. */
  #onLate: ((error: Overrun) => void) | undefined;

  /** Waits for a piece of the hook's own work, and counts its time. */
  timed(work: () => unknown): Promise<unknown> {
    const budget = this.#budget;
    const { signal } = this.place;
    return new Promise((resolve, reject) => {
      const stop = () => {
        budget.stop();
        signal.removeEventListener("abort", onAbort);
      };
      const fail = (error: unknown) => {
        stop();
        reject(error);
      };
      const onAbort = () => {
        this.#controller.abort(signal.reason);
        fail(signal.reason);
      };
      if (signal.aborted) return onAbort();
      budget.start();
      this.#onLate = fail;
      let returned: unknown;
      try {
        returned = work();
      } catch (error) {
        return fail(error);
      }
      if (!isThenable(returned)) {
        if (budget.remainingMs === 0) return fail(new Overrun(budget.ms)); // code that never waits cannot be interrupted
        stop();
        return resolve(returned);
      }
      signal.addEventListener("abort", onAbort, { once: true });
      const settled = Promise.resolve(returned);
      settled.then((value) => {
        stop();
        resolve(value);
      }, fail);
      this.#watch(settled);
    });
  }

  /** Reports a hook that goes on long after its signal has aborted. */
  #watch(work: Promise<unknown>): void {
    let timer: ReturnType<typeof startTimer>;
    const linger = () => {
      const report = () => this.dispatch.report(this.link, this.dispatch.event, new Error("it ignores its signal"));
      timer = startTimer(report, lingerTime);
    };
    this.signal.addEventListener("abort", linger, { once: true });
    const done = () => {
      clearTimeout(timer);
      this.signal.removeEventListener("abort", linger);
    };
    work.then(done, done);
  }

  /** Returns a valid answer as a copy. Throws a `WrongAnswer` for another one. */
  accepted(answer: unknown): unknown {
    const { rules } = this.dispatch;
    if (!isObject(answer)) throw new WrongAnswer(`it returned ${answer === undefined ? "nothing" : "no object"}`);
    const problem = rules.problem(answer, this.called);
    if (problem !== undefined) throw new WrongAnswer(`it returned a wrong answer: ${problem}`);
    return copyOf(answer);
  }

  /** Whether an error only passes the hook: it came from beneath, or the dispatch was aborted. */
  isPassing(error: unknown): boolean {
    const { signal } = this.place;
    return (signal.aborted && error === signal.reason) ||
      (this.rejected !== undefined && !this.resolved && error === this.rejected.error);
  }

  /** Aborts what is in flight beneath the hook. */
  abandon(): void {
    this.#beneath.abort(new DOMException("A hook outside has answered.", "AbortError"));
  }

  /** Ends the frame: what is still in flight beneath is aborted, and the trace gets its entry. */
  close(outcome: Outcome, returned: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#budget.stop();
    if (this.isBusy) this.abandon();
    const { dispatch: { event }, link: { mod }, place: { at, step }, e, chunks } = this;
    const ms = Math.max(0, Date.now() - this.#started - this.#beneathMs);
    const fields = { index: at, plugin: mod.name, tier: tierOf(mod), event, outcome, ms };
    step.entry = Object.freeze({ ...fields, ...(chunks !== undefined && { chunks }), received: e, returned });
  }
}

/** Returns the place after a link that does not run: its matcher does not match, or a jump has skipped it, which the trace shows. */
export function skipped(place: Place, link: Link, event: string, e: Data): Place | undefined {
  const { bypass, at, step } = place;
  const tier = tierOf(link.mod);
  if (!bypass || tiers.indexOf(tier) <= tiers.indexOf(bypass.from) || tiers.indexOf(tier) >= tiers.indexOf(bypass.to)) {
    return link.matches(e) ? undefined : { ...place, at: at + 1 };
  }
  const reason = `bypassed by ${bypass.plugin}`;
  const fields = { index: at, plugin: link.mod.name, tier, event, outcome: "skipped", reason, ms: 0 } as const;
  step.entry = Object.freeze({ ...fields, received: e, returned: undefined });
  step.below = {};
  return { ...place, at: at + 1, step: step.below };
}

/** Adds the entry of the core to the trace, and keeps an error of the core that ends or pauses the run. */
export function settleCore<T>(
  { event, interrupts }: Dispatch<T>,
  place: Place,
  e: Data,
  settled: Settled,
  started: number,
): void {
  keepInterrupt(interrupts, settled.error);
  const outcome = "error" in settled ? "rejected" : "returned";
  const fields = { index: place.at, ...engineOrigin, event, outcome, ms: Date.now() - started } as const;
  place.step.entry = Object.freeze({ ...fields, received: e, returned: settled.value });
}
