import { denoKvKeyValue, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectKeyValue, durableObjectStore } from "@jizai/jizai/session/durable_object";
import { migrate, sqliteKeyValue, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertThrows } from "@std/assert";

/** The database that code without types passes on a runtime that has none. */
const nothing = JSON.parse("null");

Deno.test("the adapters for SQLite say which runtimes have its database", () => {
  for (const adapter of [migrate, sqliteKeyValue, sqliteStore]) {
    assertThrows(
      () => adapter(nothing),
      TypeError,
      'Cannot use the database: expected a DatabaseSync of "node:sqlite", which Deno and Node 22.13 or later have, ' +
        'or a Database of the package "libsql"',
    );
  }
});

Deno.test("the adapters for Deno KV say which runtime has its database", () => {
  for (const adapter of [denoKvKeyValue, denoKvStore]) {
    for (const value of [nothing, {}, new Map()]) {
      assertThrows(
        () => adapter(value),
        TypeError,
        'Cannot use the database: expected one that Deno.openKv() opened, on Deno with "unstable": ["kv"]',
      );
    }
  }
});

Deno.test("the adapters for Durable Objects say which runtime has their storage", () => {
  for (const adapter of [durableObjectKeyValue, durableObjectStore]) {
    for (const value of [nothing, {}]) {
      assertThrows(
        () => adapter(value),
        TypeError,
        "Cannot use the storage: expected ctx.storage of a Durable Object with SQLite, on Cloudflare Workers",
      );
    }
  }
});
