/**
 * Stores refuse an option that they do not have: with a misspelt `expireIn`, they would keep everything for ever.
 */
import { memory } from "@jizai/jizai";
import { d1Store } from "@jizai/jizai/session/d1";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectStore } from "@jizai/jizai/session/durable_object";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { libsqlStore } from "@jizai/jizai/session/libsql";
import { postgresStore } from "@jizai/jizai/session/postgres";
import { redisStore } from "@jizai/jizai/session/redis";
import { sqliteStore } from "@jizai/jizai/session/sqlite";
import { upstashStore } from "@jizai/jizai/session/upstash";
import { assertThrows } from "@std/assert";

type Untyped = (...args: readonly unknown[]) => unknown; // as code without types calls it

const bounds = "max, maxBytes, maxOwnerBytes, expireIn";

for (
  const [make, expected] of [[memory, bounds], [memoryKeyValue, "max, maxBytes"]] as readonly [
    Untyped,
    string,
  ][]
) {
  Deno.test(`${make.name}() refuses an option that it does not have`, () => {
    const message = `Cannot create ${make.name}(): there is no option "expiresIn"; expected one of ${expected}`;
    assertThrows(() => make({ expiresIn: 5 }), TypeError, message);
    assertThrows(() => make(null), TypeError, `Cannot create ${make.name}(): got Null; expected an object with max`);
    make({ max: 5 });
  });
}

const onDatabases: readonly (readonly [make: unknown, expected: string])[] = [
  [sqliteStore, "expireIn, pollEvery, deltasEvery"],
  [postgresStore, "expireIn, listen, pollEvery, deltasEvery"],
  [denoKvStore, "prefix, expireIn, deltasEvery"],
  [redisStore, "prefix, expireIn, pollEvery, deltasEvery, onWarning"],
  [upstashStore, "prefix, expireIn, pollEvery, deltasEvery"],
  [d1Store, "expireIn, pollEvery, deltasEvery"],
  [libsqlStore, "expireIn, pollEvery, deltasEvery"],
  [durableObjectStore, "expireIn, alarm, deltasEvery"],
];

for (const [given, expected] of onDatabases) {
  const make = given as Untyped & { readonly name: string };
  Deno.test(`${make.name}() refuses an option that it does not have`, () => {
    const message = `Cannot create ${make.name}(): there is no option "expiresIn"; expected one of ${expected}`;
    assertThrows(() => make({}, { expiresIn: 5 }), TypeError, message);
  });
}
