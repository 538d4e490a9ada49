/**
 * A drill for operators: three processes behind a proxy on Postgres, with the load of five tenants. Four faults happen one after another: a frozen database, a
 * process out of memory, a run that keeps dying, and a tenant that uses most of the tokens. Prints for each the lines of the log that tell of it, as the page
 * "Operate" reads them, and exits with 1 if one is not visible.
 *
 * @module
 */
import { migrate } from "@jizai/jizai/session/postgres";
import postgres from "postgres";
import { roundRobin } from "../../examples/fleet/proxy.ts";
import { postgresServer } from "../servers/postgres_server.ts";

/** A line of a log: a fact, an error, the load of a process, or its exit. */
interface Line {
  readonly process: string;
  readonly at: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

const lines: Line[] = [];
const targets = new Map<string, string>();
const children = new Map<string, Deno.ChildProcess>();
let isOver = false;

function log(process: string, line: { readonly type: string }): void {
  lines.push({ ...line, process, at: performance.now() });
}

/** Starts a process with a small heap, and again when it dies, as an orchestrator does. */
async function keepAlive(name: string, url: string): Promise<void> {
  while (!isOver) {
    const path = new URL("programs/drill_server.ts", import.meta.url).pathname;
    const flags = ["--no-check", "--no-prompt", "--allow-net", "--allow-env", "--v8-flags=--max-old-space-size=96"];
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", ...flags, path, url],
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    children.set(name, child);
    const errors = new Response(child.stderr).text();
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const line = JSON.parse(part);
        if (line.type === "serves") targets.set(name, line.url);
        log(name, line);
      }
    }
    targets.delete(name);
    const { code, signal } = await child.status;
    const [message = ""] = /Fatal.*|.*out of memory.*/.exec(await errors) ?? [];
    if (!isOver) log(name, { type: "exit", ...{ code, signal, message } });
  }
}

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const handle = roundRobin(() => Array.from(targets, ([name, url]) => ({ name, url })));

async function prompt(user: string, text: string): Promise<number> {
  const headers = { "content-type": "application/json", "x-user": user };
  const request = new Request("http://proxy/runs", { method: "POST", headers, body: JSON.stringify({ prompt: text }) });
  const response = await handle(request);
  await response.text().catch(() => {}); // its process may die
  return response.status;
}

/** Sends a prompt of a tenant ten times a second. "big" uses half of the tokens. */
async function load(): Promise<void> {
  for (let number = 0; !isOver; number++) {
    const user = ["big", "ada", "bob", "cy", "di"][number % 5] ?? "";
    prompt(user, user === "big" ? "hi 400" : "hi 100");
    await delay(100);
  }
}

/** A line that tells an operator of a fault, as a row of the page says. */
interface Sign {
  readonly what: string;
  readonly tells: (line: Line) => boolean;
}

const missed: string[] = [];

/** Lets a fault happen, and prints which of its signs are in the log, and how long after its start. */
async function drill(fault: string, work: () => Promise<void>, signs: readonly Sign[]): Promise<void> {
  const began = performance.now();
  await work();
  console.log(`\n${fault}`);
  for (const { what, tells } of signs) {
    const found = lines.filter((line) => line.at >= began && tells(line));
    const [first] = found;
    if (!first) missed.push(`${fault}: ${what}`);
    const { process, at, ...fields } = first ?? { process: "", at: 0 };
    console.log(
      first
        ? `  ${what}: ${found.length} lines, after ${((at - began) / 1_000).toFixed(1)} s`
        : `  ${what}: NOT VISIBLE`,
    );
    if (first) console.log(`    ${process} ${JSON.stringify(fields).slice(0, 220)}`);
  }
}

await using server = await postgresServer();
if (!server) throw new Error("Cannot drill: Postgres is not installed (`apt-get install postgresql`)");
const sql = postgres(server.url, { onnotice: () => {} });
await migrate(sql);
await sql.end();
const processes = ["one", "two", "three"].map((name) => keepAlive(name, server.url));
while (targets.size < 3) await delay(100);
const loading = load();
await delay(3_000);

await drill("A frozen database", async () => {
  await server.control("freeze");
  await delay(5_000);
  await server.control("thaw");
  await delay(5_000);
}, [
  { what: "store.slow names the operation", tells: ({ type }) => type === "store.slow" },
  {
    what: "requests are refused with 503",
    tells: ({ type, status, code }) => type === "request.refused" && status === 503 && code === "unavailable",
  },
  { what: "store.recovered tells how long it took", tells: ({ type }) => type === "store.recovered" },
]);

await drill("A process out of memory", async () => {
  prompt("eve", "hoard 10");
  await delay(15_000);
}, [
  { what: "a process exits", tells: ({ type }) => type === "exit" },
  {
    what: "the memory of a process grows in its stats",
    tells: ({ type, heap }) => type === "stats" && Number(heap) > 48 * 2 ** 20,
  },
  {
    what: "the run that it executed continues elsewhere",
    tells: ({ type, before, owner }) => type === "run.started" && before === "lost" && owner === "eve",
  },
]);

await drill("A run that keeps dying", async () => {
  prompt("mal", "crash 10");
  await delay(20_000);
}, [
  {
    what: "run.started with the number of deaths",
    tells: ({ type, recoveries, owner }) => type === "run.started" && Number(recoveries) >= 2 && owner === "mal",
  },
  {
    what: "run.ended with the reason recoveries",
    tells: ({ type, reason, owner }) => type === "run.ended" && reason === "recoveries" && owner === "mal",
  },
]);

const tokens = new Map<string, number>();
await drill("A tenant that uses half of the tokens", async () => {
  const began = performance.now();
  await delay(5_000);
  for (const { at, type, owner, usage } of lines) {
    const { input = 0, output = 0 } = (usage ?? {}) as { readonly input?: number; readonly output?: number }; // of a fact
    if (at >= began && type === "run.ended") tokens.set(`${owner}`, (tokens.get(`${owner}`) ?? 0) + input + output);
  }
}, [{
  what: "run.ended has the tokens and the owner",
  tells: ({ type, owner, usage }) => type === "run.ended" && owner === "big" && usage !== undefined,
}]);
const all = [...tokens.values()].reduce((sum, each) => sum + each, 0);
for (const [owner, each] of [...tokens].sort(([, a], [, b]) => b - a)) {
  console.log(`    ${owner}: ${Math.round(100 * each / all)} %`);
}

isOver = true;
await loading;
for (const child of children.values()) child.kill("SIGKILL");
await Promise.all(processes);
if (missed.length > 0) {
  console.log(`\nNot visible:\n${missed.map((each) => `  ${each}`).join("\n")}`);
  Deno.exitCode = 1;
}
