/**
 * A cache that is bounded in entries, bytes and time, in total and for each owner.
 *
 * @module
 */
import { brand } from "../../protocol/brand.ts";
import { expectNames } from "../lib/expect_option.ts";
import { FinalError } from "./final_error.ts";

/** The error for an entry that does not fit into a store in memory, because the others must stay. The message may be sent to the client, which can try again later. */
export class CapacityError extends FinalError {
  /** The mark of the class, which its copies share. */
  static override readonly "~brand": symbol = /* @__PURE__ */ brand(this, "CapacityError");

  /** The name of the class. */
  override readonly name = "CapacityError";
  /** The reason, for programs. */
  readonly code = "full";
}

/** The bounds of a cache. */
export interface Bounds {
  /** The number of entries that can be evicted. Beyond, the one that was stored longest ago is evicted. */
  readonly max: number;
  /** The bytes of all entries. */
  readonly maxBytes: number;
  /** The bytes of the entries of one owner. */
  readonly maxOwnerBytes: number;
  /** Milliseconds after which an entry is deleted. */
  readonly expireIn: number;
}

/** Returns the bounds with their defaults, where `expiry` is the default of `expireIn`. Throws a `TypeError` that starts with `operation` for an unknown one. */
export function boundsOf(operation: string, options: Partial<Bounds>, expiry: number): Bounds {
  expectNames(operation, options, ["max", "maxBytes", "maxOwnerBytes", "expireIn"]);
  const { max = 1_000, maxBytes = 67_108_864, maxOwnerBytes = maxBytes / 4, expireIn = expiry } = options;
  return { max, maxBytes, maxOwnerBytes, expireIn };
}

/** Properties of an entry. */
export interface EntryOptions {
  readonly bytes: number;
  readonly owner: string | undefined;
  /** Whether the entry must stay until it expires. If only such entries are left at a bound, new entries are refused. */
  readonly pinned: boolean;
  /** Whether the entry is in use, and does not expire: a clock that steps forward would delete it. Default: false. */
  readonly inUse?: (() => boolean) | undefined;
}

interface Entry<T> extends EntryOptions {
  readonly value: T;
  readonly expires: number;
}

/** The entries of a cache, by id. */
export interface BoundedCache<T> {
  get(id: string): T | undefined;
  /** Stores a value. Throws a `CapacityError`, and changes nothing, if it does not fit. */
  put(id: string, value: T, options: EntryOptions): void;
  remove(id: string): void;
  ids(): readonly string[];
}

/** Creates a cache. Entries of an owner never evict those of another owner, except at the bound of all entries, and never a pinned one. */
export function boundedCache<T>({ max, maxBytes, maxOwnerBytes, expireIn }: Bounds): BoundedCache<T> {
  const pinned = new Map<string, Entry<T>>();
  const idle = new Map<string, Entry<T>>();
  const ownerBytes = new Map<string, number>();
  let bytes = 0;

  function count({ owner, bytes: size }: EntryOptions, sign: 1 | -1): void {
    bytes += sign * size;
    if (owner === undefined) return;
    const sum = (ownerBytes.get(owner) ?? 0) + sign * size;
    if (sum > 0) ownerBytes.set(owner, sum);
    else ownerBytes.delete(owner);
  }

  function find(id: string): Entry<T> | undefined {
    return pinned.get(id) ?? idle.get(id);
  }

  function remove(id: string): void {
    const entry = find(id);
    if (!entry) return;
    count(entry, -1);
    pinned.delete(id);
    idle.delete(id);
  }

  function expire(): void {
    if (expireIn === Infinity) return;
    const now = Date.now();
    for (const entries of [pinned, idle]) {
      for (const [id, entry] of entries) { // in the order in which they expire
        if (entry.expires > now) break;
        entries.delete(id);
        if (entry.inUse?.()) entries.set(id, { ...entry, expires: now + expireIn }); // at the end
        else count(entry, -1);
      }
    }
  }

  /** Returns the ids of entries that free `excess` bytes without those of `kept`. Returns undefined if there are not enough. */
  function evictable(excess: number, kept: readonly string[], owner?: string): readonly string[] | undefined {
    const ids: string[] = [];
    if (excess <= 0) return ids;
    let left = excess;
    for (const [id, entry] of idle) {
      if (left <= 0) break;
      if (kept.includes(id) || (owner !== undefined && entry.owner !== owner)) continue;
      ids.push(id);
      left -= entry.bytes;
    }
    return left > 0 ? undefined : ids;
  }

  /** Returns the ids of entries to evict, so that a value fits in the place of `old`. Returns undefined if it cannot fit. */
  function evicted(id: string, { owner, bytes: size }: EntryOptions, old: Entry<T> | undefined) {
    const replaced = old && old.owner === owner ? old.bytes : 0;
    const owned = owner === undefined ? 0 : (ownerBytes.get(owner) ?? 0) + size - replaced;
    const own = evictable(owned - maxOwnerBytes, [id], owner);
    const freed = own?.reduce((sum, each) => sum + (idle.get(each)?.bytes ?? 0), old?.bytes ?? 0) ?? 0;
    const others = own && evictable(bytes + size - freed - maxBytes, [id, ...own]);
    return others && [...own, ...others];
  }

  return {
    get(id) {
      expire();
      return find(id)?.value;
    },
    put(id, value, options) {
      expire();
      const others = evicted(id, options, find(id));
      if (!others) throw new CapacityError("Cannot store more in memory: it is full; try again later");
      for (const other of [id, ...others]) remove(other);
      count(options, 1);
      (options.pinned ? pinned : idle).set(id, { ...options, value, expires: Date.now() + expireIn });
      for (const oldest of idle.keys()) {
        if (idle.size <= max) break;
        remove(oldest);
      }
    },
    remove,
    ids() {
      expire();
      return [...pinned.keys(), ...idle.keys()];
    },
  };
}
