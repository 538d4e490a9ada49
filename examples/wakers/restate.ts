/**
 * Serves the shop in a process of Deno. A service of Restate continues each run whose process died.
 *
 * ```sh
 * npx -y @restatedev/restate-server
 * deno task start:restate
 * curl localhost:9070/deployments -H 'content-type: application/json' \
 *   -d '{"uri": "http://127.0.0.1:8000/restate", "use_http_11": true}'
 * ```
 *
 * @module
 */
import { serve } from "@jizai/jizai";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { type Context, createEndpointHandler, service } from "@restatedev/restate-sdk/fetch";
import { Hono } from "hono";
import { DatabaseSync } from "node:sqlite";
import { listen } from "../listen.ts";
import { type Customer, shop } from "../shop/shop.ts";
import { wake, type Watched, watching } from "./wake.ts";

const ingress = Deno.env.get("RESTATE_INGRESS") ?? "http://127.0.0.1:8080";
const lease = Number(Deno.env.get("LEASE") ?? 10_000);
const database = new DatabaseSync(Deno.env.get("SHOP_FILE") ?? ":memory:");
migrate(database);
const store = sqliteStore(database);

/** Tells Restate to look after a run. Restate delivers that, also if this process dies now. */
async function watch(watched: Watched): Promise<void> {
  const response = await fetch(`${ingress}/waker/watch/send`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(watched),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`Cannot schedule a waker: Restate answered ${response.status}`);
}

const served = serve<{ Variables: Customer }, Customer>(
  shop({ pace: Number(Deno.env.get("PACE") ?? 20), use: [watching(watch)] }),
  {
    store,
    lease,
    owner: (c) => c.get("user"),
    vars: (c) => ({ user: c.get("user") }),
    recoveryVars: ({ owner = "guest" }) => ({ user: owner }),
    onClientGone: "detach",
  },
);

const waker = service({
  name: "waker",
  handlers: {
    /** Looks until the run has ended or paused. Restate calls it again if its process dies, and does not repeat the looks that are done. */
    async watch(ctx: Context, watched: Watched): Promise<void> {
      for (let works = true; works;) {
        await ctx.sleep(lease);
        works = await ctx.run("look", () => wake(served, store, watched));
      }
    },
  },
});

const restate = createEndpointHandler({ services: [waker] });
const app = new Hono<{ Variables: Customer }>()
  .all("/restate/*", (c) => restate(c.req.raw))
  .use(async (c, next) => {
    c.set("user", c.req.header("x-user") ?? "guest"); // your login
    await next();
  })
  .route("/", served);

const port = Number(Deno.env.get("PORT") ?? 8000);
listen({ port, hostname: "127.0.0.1" }, app.fetch, (url) => `The shop is at ${url}`);
