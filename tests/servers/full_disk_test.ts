import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { user } from "@jizai/jizai";
import { migrate, postgresStore } from "@jizai/jizai/session/postgres";
import { type RedisClient, redisStore, type RedisSubscriber } from "@jizai/jizai/session/redis";
import { Redis } from "ioredis";
import postgres from "postgres";
import { assertAnswers, assertRefuses, servedOn } from "./faulty_run.ts";
import { isPostgresMissing, postgresServer } from "./postgres_server.ts";
import { isRedisMissing, type RedisServer, redisServer } from "./redis_server.ts";
import { isMountRefused } from "./small_disk.ts";

const noDisk = await isMountRefused() && "mounting a disk is not permitted";
const noPostgres = noDisk || await isPostgresMissing() && "Postgres is not installed; `apt-get install postgresql`";
const noRedis = noDisk || await isRedisMissing() && "Redis is not installed; `apt-get install redis-server`";
const left = (missing: string | false) => missing ? ` (left out: ${missing})` : "";

/** Messages that do not fit into what is left in the files of a server. */
const texts = Array.from({ length: 2_000 }, () => user(crypto.randomUUID().repeat(4)));

/** Connects to Postgres until it is disposed of. */
function connect(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { onnotice: () => {}, max: 4, fetch_types: false });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 0 }) });
}

const quiet = { onWarning() {} };

/** Connects to Redis until it is disposed of. Commands fail while the server is down. */
function connectRedis({ port }: RedisServer): RedisClient & Disposable {
  const redis: RedisClient & RedisSubscriber = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: 1 });
  redis.on("error", () => {}); // the commands that fail tell
  return Object.assign(redis, { [Symbol.dispose]: () => redis.disconnect() });
}

Deno.test({
  name: `on Postgres, a prompt is refused while the disk is full, with the reason, and accepted afterwards${
    left(noPostgres)
  }`,
  ignore: noPostgres !== false,
  async fn() {
    await using server = await postgresServer({ diskMegabytes: 8 });
    assert(server);
    await using sql = connect(server.url);
    await sql.unsafe(`CREATE TABLESPACE small LOCATION '${server.disk}'`);
    await sql.unsafe("ALTER DATABASE postgres SET default_tablespace = small");
    await using small = connect(server.url); // connections with the new default
    await migrate(small);
    const store = postgresStore(small);
    const served = servedOn(store);
    await server.control("fill");
    assertStringIncludes(await assertRefuses(served), "No space left on device");
    await server.control("free");
    await assertAnswers(served);
    await store.save({ id: "s", version: 0, messages: [user("kept")] });
    await server.control("fill");
    const error = await store.save({ id: "s", version: 1, messages: texts }).then(() => undefined, String);
    assertStringIncludes(error ?? "", "No space left on device");
    assertEquals(await store.load("s"), { id: "s", version: 1, messages: [user("kept")] });
  },
});

Deno.test({
  name: `on Redis, a full disk ends the server, a prompt is refused, and nothing is lost when it starts again${
    left(noRedis)
  }`,
  ignore: noRedis !== false,
  sanitizeOps: false, // the refused run still tries to store its end
  sanitizeResources: false,
  async fn() {
    await using server = await redisServer(undefined, 8);
    assert(server);
    using before = connectRedis(server);
    const store = redisStore(before, quiet);
    const served = servedOn(store);
    await assertAnswers(served);
    await store.save({ id: "s", version: 0, messages: [user("kept")] });
    await server.control("fill");
    await assertRejects(() => store.save({ id: "s", version: 1, messages: texts }));
    await assertRefuses(served);
    await server.control("free");
    await server.control("start");
    using after = connectRedis(server);
    await assertAnswers(servedOn(redisStore(after, quiet)));
    assertEquals((await redisStore(after, quiet).load("s"))?.messages, [user("kept")]);
  },
});
