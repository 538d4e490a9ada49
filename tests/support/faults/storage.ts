/**
 * What outlives processes: a store and a log, in each of the places where they may be kept.
 *
 * @module
 */
import { memory, type Store } from "@jizai/jizai";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectLog, durableObjectStore } from "@jizai/jizai/session/durable_object";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { outside } from "../simulation.ts";
import { storage } from "../sql.ts";

/** A store and a log. */
export interface Kept {
  readonly store: Store;
  readonly log: Log;
}

/** A place where things are kept. */
export interface Place {
  /** As one process has it. */
  open(): Kept;
  /** Whether one process at a time has it. */
  readonly sole: boolean;
}

/** The adapters: each opens a new place, which is empty. */
export const adapters = {
  memory(_: Deno.Kv): Place {
    const kept = { store: { ...memory(), volatile: false }, log: memoryLog({ expireIn: Infinity }) };
    return { open: () => kept, sole: false };
  },
  deno_kv(kv: Deno.Kv): Place {
    const prefix = crypto.randomUUID();
    const gate = gated(kv);
    return { open: () => ({ store: denoKvStore(gate, { prefix }), log: denoKvLog(gate, { prefix }) }), sole: false };
  },
  durable_object(_: Deno.Kv): Place {
    const object = storage();
    return { open: () => ({ store: durableObjectStore(object), log: durableObjectLog(object) }), sole: true };
  },
} as const;

/** The name of an adapter. */
export type Adapter = keyof typeof adapters;

/** A database that does one thing after another, always in the same order, and tells of changes in that order too. */
function gated(kv: Deno.Kv): Deno.Kv {
  const changes = new EventTarget();
  let last: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(() => outside(work));
    last = done.catch(() => {}); // whoever asked hears of it
    return done;
  }

  async function commit(operation: Deno.AtomicOperation) {
    const done = await inTurn(() => operation.commit());
    changes.dispatchEvent(new Event("change"));
    return done;
  }

  const atomic = (operation: Deno.AtomicOperation): Deno.AtomicOperation =>
    new Proxy(operation, {
      get: (_, key: keyof Deno.AtomicOperation) =>
        key === "commit"
          ? () => commit(operation)
          : (...args: never[]) => atomic(Reflect.apply(operation[key], operation, args)),
    });

  /** The entries of `keys`, and again when they have changed since. */
  function watch(keys: readonly Deno.KvKey[]): ReadableStream<unknown> {
    let seen: string | undefined;
    let changed = Promise.withResolvers<void>();
    const change = () => changed.resolve();
    changes.addEventListener("change", change);
    return new ReadableStream({
      async pull(controller) {
        for (;;) {
          changed = Promise.withResolvers();
          const entries = await inTurn(() => kv.getMany(keys));
          const now = JSON.stringify(entries.map(({ versionstamp }) => versionstamp));
          if (now !== seen) {
            seen = now;
            return controller.enqueue(entries);
          }
          await changed.promise;
        }
      },
      cancel: () => changes.removeEventListener("change", change),
    }, { highWaterMark: 0 });
  }

  async function* list(...args: Parameters<Deno.Kv["list"]>) {
    yield* await inTurn(() => Array.fromAsync(kv.list(...args)));
  }

  return new Proxy(kv, {
    get(_, key: "get" | "getMany" | "delete" | "list" | "atomic" | "watch") {
      if (key === "list") return list;
      if (key === "watch") return watch;
      if (key === "atomic") return () => atomic(kv.atomic());
      return (...args: never[]) => inTurn(() => Reflect.apply(kv[key], kv, args) as Promise<unknown>); // each of them gives one
    },
  });
}
