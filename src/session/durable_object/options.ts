/**
 * Options of the adapters for Durable Objects.
 *
 * @module
 */
import type { DeltaOptions } from "../log.ts";
import type { ObjectAlarm } from "./alarm.ts";

/** Options of `durableObjectStore()` and `durableObjectLog()`. */
export interface DurableObjectOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * Expired entries are deleted when the object starts. Default: never.
   */
  readonly expireIn?: number;
}

/** Options of `durableObjectLog()`. */
export interface DurableObjectLogOptions extends DurableObjectOptions, DeltaOptions {}

/** Options of `durableObjectStore()`. */
export interface DurableObjectStoreOptions extends DurableObjectOptions {
  /**
   * The object's `ctx.storage`. The store sets its alarm while a run has a lease, so that a killed object starts again. The class needs
   * `alarm() { return app.recover().then(({ over }) => over); }`. Default: the object starts with the next request.
   */
  readonly alarm?: ObjectAlarm;
}
