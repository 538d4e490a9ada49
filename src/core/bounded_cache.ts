/**
 * A cache that is bounded in entries, bytes and time, in total and for each owner.
 *
 * @module
 */
import { FinalError } from "./store.ts";
import { brand } from "../protocol/brand.ts";

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

/** Returns the bounds with their defaults, where `expiry` is the default of `expireIn`. */
export function boundsOf(options: Partial<Bounds>, expiry: number): Bounds {
  const { max = 1_000, maxBytes = 67_108_864, maxOwnerBytes = maxBytes / 4, expireIn = expiry } = options;
  return { max, maxBytes, maxOwnerBytes, expireIn };
}

/** The names of the bounds. */
export const boundNames: readonly (keyof Bounds)[] = ["max", "maxBytes", "maxOwnerBytes", "expireIn"];

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
  /** Returns the most bytes with which `put()` stores a value of this id and owner. */
  roomFor(id: string, owner: string | undefined): number;
  remove(id: string): void;
  ids(): readonly string[];
}

/** The bytes of the entries that share a bound. */
interface Budget {
  readonly limitBytes: number;
  bytes: number;
  /** The bytes of those that must stay. */
  pinned: number;
}

/** Creates a cache. Entries of an owner never evict those of another owner, except at the bound of all entries, and never a pinned one. */
export function boundedCache<T>({ max, maxBytes, maxOwnerBytes, expireIn }: Bounds): BoundedCache<T> {
  /** The entries that must stay, and those that can be evicted, in the order in which they expire. */
  const pinned = new Map<string, Entry<T>>();
  const idle = new Map<string, Entry<T>>();
  const total: Budget = { limitBytes: maxBytes, bytes: 0, pinned: 0 };
  const owners = new Map<string, Budget>();

  /** Returns the usages that an entry of `owner` counts in. */
  function budgetsOf(owner: string | undefined): readonly Budget[] {
    if (owner === undefined) return [total];
    return [owners.get(owner) ?? { limitBytes: maxOwnerBytes, bytes: 0, pinned: 0 }, total];
  }

  function count({ owner, bytes, pinned }: EntryOptions, sign: 1 | -1): void {
    for (const budget of budgetsOf(owner)) {
      budget.bytes += sign * bytes;
      if (pinned) budget.pinned += sign * bytes;
      if (owner === undefined || budget === total) continue;
      if (budget.bytes > 0) owners.set(owner, budget);
      else owners.delete(owner); // an owner without entries takes no room
    }
  }

  function find(id: string): Entry<T> | undefined {
    return pinned.get(id) ?? idle.get(id);
  }

  function remove(id: string): void {
    const entry = find(id);
    if (entry) count(entry, -1);
    pinned.delete(id);
    idle.delete(id);
  }

  function expire(): void {
    if (expireIn === Infinity) return;
    const now = Date.now();
    for (const entries of [pinned, idle]) {
      for (const [id, entry] of entries) {
        if (entry.expires > now) break;
        entries.delete(id);
        if (entry.inUse?.()) entries.set(id, { ...entry, expires: now + expireIn }); // at the end
        else count(entry, -1);
      }
    }
  }

  /** Evicts entries that count in `usage`, the oldest first, until there is room for `bytes`. */
  function evict(budget: Budget, bytes: number, owner: string | undefined): void {
    for (const [id, entry] of idle) {
      if (budget.bytes + bytes <= budget.limitBytes) return;
      if (budget === total || entry.owner === owner) remove(id);
    }
  }

  function roomFor(id: string, owner: string | undefined): number {
    const pinnedBytes = pinned.get(id);
    const rooms = budgetsOf(owner).map((budget) => {
      const isCounted = pinnedBytes && (budget === total || pinnedBytes.owner === owner);
      return budget.limitBytes - budget.pinned + (isCounted ? pinnedBytes.bytes : 0);
    });
    return Math.min(...rooms);
  }

  return {
    roomFor,
    get(id) {
      expire();
      return find(id)?.value;
    },
    put(id, value, options) {
      const { owner, bytes } = options;
      expire();
      if (bytes > roomFor(id, owner)) {
        const roomBytes = Math.min(...budgetsOf(owner).map(({ limitBytes }) => limitBytes));
        const advice = bytes > roomBytes
          ? `this alone takes ${bytes} bytes of at most ${roomBytes}`
          : "try again later";
        throw new CapacityError(`Cannot store more in memory: it is full; ${advice}`);
      }
      remove(id);
      for (const budget of budgetsOf(owner)) evict(budget, bytes, owner);
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
