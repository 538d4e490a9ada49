/**
 * Storage that outlives processes: a store and a key-value database of each adapter.
 *
 * @module
 */
import { memory, type Store } from "@jizai/jizai";
import { denoKvKeyValue, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectKeyValue, durableObjectStore } from "@jizai/jizai/session/durable_object";
import { type KeyValue, memoryKeyValue } from "@jizai/jizai/session/key_value";
import { durable } from "@jizai/jizai/session/durable";
import { migrate, sqliteKeyValue, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import { storage } from "../sql.ts";
import { gated } from "./gated.ts";

/** A store and a key-value database. */
export interface Kept {
  readonly store: Store;
  readonly keyValue: KeyValue;
}

/** A storage that several processes can open. */
export interface Place {
  /** Opens the storage for one process. */
  open(): Kept;
  /** Whether only one process at a time can open it. */
  readonly singleProcess: boolean;
}

/** The adapters. Each opens a new, empty storage. */
export const adapters = {
  memory(_: Deno.Kv): Place {
    const kept = {
      store: durable(memory().journal),
      keyValue: memoryKeyValue(),
    };
    return { open: () => kept, singleProcess: false };
  },
  deno_kv(kv: Deno.Kv): Place {
    const prefix = crypto.randomUUID();
    const gate = gated(kv);
    return {
      open: () => ({
        store: denoKvStore(gate, { prefix }),
        keyValue: denoKvKeyValue(gate, { prefix }),
      }),
      singleProcess: false,
    };
  },
  durable_object(_: Deno.Kv): Place {
    const object = storage();
    const store = durableObjectStore(object); // one process, whose watchers are notified
    return {
      open: () => ({ store, keyValue: durableObjectKeyValue(object) }),
      singleProcess: true,
    };
  },
  sqlite(_: Deno.Kv): Place {
    const database = new DatabaseSync(":memory:");
    migrate(database);
    const store = sqliteStore(database); // one process, whose watchers are notified
    return {
      open: () => ({
        store,
        keyValue: sqliteKeyValue(database),
      }),
      singleProcess: false,
    };
  },
} as const;

/** The name of an adapter. */
export type Adapter = keyof typeof adapters;

/** The names of all adapters. */
export const names = Object.keys(adapters) as readonly Adapter[]; // the keys of `adapters`
