import { assert, assertEquals, assertRejects } from "@std/assert";
import { Redis as Upstash } from "@upstash/redis";
import { Redis } from "ioredis";
// @ts-types="../support/vendors/redis.d.ts"
import { createClient } from "redis";
import { agent, serve, type Store, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import type { KeyValue } from "@jizai/jizai/session/key_value";
import {
  nodeRedis,
  type RedisClient,
  redisKeyValue,
  redisStore,
  type RedisSubscriber,
} from "@jizai/jizai/session/redis";
import { type UpstashClient, upstashKeyValue, upstashStore } from "@jizai/jizai/session/upstash";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { type Journal, journalKey } from "../../src/core/journal.ts";
import { scriptJournal } from "../../src/session/redis_scripts/journal.ts";
import { earlierRedis } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";
import { byProcessClock, isRedisMissing, redisServer } from "./redis_server.ts";
import { beginRun, followed } from "./run_events.ts";
import { upstashServer } from "./upstash_server.ts";

const ignore = await isRedisMissing();
const without = ignore ? " (left out: Redis is not installed; `apt-get install redis-server`)" : "";

/** Redis counts the time itself. So that a busy machine breaks no law, adapters under test keep everything 60 times as long, and time passes as fast. */
const scale = 60;

/** Lua: lets time pass for all keys. */
const age = `for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[1]) then redis.call('DEL', key)
  elseif left >= 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
end`;

/** Lets time pass for the keys of a server and for this process, until it is disposed of. */
function clockOf(redis: Redis): Disposable & { readonly time: number; pass(ms: number): Promise<void> } {
  const { now } = Date;
  let passed = 0;
  Date.now = () => now() + passed;
  return {
    time: 60_000,
    async pass(ms) {
      passed += scale * ms;
      await redis.eval(age, 0, scale * ms);
    },
    [Symbol.dispose]: () => void (Date.now = now),
  };
}

/** Keeps texts 60 times as long. */
function scaled({ set, increment, ...values }: KeyValue): KeyValue {
  const longer = <T extends { readonly expireIn?: number }>(options: T | undefined) => ({
    ...options,
    ...(options?.expireIn !== undefined && { expireIn: scale * options.expireIn }),
  });
  return {
    ...values,
    set: (key, value, options) => set(key, value, longer(options)),
    increment: (key, options) => increment(key, longer(options)),
  };
}

/** Returns a journal whose times are 60 times as long. */
function scaledJournal({ append, head, pending, ...journal }: Journal): Journal {
  return {
    ...journal,
    append: (key, { due, created, ...addition }) =>
      append(key, {
        ...addition,
        ...(due !== undefined && { due: due === null ? null : scale * due }),
        ...(created && { created: { ...created, ...(created.expireIn && { expireIn: scale * created.expireIn }) } }),
      }),
    pending: (limit, within = 0) => pending(limit, scale * within),
    async head(key) {
      const found = await head(key);
      return found && { ...found, due: found.due === null ? null : found.due / scale };
    },
  };
}

/** Waits. */
function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const quiet = { onWarning() {} };

/** Options with a longer expiry, and a prefix that no other adapter has. */
function own({ expireIn = Infinity }: { readonly expireIn?: number } = {}) {
  return { expireIn: scale * expireIn, prefix: crypto.randomUUID() };
}

/** Opens ioredis. */
function open(port: number): Redis {
  const redis = new Redis(port, "127.0.0.1");
  redis.on("error", () => {});
  return redis;
}

/** Opens ioredis as another process does. It closes its connection when it is disposed of. */
function connect(port: number): RedisClient & Disposable {
  const redis: RedisClient & RedisSubscriber = open(port);
  return Object.assign(redis, { [Symbol.dispose]: () => redis.disconnect() });
}

/** A test with a server of its own. */
function onRedis(name: string, test: (redis: Redis, port: number) => Promise<void>, args?: readonly string[]): void {
  Deno.test({
    name: `on Redis, ${name}${without}`,
    ignore,
    async fn() {
      await using server = await redisServer(args);
      assert(server);
      const redis = open(server.port);
      try {
        await test(redis, server.port);
      } finally {
        redis.disconnect();
      }
    },
  });
}

/** Tests the adapters of a client against the laws. */
async function checkAll(redis: RedisClient, server: Redis): Promise<void> {
  using clock = clockOf(server);
  const aged: RedisClient = {
    eval: byProcessClock((...script) => redis.eval(...script)),
    info: (section) => redis.info(section),
    duplicate: () => redis.duplicate(),
  };
  const stores = (options: { expireIn?: number }) => {
    const shared = { ...own(options), ...quiet };
    return [1, 2].map(() => scaledJournal(redisStore(aged, shared).journal));
  };
  await journalLaws(stores, clock);
  await keyValueLaws(() => scaled(redisKeyValue(redis, own())), clock);
}

onRedis("redisStore() and redisKeyValue() keep the laws with ioredis", (redis) => checkAll(redis, redis));

onRedis("scriptJournal() keeps the laws of journals with ioredis and @upstash/redis", async (redis) => {
  await using server = upstashServer((command, ...values) => redis.call(command, ...values));
  const { url, token } = server;
  const upstash = new Upstash({ url, token, enableTelemetry: false });
  using clock = clockOf(redis);
  const byIoredis = byProcessClock((script, keys: readonly string[], values: readonly (string | number)[]) => {
    return redis.eval(script, keys.length, ...keys, ...values);
  });
  const byUpstash = byProcessClock((script, keys: readonly string[], values: readonly (string | number)[]) => {
    return upstash.eval(script, [...keys], [...values]);
  });
  for (const scripts of [[byIoredis, byIoredis], [byIoredis, byUpstash]]) {
    const journals = (options: { expireIn?: number }) => {
      const shared = own(options);
      return scripts.map((script) => scaledJournal(scriptJournal(script, shared)));
    };
    await journalLaws(journals, clock);
  }
});

onRedis("redisStore() and redisKeyValue() keep the laws with the package redis", async (redis, port) => {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  await checkAll(nodeRedis(client), redis);
  client.destroy();
});

onRedis("upstashStore() and upstashKeyValue() keep the laws with @upstash/redis", async (redis) => {
  await using server = upstashServer((command, ...values) => redis.call(command, ...values));
  const { url, token } = server;
  const upstash: UpstashClient = new Upstash({ url, token, enableTelemetry: false });
  using clock = clockOf(redis);
  const aged: UpstashClient = { eval: byProcessClock((...script) => upstash.eval(...script)) };
  const stores = (options: { expireIn?: number }) => {
    const shared = own(options);
    return [1, 2].map(() => scaledJournal(upstashStore(aged, shared).journal));
  };
  await journalLaws(stores, clock);
  await keyValueLaws(() => scaled(upstashKeyValue(upstash, own())), clock);
});

onRedis(
  "redisStore() and upstashStore() move the sessions of earlier versions to journals",
  async (redis) => {
    await using server = upstashServer((command, ...values) => redis.call(command, ...values));
    const { url, token } = server;
    const upstash: UpstashClient = new Upstash({ url, token, enableTelemetry: false });
    const stores: readonly ((spend: () => void, prefix: string) => Store)[] = [
      (spend, prefix) => {
        const limited: RedisClient = {
          eval(...script) {
            spend();
            return redis.eval(...script);
          },
          info: (section) => redis.info(section),
          duplicate: () => redis.duplicate(),
        };
        return redisStore(limited, { prefix, ...quiet });
      },
      (spend, prefix) => {
        const limited: UpstashClient = {
          eval(...script) {
            spend();
            return upstash.eval(...script);
          },
        };
        return upstashStore(limited, { prefix });
      },
    ];
    for (const open of stores) {
      await moveLaws(() => {
        const prefix = crypto.randomUUID();
        return {
          earlier: earlierRedis((script, keys, values) => redis.eval(script, keys.length, ...keys, ...values), prefix),
          open: (requests) => open(dying(requests), prefix),
        };
      });
    }
  },
);

onRedis("20 connections save the same version: one wins", async (redis, port) => {
  using other = connect(port);
  for (let version = 0; version < 3; version++) {
    const saves = Array.from(
      { length: 20 },
      (_, index) => redisStore(index % 2 ? redis : other).save({ id: "s", version, messages: [user(`${index}`)] }),
    );
    assertEquals((await Promise.all(saves)).filter((saved) => saved !== undefined), [version + 1]);
  }
});

onRedis("a follower is notified of events that another process adds, also after its subscription was lost", async (
  redis,
  port,
) => {
  using other = connect(port);
  const [writer, reader] = [redisStore(redis), redisStore(other, { pollEvery: 60_000 })];
  const run = await beginRun(writer.journal, "r");
  await run.add("1");
  const pages = followed(reader.journal, "r");
  assertEquals((await pages.next()).value?.lines, ["1"]);
  for (let after = 1; after < 20; after++) {
    const next = pages.next();
    if (after === 10) await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    await run.add(`${after + 1}`);
    assertEquals((await next).value?.lines, [`${after + 1}`]);
  }
  const end = pages.next();
  await run.end();
  assertEquals((await end).done, true);
  const channels = () => redis.call("PUBSUB", "CHANNELS"); // of open subscriptions; Redis notices a closed one soon
  for (let tries = 0; tries < 100 && String(await channels()) !== ""; tries++) await delay(20);
  assertEquals(await channels(), []);
});

onRedis(
  "redisStore() is notified of changes of other processes, on one connection for all stores of a client",
  async (redis, port) => {
    using other = connect(port);
    const [one, two, three] = [redisStore(redis, quiet), redisStore(other, quiet), redisStore(other, quiet)];
    const key = journalKey(undefined, "s");
    let change = Promise.withResolvers<void>();
    const leave = two.journal.watch(key, { notify: () => change.resolve(), fail: (error) => change.reject(error) });
    await change.promise; // the subscription has begun
    const run = await beginRun(one.journal, "r");
    await run.add("1");
    const pages = followed(three.journal, "r");
    assertEquals((await pages.next()).value?.lines, ["1"]);
    assertEquals(String(await redis.call("CLIENT", "LIST", "TYPE", "pubsub")).trim().split("\n").length, 1);
    for (let version = 0; version < 5; version++) {
      change = Promise.withResolvers();
      if (version === 3) await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
      await one.save({ id: "s", version, messages: [user(`${version}`)] });
      await change.promise;
    }
    leave();
    await one.journal.delete("r");
    assertEquals((await pages.next()).done, true);
  },
);

onRedis("a client follows in one process the run that another process executes", async (redis, port) => {
  using other = connect(port);
  const [one, two] = [redis, other].map((redis) =>
    serve(agent({ model: scripted("Hello!") }), { store: redisStore(redis) })
  );
  assert(one && two);
  const headers = { "content-type": "application/json" };
  const response = await one.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
  const events = await response.text();
  const run = /"run":"([^"]+)"/.exec(events)?.[1];
  assertEquals(await (await two.request(`/runs/${run}?after=0`)).text(), events);
});

onRedis("redisStore() keeps a session until expireIn after the end of its lease", async (redis) => {
  const store = redisStore(redis, { expireIn: 1_000, ...quiet });
  const session = { id: "s", messages: [] };
  const key = journalKey(undefined, "s");
  const kept = async () => Math.ceil(await redis.pttl(`jizai:{journal:${key}}:head`) / 100_000);
  const lease = { until: Date.now() + 150_000 };
  assertEquals([await store.save({ ...session, version: 0, lease }), await kept()], [1, 2]);
  const { mark } = await store.journal.head(key) ?? {};
  const renewed = await store.journal.append(key, { from: mark, to: { holder: "h", n: 2 }, due: 250_000 });
  assertEquals([renewed?.stored, await kept()], [true, 3]);
  assertEquals([await store.save({ ...session, version: 2 }), await kept()], [3, 1]);
});

onRedis(
  "sweep() of redisStore() removes expired sessions from its indexes, and delete() those that it deletes",
  async (redis) => {
    const names = ["of:", "due", "expiries", "ends"];
    const sizes = () => Promise.all(names.map((name) => redis.zcard(`{jizai}:journals:${name}`)));
    const store = redisStore(redis, { expireIn: 50 });
    await store.save({ id: "old", version: 0, messages: [], lease: { until: 1 } });
    assertEquals(await sizes(), [1, 1, 1, 0]);
    await delay(60);
    const monthly = redisStore(redis, { expireIn: 1_000_000 });
    await monthly.save({ id: "new", version: 0, messages: [], lease: { until: 1 } });
    await (await serve(agent({ model: scripted("Hello!") }), { store: monthly, session: () => "ended" }).request(
      "/runs",
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"prompt":"Hi"}',
      },
    )).text();
    assertEquals(await sizes(), [3, 3, 3, 1]);
    assertEquals([await store.journal.sweep(1, 100_000), await store.journal.sweep(1, 100_000)], [1, 0]);
    assertEquals([await sizes(), await store.list()], [[2, 2, 2, 1], ["ended", "new"]]);
    for (const id of ["ended", "new"]) await store.delete(id);
    assertEquals(await sizes(), [0, 0, 0, 0]);
  },
);

onRedis("a server that can lose data causes warnings, and a safe one causes none", async (redis) => {
  const warnings: string[] = [];
  const warned = async () => {
    redisStore(redis, { onWarning: (message) => warnings.push(message) });
    await delay(100);
    return warnings.splice(0);
  };
  assertEquals(await warned(), []);
  await redis.config("SET", "appendonly", "no");
  await redis.config("SET", "maxmemory", "100mb");
  await redis.config("SET", "maxmemory-policy", "allkeys-lru");
  assertEquals(await warned(), [
    'Redis can lose sessions and events: maxmemory-policy is "allkeys-lru"; expected "noeviction"',
    'Redis can lose sessions and events: appendonly is "no"; expected "yes" with appendfsync "always"',
  ]);
});

onRedis("an append to a journal that Redis has lost is refused, and a stream of it ends", async (redis) => {
  const { journal } = redisStore(redis);
  const run = await beginRun(journal, "r");
  await run.add("1", "2");
  const pages = followed(journal, "r");
  assertEquals((await pages.next()).value?.lines, ["1", "2"]);
  await redis.flushall(); // as an eviction, or a restart without AOF
  assertEquals(await run.add("3"), undefined);
  assertEquals((await pages.next()).done, true);
  assertEquals(await journal.read("r", 1, 0), undefined);
});

onRedis("no stream continues from an older state of a journal, as Redis has it after a failover", async (redis) => {
  const { journal } = redisStore(redis);
  const run = await beginRun(journal, "r");
  await run.add("1");
  const keys = ["head", "events"].map((name) => `jizai:{journal:r}:${name}`);
  const older = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  await run.add("2", "3");
  const pages = followed(journal, "r");
  assertEquals((await pages.next()).value?.lines, ["1", "2", "3"]);
  for (const [index, key] of keys.entries()) await redis.restore(key, 0, older[index] ?? "", "REPLACE");
  assertEquals(await run.add("4"), undefined);
  assertEquals((await pages.next()).done, true);
});

onRedis("redisStore() never reads over a gap", async (redis) => {
  const { journal } = redisStore(redis);
  const run = await beginRun(journal, "r");
  for (let event = 1; event <= 3; event++) await run.add(`${event}`);
  await redis.xdel("jizai:{journal:r}:events", "1-2");
  await assertRejects(() => journal.read("r", 1, 0), Error, "the database has lost events");
  await redis.del("jizai:{journal:r}:events");
  const { first, lines, last } = await journal.read("r", 1, 0) ?? {};
  assertEquals([first, lines, last], [4, [], 3]); // as after a deletion
});
