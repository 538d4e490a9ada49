/**
 * A process of the drill, which logs as the page "Operate" says: one line of JSON for each fact and each error, and its load once a second. Its tools break it.
 *
 * @module
 */
import { agent, type Model, serve, textOf, tool } from "@jizai/jizai";
import { SlowStoreError } from "@jizai/jizai/session/durable";
import { postgresStore } from "@jizai/jizai/session/postgres";
import { Hono } from "hono";
import postgres from "postgres";
import * as z from "zod";

/** Writes one JSON line. */
function log(line: object): void {
  console.log(JSON.stringify({ at: new Date().toISOString(), ...line }));
}

/** Calls the tool that the prompt names, once, and answers with as many tokens as it asks for. */
const model: Model = {
  id: "drill",
  async *stream({ messages }) {
    const asked = messages.findLast((message) => message.role === "user");
    const prompt = asked ? textOf(asked) : "";
    const [word = "", tokens = "10"] = prompt.split(" ");
    await new Promise((resolve) => setTimeout(resolve, 100));
    const isCalled = messages.some(({ role }) => role === "tool");
    const usage = { input: Number(tokens), output: 10 };
    if (isCalled || !(word in { hoard: 0, crash: 0 })) {
      yield [{ type: "text", text: "Done." }, { type: "finish", reason: "stop", usage }];
    } else {
      yield [{ type: "call.start", id: "c1", name: word }, { type: "call.end", id: "c1", name: word }, {
        type: "finish",
        reason: "calls",
        usage,
      }];
    }
  },
};

const input = z.object({});
const crash = tool({
  name: "crash",
  description: "Ends the process",
  input,
  idempotent: true,
  execute: () => Deno.exit(1),
});
const hoard = tool({
  name: "hoard",
  description: "Takes all memory",
  input,
  idempotent: true,
  async execute() {
    const held: string[][] = [];
    for (;;) {
      held.push(Array.from({ length: 200_000 }, (_, index) => `${index} of ${held.length}`));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
});

const store = postgresStore(postgres(Deno.args[0] ?? "", { onnotice: () => {}, fetch_types: false, max: 4 }));
const served = serve<{ Variables: { user: string } }>(agent({ model, tools: [crash, hoard] }), {
  store,
  lease: 2_000,
  storeDeadline: 1_000,
  capacity: { runs: 100, streams: 200, bytes: 48 * 2 ** 20 },
  limits: { recoveries: 3 },
  owner: (c) => c.get("user"),
  onClientGone: "detach",
  observe(fact) {
    if (fact.type !== "store.called" && fact.type !== "model.used") log(fact);
  },
  onError(error, info) {
    const message = error instanceof Error ? error.message : String(error);
    log({ type: error instanceof SlowStoreError ? "slow" : "error", message, ...info });
  },
});
const app = new Hono<{ Variables: { user: string } }>()
  .use(async (c, next) => {
    c.set("user", c.req.header("x-user") ?? "guest");
    await next();
  })
  .route("/", served);

setInterval(() => log({ type: "stats", heap: Deno.memoryUsage().heapUsed, ...served.stats() }), 1_000);
setInterval(() => served.recover().catch((error) => log({ type: "error", message: String(error) })), 1_000);
Deno.serve({
  port: 0,
  hostname: "127.0.0.1",
  onListen: ({ port }) => log({ type: "serves", url: `http://127.0.0.1:${port}` }),
}, app.fetch);
