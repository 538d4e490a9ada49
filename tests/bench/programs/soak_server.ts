/**
 * A server that the soak kills. It continues the runs of other processes, and appends the effects of its tools to a file: `soak_server.ts FILE`.
 *
 * @module
 */
import { agent, type Middleware, type Model, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, SlowStoreError } from "@jizai/jizai/session/durable";
import * as z from "zod";
import { openDatabase } from "../../../examples/fleet/database.ts";
import { lease, wakeEvery } from "../../support/faults/process_delays.ts";
import { savedBy } from "../../support/saving.ts";

const [ledger = ""] = Deno.args;
const database = await openDatabase({
  DATABASE_URL: Deno.env.get("DATABASE_URL"),
  REDIS_URL: Deno.env.get("REDIS_URL"),
  FLEET_FILE: Deno.env.get("FLEET_FILE"),
});
const closing = new AbortController();

/** Appends a line about a run. */
function note(what: string, run: string, rest: Readonly<Record<string, unknown>> = {}): void {
  Deno.writeTextFileSync(ledger, `${JSON.stringify({ what, run, at: Date.now(), ...rest })}\n`, { append: true });
}

const { journal } = database.store;

/** The store. It notes the claims of runs. */
const store = durable({
  ...journal,
  async append(key, append) {
    if (append.change?.entries.some(({ type }) => type === "begun")) {
      const { run } = await savedBy(journal, key, append);
      if (run) note("claims", run.id, { pid: Deno.pid });
    }
    return await journal.append(key, append);
  },
});

/** Waits for a random time. */
function pause(most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * most));
}

/** A model that makes a call in each of three turns, and then answers. */
const model: Model = {
  id: "soak",
  async *stream(request, options) {
    const turn = request.messages.filter(({ role }) => role === "tool").length + 1;
    for (const text of ["I ", "do ", `${turn}. `]) {
      await pause(40);
      yield [{ type: "text", text }];
    }
    const names = turn > 3 ? [] : turn === 2 ? ["send", "read"] : ["send"];
    const calls = names.map((name) => ({ id: `${name}_${turn}`, name, input: { n: turn } }));
    yield* scripted({ calls }).stream(request, options);
  },
};

const tools = ["send", "read"].map((name) =>
  tool({
    name,
    description: "Does something",
    input: z.object({ n: z.number() }),
    idempotent: name === "read",
    async execute({ n }, { run }) {
      await pause(100);
      note("done", run.id, { call: `${name}_${n}` });
      await pause(100);
      return `${name} did ${n}.`;
    },
  })
);

/** Notes which runs this process executes. */
const holder: Middleware = {
  name: "holder",
  async session({ run }, next) {
    note("holds", run.id, { pid: Deno.pid });
    try {
      return await next();
    } finally {
      note("left", run.id, { pid: Deno.pid });
    }
  },
};

const app = serve(agent({ model, tools, use: [holder], limits: { recoveries: 50 } }), {
  store,
  lease,
  signal: closing.signal,
  onClientGone: "detach",
  onError(error) {
    if (error instanceof SlowStoreError) return; // a database is slow on a busy machine
    note("error", "", { error: error instanceof Error ? error.stack : String(error) });
  },
});

const server = Deno.serve({
  port: 0,
  hostname: "127.0.0.1",
  onListen: ({ port }) => console.log(`http://127.0.0.1:${port}`),
}, app.fetch);

const recovery = setInterval(() => {
  app.recover().catch((error) => note("error", "", { error: String(error) }));
}, wakeEvery);

Deno.addSignalListener("SIGTERM", async () => {
  clearInterval(recovery);
  closing.abort();
  await Promise.all([server.shutdown(), app.settled()]);
  Deno.exit();
});
for await (const _ of Deno.stdin.readable); // ends with the soak
Deno.exit();
