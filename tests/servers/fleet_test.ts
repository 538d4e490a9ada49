import { assert, assertEquals } from "@std/assert";
import { eventsOf, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { folder } from "../platforms/folder.ts";
import { isPostgresMissing, postgresServer } from "./postgres_server.ts";
import { type Program, started } from "../platforms/program.ts";
import { isRedisMissing, redisServer } from "./redis_server.ts";

const noPostgres = await isPostgresMissing();
const noRedis = await isRedisMissing();

/** Returns the name of the process that holds a run. */
async function holderOf(program: Program, run: string): Promise<string | undefined> {
  const members: readonly { readonly name: string; readonly runs: readonly string[] }[] =
    await (await program.request("/fleet")).json();
  return members.find(({ runs }) => runs.includes(run))?.name;
}

/** Returns the status of a response, whose body is not read. */
async function statusOf(response: Response | Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.cancel();
  return status;
}

/** Reads a stream until its connection is cut. */
async function untilCut(pieces: ReturnType<typeof piecesOf>): Promise<string> {
  let text = "";
  try {
    for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) text += piece;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the connection is cut
  }
  return text;
}

/** Waits until a process holds a run, without a request for the run. Returns its name. */
async function nextHolderOf(program: Program, run: string): Promise<string | undefined> {
  for (let tries = 0; tries < 200; tries++) {
    const holder = await holderOf(program, run);
    if (holder !== undefined) return holder;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return undefined;
}

/** Kills the process that holds a run in the middle of its stream. Returns all events that the client has received, and the processes that held the run. */
async function killTheHolder(program: Program): Promise<{ readonly events: Framed[]; readonly holders: unknown[] }> {
  const pieces = piecesOf(await post(program, "/runs", { prompt: "Count the kettles and deliver 2 hooks" }));
  const begin = await pieces.until("tool.progress");
  const [{ run } = { run: "" }] = framesOf(begin).filter((event) => event.type === "run.started");
  const killed = await holderOf(program, run);
  assertEquals(await statusOf(program.request(`/fleet/${killed}/kill`, { method: "POST" })), 204);
  const received = framesOf(begin + await untilCut(pieces));
  const holders = [killed, await nextHolderOf(program, run)];
  const response = await program.request(`/runs/${run}`, { headers: { "last-event-id": `${received.length}` } });
  return { events: [...received, ...framesOf(await response.text())], holders };
}

/** Tests that the rules of sessions hold between processes: each request reaches the next process. */
async function checkRules(program: Program): Promise<void> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const prompt = { prompt: "Count the kettles" };
  const pieces = piecesOf(await post(program, "/runs", prompt, headers));
  const [started] = framesOf(await pieces.until("turn.started"));
  assert(started?.type === "run.started");
  const { run, session } = started;
  const again = await post(program, "/runs", prompt, headers);
  assertEquals(first("run.started", await eventsOf(again)).run, run);
  await pieces.rest();

  const slow = piecesOf(await post(program, "/runs", { prompt: "Count the kettles and the lanterns", session }));
  const second = first("run.started", framesOf(await slow.until("turn.started"))).run;
  const busy = await refusalOf(post(program, "/runs", { prompt: "More", session }));
  assertEquals([busy[0], (busy[1] as { code?: unknown }).code], [409, "busy"]);
  const stranger = { headers: { "x-user": "stranger" } };
  assertEquals(await statusOf(program.request(`/runs/${second}`, stranger)), 404);
  assertEquals(await statusOf(program.request(`/sessions/${session}`, stranger)), 404);
  assertEquals(await statusOf(post(program, `/runs/${second}/messages`, { text: "And count the hooks" })), 202);
  assertEquals((await slow.rest()).includes("There are 31 hooks."), true);
}

/** A process of the fleet, without the others. */
async function member(env: Readonly<Record<string, string>>) {
  const args = ["run", "--no-prompt", "--allow-net", "--allow-env", "examples/fleet/server.ts"];
  const process = new Deno.Command(Deno.execPath(), {
    args,
    env: { ...env, PACE: "200" },
    stdin: "piped",
    stdout: "piped",
  })
    .spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/^serves (\S+)$/m.test(text)) text += (await output.read()).value ?? "";
  const [, url = ""] = /^serves (\S+)$/m.exec(text) ?? [];
  return {
    request: (path: string, init?: RequestInit) => fetch(url + path, init),
    /** Sends SIGTERM, and returns the exit code. */
    async end() {
      process.kill("SIGTERM");
      while (!(await output.read()).done);
      await process.stdin.close();
      return (await process.status).code;
    },
  };
}

/**
 * Ends a process with SIGTERM in the middle of a run. The client's stream ends without an error, another process continues the run, and a tool that has
 * begun is not interrupted.
 */
async function handOver(env: Readonly<Record<string, string>>): Promise<void> {
  const [one, two] = await Promise.all([member(env), member(env)]);
  const pieces = piecesOf(await post(one, "/runs", { prompt: "Count the kettles and deliver 2 hooks" }));
  const begin = await pieces.until("tool.progress");
  const ended = one.end();
  const received = framesOf(begin + await pieces.rest()); // rejects if the connection is cut
  assertEquals(await ended, 0);
  const { run } = first("run.started", received);
  const response = await two.request(`/runs/${run}`, { headers: { "last-event-id": `${received.length}` } });
  const events = [...received, ...framesOf(await response.text())];
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  assertEquals(events.flatMap((event) => event.type === "run.started" ? [event.resumed] : []), [false, true]);
  const last = events.at(-1);
  assertEquals(last?.type === "run.finished" && last.text, "There are 7 kettles. Delivered 2 hooks to guest.");
  assertEquals(await two.end(), 0);
}

for (
  const [name, ignore, install] of [["SQLite", false, ""], ["Postgres", noPostgres, "postgresql"], [
    "Redis",
    noRedis,
    "redis-server",
  ]] as const
) {
  Deno.test({
    name:
      `the fleet on ${name}: a client's stream continues in another process after a kill, and rules hold between processes${
        ignore ? ` (left out: ${name} is not installed; \`apt-get install ${install}\`)` : ""
      }`,
    ignore,
    async fn() {
      await using disk = await folder();
      await using postgres = name === "Postgres" ? await postgresServer() : undefined;
      await using redis = name === "Redis" ? await redisServer() : undefined;
      await using program = await started("start:fleet", {
        FLEET_FILE: `${disk.path}/fleet.db`,
        DATABASE_URL: postgres?.url ?? "",
        REDIS_URL: redis ? `redis://127.0.0.1:${redis.port}` : "",
      });
      await checkRules(program);
      const { events, holders } = await killTheHolder(program);
      assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
      assertEquals(events.filter(({ type }) => type === "run.finished").length, 1);
      assertEquals(events.at(-1)?.type, "run.finished");
      assertEquals(new Set(holders).size, 2);
      assertEquals(holders.includes(undefined), false);
      assertEquals(await program.end(), 0);
    },
  });
}

for (
  const [name, ignore, install] of [["Postgres", noPostgres, "postgresql"], [
    "Redis",
    noRedis,
    "redis-server",
  ]] as const
) {
  Deno.test({
    name: `on ${name}, a process that receives SIGTERM hands its run over to another process${
      ignore ? ` (left out: ${name} is not installed; \`apt-get install ${install}\`)` : ""
    }`,
    ignore,
    async fn() {
      await using postgres = name === "Postgres" ? await postgresServer() : undefined;
      await using redis = name === "Redis" ? await redisServer() : undefined;
      await handOver(postgres ? { DATABASE_URL: postgres.url } : { REDIS_URL: `redis://127.0.0.1:${redis?.port}` });
    },
  });
}
