/**
 * Storage that outlives processes: a store and a log, of each adapter.
 *
 * @module
 */
import { memory, type Store } from "@jizai/jizai";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectLog, durableObjectStore } from "@jizai/jizai/session/durable_object";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { durable } from "@jizai/jizai/session/durable";
import { storage } from "../sql.ts";
import { gated } from "./gated.ts";

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
    const kept = { store: durable(memory()), log: memoryLog({ expireIn: Infinity }) };
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

/** The names of all of them. */
export const names = Object.keys(adapters) as readonly Adapter[]; // its own keys
