/**
 * Options of the adapters for Durable Objects.
 *
 * @module
 */

/** Options of `durableObjectStore()` and `durableObjectLog()`. */
export interface DurableObjectOptions {
  /** Milliseconds after its last change that an entry expires. Expired entries are deleted when the object starts. Default: never. */
  readonly expireIn?: number;
}
