/** The code of a failure, in the native stream and in every wire. */
import { agent, ModelError, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import type { ModelErrorOptions } from "@jizai/jizai/engine";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { eventsOf, first, post } from "../support/requests.ts";

const limited = { status: 429, retryAfter: 1500 };

/** Serves an agent whose model fails with `options`, or with an error that is not a `ModelError`. */
function failing(options?: ModelErrorOptions) {
  const error = options ? new ModelError("secret", options) : new Error("secret");
  const model = scripted({ error });
  const errors: unknown[] = [];
  const ids: string[] = [];
  const app = serve(agent({ model }), {
    wires: [chatCompletions(), responses(), agUi(), aiSdkUi()],
    onError(error, { id }) {
      errors.push(error);
      ids.push(id);
    },
  });
  return { app, errors, ids };
}

const chat = { messages: [{ role: "user", content: "Hi" }] };

/** Returns the JSON of the frames of a stream. */
async function framesOf(response: Response) {
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

Deno.test("run.failed contains the code of the ModelError and retryAfter, and no internal message", async () => {
  const { app, errors, ids } = failing(limited);
  const { id: _, ...failed } = first("run.failed", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals(failed, {
    type: "run.failed",
    error: ids[0] ?? "",
    message: "The run failed.",
    code: "rate_limited",
    retryAfter: 1500,
    usage: { input: 0, output: 0 },
  });
  assertEquals(errors.length, 1);
});

Deno.test("run.failed has the code internal for all other errors", async () => {
  const { app } = failing();
  const { code, retryAfter } = first("run.failed", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals([code, retryAfter], ["internal", undefined]);
});

Deno.test("chatCompletions() and responses() answer a failure with its status, code and retry-after", async () => {
  const cases = [
    [limited, 429, "rate_limited", "2"],
    [{ status: 529 }, 503, "overloaded", null],
    [{ status: 500 }, 502, "unavailable", null],
    [{ status: 401 }, 502, "unauthorized", null],
    [{ overflow: true }, 413, "context", null],
    [undefined, 500, "internal", null],
  ] as const;
  for (const [options, status, code, retryAfter] of cases) {
    for (const [path, body] of [["/v1/chat/completions", chat], ["/v1/responses", { input: "Hi" }]] as const) {
      const { app, ids } = failing(options);
      const response = await post(app, path, body);
      const { error } = await response.json();
      assertEquals([response.status, response.headers.get("retry-after")], [status, retryAfter]);
      assertEquals(error, {
        message: "The run failed.",
        type: "server_error",
        code,
        id: ids.at(-1),
        ...(retryAfter !== null && { retry_after: 1.5 }),
      });
    }
  }
});

Deno.test("streams of every wire contain the code of a failure and retryAfter", async () => {
  const send = (path: string, body: object) => post(failing(limited).app, path, body);
  const completion = await framesOf(await send("/v1/chat/completions", { ...chat, stream: true }));
  const { error } = completion.find((frame) => frame.error);
  assertEquals([error.code, error.retry_after], ["rate_limited", 1.5]);

  const response = await framesOf(await send("/v1/responses", { input: "Hi", stream: true }));
  const failed = response.find(({ type }) => type === "response.failed").response.error;
  assertEquals([failed.code, failed.retry_after], ["rate_limited", 1.5]);

  const messages = [{ id: "1", role: "user", content: "Hi" }];
  const agUiFrames = await framesOf(await send("/ag-ui", { threadId: "t", runId: "r", messages }));
  const { code, metadata: { retryAfter } } = agUiFrames.find(({ type }) => type === "RUN_ERROR");
  assertEquals([code, retryAfter], ["rate_limited", 1500]);

  const uiMessages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Hi" }] }];
  const chunks = await framesOf(await send("/chat", { id: "c", messages: uiMessages }));
  const [metadata, chunk] = chunks.slice(-2);
  assertEquals([metadata.type, metadata.messageMetadata.code, metadata.messageMetadata.retryAfter], [
    "message-metadata",
    "rate_limited",
    1500,
  ]);
  assertEquals(chunk, { type: "error", errorText: "The run failed." });
});
