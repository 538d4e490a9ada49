/**
 * The storage of a Durable Object.
 *
 * @module
 */
import { expectMethods } from "../expect_methods.ts";
import type { SqlStorage } from "../sql/storage.ts";

/** Throws a `TypeError` if a value is not the storage of a Durable Object. */
export function expectStorage(storage: SqlStorage): void {
  const message = "Cannot use the storage: expected ctx.storage of a Durable Object with SQLite, on Cloudflare Workers";
  expectMethods(storage, ["transactionSync"], message);
}
