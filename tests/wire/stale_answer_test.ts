import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import {
  type ClientRequest,
  type Dialect,
  dialects,
  payingApp,
  servedEverywhere,
  stopRun,
  userMessage,
} from "../support/paying.ts";
import { type App, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const paint = { name: "paint", description: "Paints", parameters: { type: "object" } };
const functionTool = { type: "function", function: paint };

/** Dialects whose clients declare tools, with the result of the client's call in place of an approval. */
const declaring: Readonly<Record<string, Dialect>> = {
  "agUi()": {
    prompt: {
      path: "/ag-ui",
      body: { threadId: "s", runId: "r1", tools: [paint], messages: [userMessage({ content: "Paint" })] },
    },
    approve: (response) => ({
      path: "/ag-ui",
      body: {
        threadId: "s",
        runId: "r2",
        tools: [paint],
        messages: [
          userMessage({ content: "Paint" }),
          {
            id: /"parentMessageId":"([^"]+)"/.exec(response)?.[1],
            role: "assistant",
            toolCalls: [{ id: "call_1", type: "function", function: { name: "paint", arguments: "{}" } }],
          },
          { id: "m3", role: "tool", toolCallId: "call_1", content: "The first wall is red." },
        ],
      },
    }),
  },
  "responses()": {
    prompt: { path: "/v1/responses", body: { input: "Paint", tools: [{ type: "function", ...paint }] } },
    approve: (response) => ({
      path: "/v1/responses",
      body: {
        tools: [{ type: "function", ...paint }],
        input: [{
          type: "function_call_output",
          call_id: /"call_id":"([^"]+)"/.exec(response)?.[1],
          output: "The first wall is red.",
        }],
      },
    }),
  },
  "chatCompletions()": {
    prompt: {
      path: "/v1/chat/completions",
      body: { messages: [{ role: "user", content: "Paint" }], tools: [functionTool] },
    },
    approve: (response) => ({
      path: "/v1/chat/completions",
      body: {
        tools: [functionTool],
        messages: [{
          role: "tool",
          tool_call_id: JSON.parse(response).choices[0].message.tool_calls[0].id,
          content: "The first wall is red.",
        }],
      },
    }),
  },
};

const send = (app: App, { path, body, headers }: ClientRequest) => post(app, path, body, headers);
const textOf = async (app: App, request: ClientRequest) => await (await send(app, request)).text();

/** The model asks to pay 1 and then 1,000 under the same call id. */
function shop() {
  const call = (amount: number) => ({ calls: [{ id: "call_1", name: "pay", input: { amount } }] });
  return payingApp(scripted(call(1), call(1_000), "Done.", "Done."));
}

for (const [name, { prompt, approve }] of Object.entries(dialects)) {
  Deno.test(`${name} accepts an approval`, async () => {
    const { app, paid } = shop();
    const first = await textOf(app, prompt);
    await textOf(app, await approve(first, app));
    assertEquals(paid, [1]);
  });

  Deno.test(`${name} ignores the approval of a run that was rolled back, although the call and the pause have the same numbers`, async () => {
    const { app, paid } = shop();
    const first = await textOf(app, prompt);
    const stale = await approve(first, app);
    await stopRun(app, true);
    await textOf(app, prompt);
    await textOf(app, stale);
    assertEquals(paid, []);
  });
}

for (const [name, { prompt, approve }] of Object.entries(declaring)) {
  const call = { calls: [{ id: "call_1", name: "paint", input: {} }] };

  Deno.test(`${name} accepts the result of a client's call`, async () => {
    const model = scripted(call, "Done.");
    const app = servedEverywhere(model);
    const first = await textOf(app, prompt);
    await textOf(app, await approve(first, app));
    assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), "ok The first wall is red.");
  });

  Deno.test(`${name} does not take the result of a client's call for that of a later run`, async () => {
    const model = scripted(call, call, "Done.");
    const app = servedEverywhere(model);
    const first = await textOf(app, prompt);
    const stale = await approve(first, app);
    await stopRun(app, true);
    await textOf(app, prompt);
    const [status] = await refusalOf(send(app, stale));
    assertEquals([status, model.requests.length], [409, 2]);
  });
}
