/**
 * The part of the package `redis` that tests use. Its own declarations, of 2 MB, would slow down every type check; `tests/types/node_redis.ts` checks
 * that its clients fit.
 *
 * @module
 */
import type { NodeRedisClient } from "@jizai/jizai/session/redis";

/** A client that can be closed. */
export interface Client extends NodeRedisClient {
  connect(): Promise<unknown>;
  destroy(): void;
}

/** Creates a client. */
export function createClient(options: { readonly url: string }): Client;
