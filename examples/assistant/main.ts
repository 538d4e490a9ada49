/**
 * Serves the assistant with a chat page, and over the protocols of other clients.
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
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { listen } from "../listen.ts";
import { assistant } from "./assistant.ts";
import { chooseModel } from "./model.ts";
import { trace } from "@jizai/jizai/trace";

const model = chooseModel();
const served = serve(assistant(model, { use: [logger()], trace }), {
  page: playground({
    prompts: [
      "Which point do I want for a timeout?",
      "How do I write a middleware?",
      "What is (1 + 2) * (3 + 4) / 5 - 6?",
    ],
  }),
  wires: [aiSdkUi(), aiSdkMessages(), agUi(), chatCompletions(), responses()],
  onClientGone: "detach", // the run continues while its page reloads
  onError: (error, { id }) => console.error(id, error),
});
/** Allows pages of this machine, on every port. */
const localPages = (origin: string) => /^http:\/\/(localhost|127\.0\.0\.1)(:\d+)?$/.test(origin) ? origin : undefined;
const app = new Hono().use(cors({ origin: localPages })).route("/", served);
const port = Number(Deno.env.get("PORT") ?? 8000);
const hostname = Deno.env.get("HOST") ?? "localhost";

listen({ port, hostname }, app.fetch, welcome);

function welcome(url: string): string {
  const curl = (path: string, body: unknown) =>
    `  curl -N ${url}${path} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    `The assistant is at ${url}, and ${model.id} answers. Open that in a browser, or ask it something here:\n`,
    curl("/runs", { prompt: "Which point do I want for a timeout?" }),
    "\nAsk for a long calculation, which needs your approval, and approve it in the session that run.started names:\n",
    curl("/runs", { prompt: "What is (1 + 2) * (3 + 4) / 5 - 6?" }),
    curl("/sessions/SESSION/answers", { answers: [{ callId: "call_1", type: "approve" }] }),
    "",
  ].join("\n");
}
