/**
 * Serves the shop on Deno Deploy, or on this machine. Sessions and events are in Deno KV and outlive the process.
 *
 * ```sh
 * deno task start:kv
 * ```
 *
 * @module
 */
import { type Middleware, serve } from "@jizai/jizai";
import { schedule } from "@jizai/jizai/schedule";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { Hono } from "hono";
import { listen } from "../listen.ts";
import { type Customer, shop } from "../shop/shop.ts";

const onDeploy = Deno.env.has("DENO_DEPLOY");
const kv = await Deno.openKv(Deno.env.get("KV_PATH"));
const closing = new AbortController();

/** Prints each execution. Two executions with the same key are attempts at the same work. */
const journal: Middleware = {
  name: "journal",
  execute({ tool, callId, idempotencyKey }, next) {
    console.log("runs", tool.name, callId, idempotencyKey);
    return next();
  },
};

const served = serve<{ Variables: Customer }, Customer>(
  shop({ pace: Number(Deno.env.get("PACE") ?? 20), use: [journal] }),
  {
    store: denoKvStore(kv),
    lease: 10_000, // the run of an ended instance is lost ten seconds later
    singleProcess: !onDeploy, // on Deno Deploy, other instances use the same database
    owner: (c) => c.get("user"),
    vars: (c) => ({ user: c.get("user") }),
    recoveryVars: ({ owner = "guest" }) => ({ user: owner }),
    onClientGone: "detach",
    signal: closing.signal,
    onError: (error, { id }) => console.error(id, error),
  },
);

const app = new Hono<{ Variables: Customer }>()
  .use(async (c, next) => {
    c.set("user", c.req.header("x-user") ?? "guest"); // your login
    await next();
  })
  .route("/", served);

// Deno Deploy ends an instance after its traffic. Every minute, another one continues the runs that were left.
schedule(served, [{ name: "recover", cron: "* * * * *", recover: true }]).register(Deno.cron);

const port = Number(Deno.env.get("PORT") ?? 8000);
const hostname = onDeploy ? "0.0.0.0" : "127.0.0.1"; // the example has no login, so only this machine may connect
const server = listen({ port, hostname }, app.fetch, welcome);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, async () => {
    closing.abort(); // another process continues the runs, and clients reconnect to it
    await server.shutdown();
  });
}

function welcome(url: string): string {
  const curl = (path: string, body: unknown) =>
    `  curl -N ${url}${path} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    `The shop is at ${url}. Ask for an order, which needs your approval:\n`,
    curl("/runs", { prompt: "Count the kettles and order 3 lanterns" }),
    "\nKill it, start it again, and approve it in the session that run.started names:\n",
    `  kill -9 ${Deno.pid}`,
    curl("/sessions/SESSION/answers", { answers: [{ callId: "call_2", type: "approve" }] }),
    "",
  ].join("\n");
}
