/**
 * Serves the assistant with a chat page, and over the protocols of other clients. Its sessions are in a SQLite file, so that a run survives a restart.
 *
 * ```sh
 * deno task start
 * ```
 *
 * @module
 */
import { serve } from "@jizai/jizai";
import { logger } from "@jizai/jizai/middleware/logger";
import { playground } from "@jizai/jizai/playground";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { trace } from "@jizai/jizai/trace";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { listen } from "../listen.ts";
import { assistant } from "./assistant.ts";
import { chooseModel } from "./model.ts";
import { prompts, switches } from "./tour.ts";

const root = new URL("../../", import.meta.url);
const file = Deno.env.get("TOUR_FILE") ?? fileURLToPath(new URL("dist/tour.sqlite", root));
if (!file.startsWith(":")) await Deno.mkdir(dirname(file), { recursive: true });
const database = new DatabaseSync(file);
migrate(database);

const model = chooseModel();
const closing = new AbortController();
const served = serve(assistant(model, { use: [logger()], trace }), {
  page: playground({ prompts, switches }),
  wires: [aiSdkUi(), aiSdkMessages(), agUi(), mcpWire(), chatCompletions(), responses()],
  store: sqliteStore(database),
  singleProcess: true, // a run that this process does not execute was left by the one before
  vars: (c) => ({ off: c.req.header("x-off")?.split(",") ?? [] }), // the page sends what its user turned off
  recoveryVars: () => ({ off: [] }),
  onClientGone: "detach", // the run continues while its page reloads
  signal: closing.signal,
  onError: (error, { id }) => console.error(id, error),
});
await served.recover(); // continues the runs that the last process left
await served.sweep(); // deletes what is not kept any more

/** Allows pages of this machine, on every port. */
const localPages = (origin: string) => /^http:\/\/(localhost|127\.0\.0\.1)(:\d+)?$/.test(origin) ? origin : undefined;
const app = new Hono()
  .use(cors({ origin: localPages }))
  .get("/docs/:path{.+\\.md}", async (c) => {
    const path = new URL(c.req.param("path"), root);
    const text = path.href.startsWith(root.href) ? await Deno.readTextFile(path).catch(() => undefined) : undefined;
    return text === undefined ? c.notFound() : c.text(text);
  })
  .route("/", served);
const port = Number(Deno.env.get("PORT") ?? 8000);
const hostname = Deno.env.get("HOST") ?? "localhost";

const server = listen({ port, hostname }, app.fetch, welcome);

for (const signal of Deno.build.os === "windows" ? ["SIGINT"] as const : ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, async () => {
    closing.abort(); // the next process continues the runs
    await Promise.all([served.settled(), server.shutdown()]);
    Deno.exit();
  });
}

function welcome(url: string): string {
  const curl = (path: string, body: unknown) =>
    `  curl -N ${url}${path} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    `The tour is at ${url}, and ${model.id} answers. Open that in a browser, or ask it something here:\n`,
    curl("/runs", { prompt: "How many lanterns, kettles, hooks and bowls do you have?" }),
    "\nAsk for a refund, which needs your approval, and approve it in the session that run.started names:\n",
    curl("/runs", { prompt: "Refund order 1042" }),
    curl("/sessions/SESSION/answers", { answers: [{ callId: "call_1", type: "approve" }] }),
    "",
  ].join("\n");
}
