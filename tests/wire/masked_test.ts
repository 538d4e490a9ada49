/**
 * Secrets in messages from outside, in every wire.
 */
import { agent, type Middleware, serve, tool } from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const wires = [mcpWire(), chatCompletions(), responses(), agUi(), aiSdkUi(), aiSdkMessages()];
const chat = [{ role: "user", content: "Go" }];

/** The path of each wire, and a request that begins a run and streams it. */
const requests = {
  "/runs": { prompt: "Go" },
  "/v1/chat/completions": { messages: chat, stream: true },
  "/v1/responses": { input: "Go", stream: true },
  "/mcp": {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "agent", arguments: { prompt: "Go" }, _meta: { progressToken: 1 } },
  },
  "/ag-ui": { threadId: "t", runId: "r", messages: [{ id: "1", ...chat[0] }] },
  "/chat": { id: "c", messages: [{ id: "1", role: "user", parts: [{ type: "text", text: "Go" }] }] },
};

for (const [path, body] of Object.entries(requests)) {
  Deno.test(`a steered secret is masked in the stream, the session and the transcript of ${path}`, async () => {
    const statuses: number[] = [];
    const ids: string[] = [];
    const work = tool({
      name: "work",
      description: "Works",
      input: z.object({}),
      async execute(_input, { run }) {
        ids.push(run.session);
        statuses.push((await post(app, `/runs/${run.id}/messages`, { text: "Use hunter2" })).status);
        return "Worked.";
      },
    });
    const model = scripted({ calls: [["work", {}]] }, "Done.");
    const app = serve(agent({ model, tools: [work], use: [redact({ secrets: ["hunter2"] })] }), { wires });
    const stream = await (await post(app, path, body)).text();
    const [session = ""] = ids;
    const stored = await (await app.request(`/sessions/${encodeURIComponent(session)}`)).text();
    const response = await app.request("/chat/c");
    assertEquals(response.status, path === "/chat" ? 200 : 404);
    const shown = await response.text();
    assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), "user Use [redacted]");
    const masked = [stream, stored, shown].map((text) => text.includes("hunter2"));
    assertEquals([statuses, masked, stored.includes("Use [redacted]")], [[202], [false, false, false], true]);
  });
}

Deno.test("a secret in the result of a tool that the client runs is masked before the model reads it", async () => {
  const model = scripted({ calls: [["paint", {}]] }, "Done.");
  const reviews: string[] = [];
  const watch: Middleware = {
    name: "watch",
    input(ctx, next) {
      reviews.push(`${ctx.source}: ${lines(ctx.messages).join()}`);
      return next();
    },
  };
  const app = serve(agent({ model, use: [redact({ secrets: ["hunter2"] }), watch] }), { wires });
  const tools = [{ type: "function", function: { name: "paint", parameters: { type: "object" } } }];
  const first = await (await post(app, "/v1/chat/completions", { messages: chat, tools })).json();
  const { message } = first.choices[0];
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "It is hunter2" };
  const second = await post(app, "/v1/chat/completions", { messages: [...chat, message, result], tools });
  const { choices } = await second.json();
  assertEquals(choices[0].message.content, "Done.");
  assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), "ok It is [redacted]");
  const tool = 'client_tool: user {"name":"paint","description":"paint","schema":{"type":"object"}}';
  assertEquals(reviews, [tool, "prompt: user Go", "reply: user It is [redacted]", tool]);
});
