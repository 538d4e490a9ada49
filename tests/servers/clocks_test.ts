import { assertEquals } from "@std/assert";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { isPostgresMissing, postgresServer } from "./postgres_server.ts";
import { isRedisMissing, redisServer } from "./redis_server.ts";
import { servedBy } from "./server_program.ts";

/** Starts a server whose clock is wrong by `ms`. Without an `answer`, its model waits. */
function shifted(ms: number, env: Readonly<Record<string, string>>, ...answer: readonly string[]) {
  return servedBy([
    "run",
    "--no-check",
    "--quiet",
    "--allow-all",
    "tests/servers/shifted_server.ts",
    `${ms}`,
    ...answer,
  ], env);
}

/** Takes a run from a server whose clock is right to one whose clock is slow, while another one is fast. */
async function checkClocks(env: Readonly<Record<string, string>>): Promise<void> {
  const minutes = 60_000;
  await using fast = await shifted(10 * minutes, env, "Stolen.");
  await using slow = await shifted(-10 * minutes, env, "Whole.");
  const right = await shifted(0, env);
  const pieces = piecesOf(await post(right, "/runs", { prompt: "Hi" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("Half")));
  assertEquals(await (await fast.request("/recover")).json(), []);
  const [status] = await refusalOf(post(fast, "/runs", { prompt: "More", session }));
  assertEquals(status, 409);
  await right[Symbol.asyncDispose](); // hands the run over
  await pieces.rest();
  assertEquals(await (await slow.request("/recover")).json(), [run]);
  const last = (await eventsOf(slow.request(`/runs/${run}?after=0`))).at(-1);
  assertEquals(last?.type === "run.finished" && last.text, "Whole.");
}

for (
  const [name, missing, install] of [
    ["Postgres", await isPostgresMissing(), "postgresql"],
    ["Redis", await isRedisMissing(), "redis-server"],
  ] as const
) {
  Deno.test({
    name:
      `on ${name}, a server whose clock is ten minutes fast or slow takes over a run when its lease ends, and not before${
        missing ? ` (left out: ${name} is not installed; \`apt-get install ${install}\`)` : ""
      }`,
    ignore: missing,
    async fn() {
      await using postgres = name === "Postgres" ? await postgresServer() : undefined;
      await using redis = name === "Redis" ? await redisServer() : undefined;
      await checkClocks(postgres ? { DATABASE_URL: postgres.url } : { REDIS_URL: `redis://127.0.0.1:${redis?.port}` });
    },
  });
}
