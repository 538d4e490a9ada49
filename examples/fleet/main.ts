/**
 * Runs the shop in three processes behind a round-robin proxy, on one database. Each process serves each request, and a run continues in another process if its
 * own is killed.
 *
 * ```sh
 * deno task start:fleet
 * ```
 *
 * @module
 */
import { localOnly } from "../listen.ts";
import { type Member, startFleet } from "./fleet.ts";
import { readMetrics } from "./metrics.ts";
import { roundRobin, type Target } from "./proxy.ts";

const page = await Deno.readTextFile(new URL("page.html", import.meta.url));
let shown = "";
const fleet = await startFleet(["one", "two", "three"], show);
const forward = roundRobin(fleet.targets);

/** Prints the processes and their runs, if they have changed. */
function show(members: readonly Member[]): void {
  const line = members.map(({ name, alive, runs }) => `${name}: ${alive ? runs.join(" ") || "idle" : "dead"}`).join(
    "   ",
  );
  if (line !== shown) console.log(line);
  shown = line;
}

/** Answers a request of the page, or forwards it. */
async function handle(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [, killed] = pathname.match(/^\/fleet\/(\w+)\/kill$/) ?? [];
  if (pathname === "/") return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
  if (pathname === "/fleet") return Response.json(fleet.members());
  if (pathname === "/fleet/metrics") return Response.json(await readMetrics(fleet.targets()));
  if (pathname === "/fleet/targets") return Response.json(fleet.targets().map(discovered));
  if (request.method === "POST" && killed) return new Response(null, { status: await fleet.kill(killed) ? 204 : 404 });
  return await forward(request);
}

/** Returns a process as Prometheus discovers it, with `http_sd_configs`. */
function discovered({ name, url }: Target): object {
  return { targets: [new URL(url).host], labels: { process: name } };
}

const server = Deno.serve({
  port: Number(Deno.env.get("PORT") ?? 8000),
  hostname: "127.0.0.1", // the example has no login, so only this machine may connect
  onListen: ({ port }) => console.log(welcome(`http://127.0.0.1:${port}`)),
}, localOnly("127.0.0.1", handle));

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, async () => {
    await Promise.all([fleet.end(), server.shutdown()]);
    Deno.exit();
  });
}

function welcome(url: string): string {
  return [
    `The shop is at ${url}, which also shows the processes. Ask for something that takes a while:\n`,
    `  curl -N ${url}/runs -H 'content-type: application/json' -d '{"prompt":"Count the kettles and the lanterns"}'`,
    "\nKill the process that holds the run, and read the rest from another one:\n",
    `  curl -X POST ${url}/fleet/one/kill`,
    `  curl -N ${url}/runs/RUN -H 'last-event-id: 5'\n`,
  ].join("\n");
}
