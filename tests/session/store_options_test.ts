/**
 * Stores and logs refuse an option that they do not have: with a misspelt `expireIn`, they would keep everything for ever.
 */
import { memory } from "@jizai/jizai";
import { d1Log, d1Store } from "@jizai/jizai/session/d1";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durableObjectLog, durableObjectStore } from "@jizai/jizai/session/durable_object";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { libsqlLog, libsqlStore } from "@jizai/jizai/session/libsql";
import { memoryLog } from "@jizai/jizai/session/log";
import { postgresLog, postgresStore } from "@jizai/jizai/session/postgres";
import { redisLog, redisStore } from "@jizai/jizai/session/redis";
import { sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import { upstashLog, upstashStore } from "@jizai/jizai/session/upstash";
import { assertThrows } from "@std/assert";

type Untyped = (...args: readonly unknown[]) => unknown; // as code without types calls it

const bounds = "max, maxBytes, maxOwnerBytes, expireIn";

for (
  const [make, expected] of [[memory, bounds], [memoryLog, bounds], [memoryKeyValue, "max, maxBytes"]] as readonly [
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
  [sqliteStore, "expireIn, pollEvery"],
  [sqliteLog, "expireIn, pollEvery"],
  [postgresStore, "expireIn, listen, pollEvery"],
  [postgresLog, "expireIn, listen, pollEvery"],
  [denoKvStore, "prefix, expireIn"],
  [denoKvLog, "prefix, expireIn"],
  [redisStore, "prefix, expireIn, pollEvery, onWarning"],
  [redisLog, "prefix, expireIn, pollEvery, deltasEvery, onWarning"],
  [upstashStore, "prefix, expireIn, pollEvery"],
  [upstashLog, "prefix, expireIn, pollEvery"],
  [d1Store, "expireIn, pollEvery"],
  [d1Log, "expireIn, pollEvery"],
  [libsqlStore, "expireIn, pollEvery"],
  [libsqlLog, "expireIn, pollEvery"],
  [durableObjectStore, "expireIn, alarm"],
  [durableObjectLog, "expireIn"],
];

for (const [given, expected] of onDatabases) {
  const make = given as Untyped & { readonly name: string };
  Deno.test(`${make.name}() refuses an option that it does not have`, () => {
    const message = `Cannot create ${make.name}(): there is no option "expiresIn"; expected one of ${expected}`;
    assertThrows(() => make({}, { expiresIn: 5 }), TypeError, message);
  });
}
