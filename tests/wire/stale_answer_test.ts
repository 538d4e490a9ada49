import { agent, type AnyTool, memory, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { type App, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

/** A dialect: its request for a prompt, and its request that approves the call which a response asks about. */
interface Dialect {
  readonly path: string;
  readonly prompt: object;
  approve(response: string, app: App): object | Promise<object>;
}

const user = (content: object) => ({ id: "m1", role: "user", ...content });

/** Returns the request of a chat that approves the call of a message. */
const chatApproval = (id: unknown) => ({
  id: "s",
  messages: [{
    id: "m2",
    role: "assistant",
    parts: [{
      type: "tool-pay",
      toolCallId: "call_1",
      state: "approval-responded",
      input: {},
      approval: { id, approved: true },
    }],
  }],
});

const dialects: Readonly<Record<string, Dialect>> = {
  "aiSdkUi()": {
    path: "/chat",
    prompt: { id: "s", messages: [user({ parts: [{ type: "text", text: "Pay" }] })] },
    approve: (response) => chatApproval(/"approvalId":"([^"]+)"/.exec(response)?.[1]),
  },
  "aiSdkMessages()": {
    path: "/chat",
    prompt: { id: "s", messages: [user({ parts: [{ type: "text", text: "Pay" }] })] },
    async approve(_, app) {
      return chatApproval(/"approval":\{"id":"([^"]+)"/.exec(await (await app.request("/chat/s")).text())?.[1]);
    },
  },
  "agUi()": {
    path: "/ag-ui",
    prompt: { threadId: "s", runId: "r1", messages: [user({ content: "Pay" })] },
    approve: (response) => ({
      threadId: "s",
      runId: "r2",
      messages: [],
      resume: [{
        interruptId: /"interrupts":\[\{"id":"([^"]+)"/.exec(response)?.[1],
        status: "resolved",
        payload: true,
      }],
    }),
  },
  "responses()": {
    path: "/v1/responses",
    prompt: { input: "Pay" },
    approve: (response) => ({
      input: [{
        type: "mcp_approval_response",
        approval_request_id: /"id":"([^"]+)","type":"mcp_approval_request"/.exec(response)?.[1],
        approve: true,
      }],
    }),
  },
  "chatCompletions()": {
    path: "/v1/chat/completions",
    prompt: { messages: [{ role: "user", content: "Pay" }] },
    approve: (response) => ({
      messages: [
        { role: "user", content: "Pay" },
        { role: "assistant", content: JSON.parse(response).choices[0].message.content },
        { role: "user", content: "yes" },
      ],
    }),
  },
};

const paint = { name: "paint", description: "Paints", parameters: { type: "object" } };
const functionTool = { type: "function", function: paint };

/** Dialects whose clients declare tools: as above, with the result of the client's call in place of an approval. */
const declaring: Readonly<Record<string, Dialect>> = {
  "agUi()": {
    path: "/ag-ui",
    prompt: { threadId: "s", runId: "r1", tools: [paint], messages: [user({ content: "Paint" })] },
    approve: (response) => ({
      threadId: "s",
      runId: "r2",
      tools: [paint],
      messages: [
        user({ content: "Paint" }),
        {
          id: /"parentMessageId":"([^"]+)"/.exec(response)?.[1],
          role: "assistant",
          toolCalls: [{ id: "call_1", type: "function", function: { name: "paint", arguments: "{}" } }],
        },
        { id: "m3", role: "tool", toolCallId: "call_1", content: "The first wall is red." },
      ],
    }),
  },
  "responses()": {
    path: "/v1/responses",
    prompt: { input: "Paint", tools: [{ type: "function", ...paint }] },
    approve: (response) => ({
      tools: [{ type: "function", ...paint }],
      input: [{
        type: "function_call_output",
        call_id: /"call_id":"([^"]+)"/.exec(response)?.[1],
        output: "The first wall is red.",
      }],
    }),
  },
  "chatCompletions()": {
    path: "/v1/chat/completions",
    prompt: { messages: [{ role: "user", content: "Paint" }], tools: [functionTool] },
    approve: (response) => ({
      tools: [functionTool],
      messages: [{
        role: "tool",
        tool_call_id: JSON.parse(response).choices[0].message.tool_calls[0].id,
        content: "The first wall is red.",
      }],
    }),
  },
};

/** An app with one session, whose model asks to pay 1 and then 1,000 under the same call id. */
function shop() {
  const paid: number[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.number() }),
    ask: true,
    execute({ amount }) {
      paid.push(amount);
      return "Paid.";
    },
  });
  const call = (amount: number) => ({ calls: [{ id: "call_1", name: "pay", input: { amount } }] });
  return { ...served(scripted(call(1), call(1_000), "Done.", "Done."), [pay]), paid };
}

/** An app with one session and every wire. */
function served(model: ReturnType<typeof scripted>, tools: readonly AnyTool[] = []) {
  const app = serve(agent({ model, tools }), {
    store: memory(),
    session: () => "s",
    wires: [aiSdkUi(), aiSdkMessages(), agUi(), responses(), chatCompletions()],
  });
  return { app, model };
}

/** Takes the session back to the time before its paused run. */
async function rollBack(app: App): Promise<void> {
  const { run } = await (await app.request("/sessions/s")).json();
  assertEquals((await post(app, `/runs/${run.id}/stop?session=s&rollback`, {})).status, 204);
  while ("run" in await (await app.request("/sessions/s")).json()); // the stop is answered before the run has ended
}

for (const [name, { path, prompt, approve }] of Object.entries(dialects)) {
  Deno.test(`${name} accepts an approval`, async () => {
    const { app, paid } = shop();
    const first = await (await post(app, path, prompt)).text();
    await (await post(app, path, await approve(first, app))).text();
    assertEquals(paid, [1]);
  });

  Deno.test(`${name} ignores the approval of a run that was rolled back, although the call and the pause have the same numbers`, async () => {
    const { app, paid } = shop();
    const first = await (await post(app, path, prompt)).text();
    const stale = await approve(first, app);
    await rollBack(app);
    await (await post(app, path, prompt)).text();
    await (await post(app, path, stale)).text();
    assertEquals(paid, []);
  });
}

for (const [name, { path, prompt, approve }] of Object.entries(declaring)) {
  const call = { calls: [{ id: "call_1", name: "paint", input: {} }] };

  Deno.test(`${name} accepts the result of a client's call`, async () => {
    const { app, model } = served(scripted(call, "Done."));
    const first = await (await post(app, path, prompt)).text();
    await (await post(app, path, await approve(first, app))).text();
    assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), "ok The first wall is red.");
  });

  Deno.test(`${name} does not take the result of a client's call for that of a later run`, async () => {
    const { app, model } = served(scripted(call, call, "Done."));
    const first = await (await post(app, path, prompt)).text();
    const stale = await approve(first, app);
    await rollBack(app);
    await (await post(app, path, prompt)).text();
    const [status] = await refusalOf(post(app, path, stale));
    assertEquals([status, model.requests.length], [409, 2]);
  });
}
