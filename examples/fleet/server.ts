/**
 * One process of the fleet. It serves the shop, and prints the runs that it begins to hold and no longer holds. It ends with the process that has started it.
 *
 * @module
 */
import { type Middleware, type Scope, serve } from "@jizai/jizai";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { Hono } from "hono";
import { localOnly } from "../listen.ts";
import { type Customer, shop } from "../shop/shop.ts";
import { openDatabase } from "./database.ts";
import { processMetrics } from "./metrics.ts";

const { store, keyValue } = await openDatabase({
  DATABASE_URL: Deno.env.get("DATABASE_URL"),
  REDIS_URL: Deno.env.get("REDIS_URL"),
  FLEET_FILE: Deno.env.get("FLEET_FILE"),
});
const closing = new AbortController();

/** Prints which runs this process holds. */
const holder: Middleware = {
  name: "holder",
  async session({ run }, next) {
    console.log("holds", run.id);
    try {
      return await next();
    } finally {
      console.log("released", run.id);
    }
  },
};

/** Counts the prompts of a user over all processes. */
const limit = rateLimit({ per: ({ vars }: Scope<Customer>) => vars.user, limit: 100, window: 60_000, keyValue });

const metrics = processMetrics();

const served = serve<{ Variables: Customer }, Customer>(
  shop({ pace: Number(Deno.env.get("PACE") ?? 200), use: [holder, limit] }),
  {
    store,
    lease: 2_000, // a run counts as lost two seconds after its process was killed
    owner: (c) => c.get("user"),
    vars: (c) => ({ user: c.get("user") }),
    onClientGone: "detach",
    recoveryVars: ({ owner = "guest" }) => ({ user: owner }),
    signal: closing.signal,
    observe: metrics.observe,
    onError: (error, { id }) => console.error(id, error),
  },
);

metrics.watch(served);

const app = new Hono<{ Variables: Customer }>()
  .get("/metrics", async (c) => c.text(await metrics.text()))
  .use(async (c, next) => {
    c.set("user", c.req.header("x-user") ?? "guest"); // your login
    await next();
  })
  .route("/", served);

const server = Deno.serve({
  port: 0,
  hostname: "127.0.0.1",
  onListen: ({ port }) => console.log(`serves http://127.0.0.1:${port}`),
}, localOnly("127.0.0.1", app.fetch));

const recovery = setInterval(async () => {
  try {
    await served.recover(); // continues runs whose process was killed, also if no client asks for them
  } catch (error) {
    console.error("recover", error);
  }
}, 1_000);

const sweeping = setInterval(() => served.sweep().catch((error) => console.error("sweep", error)), 3_600_000); // deletes what is not kept any more

/** Hands the runs over to the other processes, and ends. */
async function end(): Promise<never> {
  clearInterval(recovery);
  clearInterval(sweeping);
  closing.abort();
  await Promise.all([server.shutdown(), served.settled()]);
  Deno.exit();
}

Deno.addSignalListener("SIGTERM", end);
for await (const _ of Deno.stdin.readable);
await end();
