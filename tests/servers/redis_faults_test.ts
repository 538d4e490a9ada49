import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { Redis } from "ioredis";
import { user } from "@jizai/jizai";
import { redisStore } from "@jizai/jizai/session/redis";
import { framesOf, piecesOf, post } from "../support/requests.ts";
import { assertAnswers, assertRefuses, assertSurvives, delay, servedOn } from "./faulty_run.ts";
import { isRedisMissing, type RedisServer, redisServer, safe } from "./redis_server.ts";

const ignore = await isRedisMissing();
const without = ignore ? " (left out: Redis is not installed; `apt-get install redis-server`)" : "";
const quiet = { onWarning() {} };
const storeOn = (redis: Redis) => redisStore(redis, quiet);

/** A test with a server of its own. */
function onRedis(
  name: string,
  test: (redis: Redis, server: RedisServer) => Promise<void>,
  args: readonly string[] = safe,
): void {
  Deno.test({
    name: `on Redis, ${name}${without}`,
    ignore,
    async fn() {
      await using server = await redisServer(args);
      assert(server);
      const redis = new Redis(server.port, "127.0.0.1", { maxRetriesPerRequest: 5 });
      redis.on("error", () => {}); // the requests that fail tell
      try {
        await test(redis, server);
      } finally {
        redis.disconnect();
      }
    },
  });
}

onRedis(
  "with its append-only file, a run loses and repeats nothing if the server is killed and started again",
  (redis, server) =>
    assertSurvives(storeOn(redis), async () => {
      await server.control("kill");
      await server.control("start");
    }),
);

onRedis(
  "a run loses and repeats nothing if the server pauses for a second",
  (redis) =>
    assertSurvives(storeOn(redis), async () => {
      await redis.call("CLIENT", "PAUSE", "1000", "ALL");
    }),
);

onRedis(
  "without its append-only file, a run that the server has lost ends with an error, and its stream is not whole",
  async (
    redis,
    server,
  ) => {
    const { app, errors } = servedOn(storeOn(redis), 60);
    const pieces = piecesOf(await post(app, "/runs", { prompt: "Count" }));
    const begin = await pieces.until('"5 "');
    await server.control("kill");
    await server.control("start");
    const events = framesOf(begin + await pieces.rest());
    assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
    assertEquals(events.some(({ type }) => type === "run.finished"), false);
    assertStringIncludes(errors.join(), "the store has lost it");
    await delay(2_000); // the run tries to save its end for a second
  },
  ["--appendonly", "no"],
);

onRedis("a prompt is refused while the server is down, and answered once it is up", async (redis, server) => {
  const served = servedOn(storeOn(redis));
  await server.control("kill");
  assertMatch(await assertRefuses(served), /max retries per request|has not answered within 5000 ms/); // whichever comes first
  await server.control("start");
  await assertAnswers(served);
});

onRedis("a prompt is refused while the server is read-only, with the reason", async (redis) => {
  const served = servedOn(storeOn(redis));
  await redis.call("REPLICAOF", "127.0.0.1", "1");
  assertStringIncludes(await assertRefuses(served), "READONLY");
  await redis.call("REPLICAOF", "NO", "ONE");
  await assertAnswers(served);
});

onRedis("a prompt is refused while the server is full, with the reason", async (redis) => {
  const served = servedOn(storeOn(redis));
  const store = redisStore(redis, quiet);
  await store.save({ id: "s", version: 0, messages: [user("small")] });
  await redis.config("SET", "maxmemory", "1mb");
  assertStringIncludes(await assertRefuses(served), "OOM command not allowed");
  await assertRejects(() => store.save({ id: "s", version: 1, messages: [user("more")] }), Error, "OOM");
  assertEquals((await store.load("s"))?.messages, [user("small")]);
  await redis.config("SET", "maxmemory", "0");
  await delay(10);
  await assertAnswers(served);
});
