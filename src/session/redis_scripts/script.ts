/**
 * Redis as the adapters use it: scripts, which Redis executes one at a time.
 *
 * @module
 */
import { usedUntil } from "../expiry.ts";

/** Executes a Lua script. Clients may parse texts as JSON, so scripts return texts after a colon. */
export type RunScript = (
  script: string,
  keys: readonly string[],
  values: readonly (string | number)[],
) => PromiseLike<unknown>;

/** Options of the adapters for Redis. */
export interface RedisOptions {
  /** The beginning of every key. Default: "jizai". */
  readonly prefix?: string;
  /** Milliseconds after its last change that Redis deletes an entry; for the session of an active run, after the end of its lease. Default: never. */
  readonly expireIn?: number;
}

/** Returns an expiry for scripts: 0 for never. That of a session counts from the end of its lease, if it has one. */
export function expiryOf(expireIn: number, leaseEnd: number | null = null): number {
  return expireIn < Infinity ? Math.max(1, Math.ceil(usedUntil(leaseEnd) - Date.now() + expireIn)) : 0;
}

/** Returns the elements of a list that a script has returned. */
export function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [];
}

/** Returns a text that a script has returned after a colon. */
export function textOf(reply: unknown): string {
  return String(reply).slice(1);
}

/** Lua: expires the key `key` after `ms` milliseconds, or never. */
export const expireFunction = `local function expire(key, ms)
  if tonumber(ms) > 0 then redis.call('PEXPIRE', key, ms) else redis.call('PERSIST', key) end
end
`;
