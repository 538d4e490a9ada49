/**
 * The calls of a server's store: each one ends within a deadline and is observed, and a store that is slow or fails is reported.
 *
 * A call that reaches its deadline may still have an effect, as one whose acknowledgement was lost: marks settle both, and a claim that has failed for its client is
 * undone.
 *
 * @module
 */
import type { Journal } from "../../core/journal.ts";
import { startTimer } from "../../core/lib/cancellation.ts";
import {
  type BoundedStore,
  type BoundOptions,
  FinalError,
  retryObservers,
  StoreDeadlineError,
  type StoreFact,
  type StoreOperation,
} from "../../core/store.ts";
import { brand } from "../../protocol/brand.ts";
import { promiseTry } from "../../stream/tick.ts";
import { Withdrawals } from "./withdrawals.ts";

/** A store that is slow or fails, and one that works again. */
type HealthFact = Extract<StoreFact, { readonly type: "store.slow" | "store.recovered" }>;

/** The report that a store is slow, and that it works again. `onError` receives both. */
export class SlowStoreError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "SlowStoreError");

  /** The name of the class. */
  override readonly name = "SlowStoreError";

  /** Takes the report as a fact. */
  constructor(readonly fact: Extract<StoreFact, { readonly type: "store.slow" | "store.recovered" }>) {
    const { type, operation, milliseconds } = fact;
    super(
      type === "store.slow"
        ? `The store is slow: \`${operation}\` has not succeeded for ${milliseconds} ms`
        : `The store works again after ${milliseconds} ms, in which \`${operation}\` did not succeed`,
    );
  }
}

/** Milliseconds of trouble after which the store is reported. */
const slowAfter = 1_000;

/** Milliseconds after a failure at which its operation has been repeated, if it is retried. */
const retryWithin = 2_000;

/** The operations of a journal that have a deadline. */
const operations = [
  ...["head", "open", "entries", "append", "post", "read", "pending", "list", "pack", "trim", "delete"],
] as const satisfies readonly StoreOperation[];

/** Bounds the calls of a store. */
export function boundedStore(
  { journal, earlier, durable }: Parameters<NonNullable<BoundedStore["durable"]>["bound"]>[0],
  { deadline, observe, report }: BoundOptions,
): BoundedStore {
  const healths = new Map<StoreOperation, OperationHealth>();
  const failures = new WeakSet<object>();

  function healthOf(operation: StoreOperation): OperationHealth {
    const known = healths.get(operation) ?? new OperationHealth(operation, (fact) => {
      observe?.(fact);
      report(new SlowStoreError(fact));
    });
    healths.set(operation, known);
    return known;
  }

  function call<T>(operation: StoreOperation, work: () => Promise<T>): Promise<T> {
    const began = Date.now();
    const health = healthOf(operation);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isSlow = false;

    function end(outcome: "ok" | "failed" | "deadline", error?: unknown): void {
      clearTimeout(timer);
      if (isSlow) health.endSlow();
      if (outcome === "ok") {
        health.works(began, isSlow);
        withdrawals.retry();
      } else if (!(error instanceof FinalError)) health.fails(began);
      if (observe && error instanceof Error) {
        retryObservers.set(error, () => observe({ type: "store.retried", operation }));
      }
      observe?.({ type: "store.called", operation, milliseconds: Date.now() - began, outcome });
    }

    let isOver = false;
    const once = (settle: () => void) => {
      if (!isOver) settle();
      isOver = true;
    };
    const late = promiseTry(work);
    const expire = () =>
      once(() => {
        const error = new StoreDeadlineError(
          `Cannot ${operation}: the store has not answered within ${deadline} ms`,
          late,
        );
        failures.add(error);
        end("deadline", error);
        reject(error);
      });
    let timer = startTimer(() => {
      isSlow = true;
      health.slows(began);
      timer = startTimer(expire, deadline - slowAfter);
    }, Math.min(slowAfter, deadline));
    late.then(
      (value) =>
        once(() => {
          end("ok");
          resolve(value);
        }),
      (error) =>
        once(() => {
          if (mayPass(error)) failures.add(error);
          end("failed", error);
          reject(error);
        }),
    );
    return promise;
  }

  const calls = Object.fromEntries(operations.flatMap((operation) => {
    if (!journal[operation]) return [];
    const work = (...args: never[]) =>
      call(operation, () => (journal[operation] as (...args: never[]) => Promise<unknown>)(...args)); // it takes what its caller gives
    return [[operation, work]];
  }));
  const bounded: Journal = { ...journal, ...calls };
  const withdrawals = new Withdrawals(bounded);

  return {
    journal: {
      ...bounded,
      head: (key) => withdrawals.read(key, () => bounded.head(key)),
      open: (key) => withdrawals.read(key, () => bounded.open(key)),
    },
    withdrawals,
    ...(durable && { durable }),
    ...(earlier && {
      earlier: {
        move: (id, name) => call("move", () => earlier.move(id, name)),
        delete: (id, name) => call("delete", () => earlier.delete(id, name)),
      },
    }),
    isFailure: (error) => typeof error === "object" && error !== null && failures.has(error),
  };
}

/** True for the error of a call that may succeed later, and not for that of a defect or of a value that the store never takes. */
function mayPass(error: unknown): error is Error {
  return error instanceof Error &&
    !(error instanceof FinalError || error instanceof TypeError || error instanceof RangeError);
}

/** Whether an operation of a store works. */
class OperationHealth {
  readonly #operation: StoreOperation;
  readonly #report: (fact: HealthFact) => void;
  /** The number of calls that have not ended within a second. */
  #slowCalls = 0;
  /** The start of the first call without a success after it, and whether it was reported. */
  #trouble: { readonly since: number; isReported: boolean } | undefined;
  #failedAt = 0;

  constructor(operation: StoreOperation, report: (fact: HealthFact) => void) {
    this.#operation = operation;
    this.#report = report;
  }

  /** Notes a call that does not end. */
  slows(began: number): void {
    this.#slowCalls++;
    this.fails(began);
  }

  /** Notes the end of such a call. */
  endSlow(): void {
    this.#slowCalls--;
  }

  /** Notes a call that has failed, or is slow. */
  fails(began: number): void {
    const now = Date.now();
    const isStale = this.#trouble?.isReported === false && began - this.#failedAt > retryWithin;
    this.#failedAt = now;
    if (!this.#trouble || isStale) this.#trouble = { since: began, isReported: false };
    const { since, isReported } = this.#trouble;
    if (isReported || now - since < slowAfter) return;
    this.#trouble.isReported = true;
    this.#report({ type: "store.slow", operation: this.#operation, milliseconds: now - since });
  }

  /** Notes a call that has succeeded. One that began before the last failure tells nothing, unless it was slow itself. */
  works(began: number, wasSlow: boolean): void {
    if (!this.#trouble || this.#slowCalls > 0 || (began < this.#failedAt && !wasSlow)) return;
    const { since, isReported } = this.#trouble;
    this.#trouble = undefined;
    if (!isReported) return;
    this.#report({ type: "store.recovered", operation: this.#operation, milliseconds: Date.now() - since });
  }
}
