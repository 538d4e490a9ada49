/**
 * A served agent that asks before it pays, and clients of every dialect that approve the payment.
 *
 * @module
 */
import { agent, type AnyTool, memory, type Middleware, serve, tool } from "@jizai/jizai";
import { type ScriptedModel } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { accept, requestOf } from "./mcp_calls.ts";
import { type App, post } from "./requests.ts";

/** A request of a client. */
export interface ClientRequest {
  readonly path: string;
  readonly body: object;
  /** Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A dialect: its request for a prompt, and its request that approves the call which a response asks about. */
export interface Dialect {
  readonly prompt: ClientRequest;
  approve(response: string, app: App): ClientRequest | Promise<ClientRequest>;
}

/** A message of a person, as most clients have it. */
export const userMessage = (content: object) => ({ id: "m1", role: "user", ...content });

/** Returns the request of a chat that approves a call. */
function chatApproval(ids: RegExpExecArray | null): ClientRequest {
  const [, id, toolCallId] = ids ?? [];
  const approval = { id, approved: true };
  const part = { type: "tool-pay", toolCallId, state: "approval-responded", input: {}, approval };
  return { path: "/chat", body: { id: "s", messages: [{ id: "m2", role: "assistant", parts: [part] }] } };
}

const chatPrompt = {
  path: "/chat",
  body: { id: "s", messages: [userMessage({ parts: [{ type: "text", text: "Pay" }] })] },
};

/** Returns the request of an MCP client that calls the agent. */
function mcpCall(params: object = {}): ClientRequest {
  const { headers, body } = requestOf("tools/call", { name: "agent", arguments: { prompt: "Pay" }, ...params });
  return { path: "/mcp", headers: Object(headers), body: JSON.parse(String(body)) };
}

/** The dialects. */
export const dialects: Readonly<Record<string, Dialect>> = {
  "serve()": {
    prompt: { path: "/runs", body: { prompt: "Pay" } },
    approve(response) {
      const [, run] = /"run":"([^"]+)"/.exec(response) ?? [];
      const [, callId] = /"questions":\[\{"callId":"([^"]+)"/.exec(response) ?? [];
      const [, at] = /id: (\d+)\ndata: \{"type":"run.paused"/.exec(response) ?? [];
      return { path: "/sessions/s/answers", body: { answers: [{ type: "approve", callId }], run, at: Number(at) } };
    },
  },
  "aiSdkUi()": {
    prompt: chatPrompt,
    approve: (response) => chatApproval(/"approvalId":"([^"]+)","toolCallId":"([^"]+)"/.exec(response)),
  },
  "aiSdkMessages()": {
    prompt: chatPrompt,
    async approve(_, app) {
      const shown = await (await app.request("/chat/s")).json();
      const part = shown.at(-1).parts.findLast(({ approval }: { readonly approval?: object }) => approval);
      return chatApproval(/^(.*?)\n(.*)$/.exec(`${part?.approval.id}\n${part?.toolCallId}`));
    },
  },
  "agUi()": {
    prompt: { path: "/ag-ui", body: { threadId: "s", runId: "r1", messages: [userMessage({ content: "Pay" })] } },
    approve(response) {
      const interruptId = /"interrupts":\[\{"id":"([^"]+)"/.exec(response)?.[1];
      const resume = [{ interruptId, status: "resolved", payload: true }];
      return { path: "/ag-ui", body: { threadId: "s", runId: "r2", messages: [], resume } };
    },
  },
  "responses()": {
    prompt: { path: "/v1/responses", body: { input: "Pay" } },
    approve(response) {
      const approval_request_id = /"id":"([^"]+)","type":"mcp_approval_request"/.exec(response)?.[1];
      const input = [{ type: "mcp_approval_response", approval_request_id, approve: true }];
      return { path: "/v1/responses", body: { input } };
    },
  },
  "mcpWire()": {
    prompt: mcpCall(),
    approve(response) {
      const { result } = JSON.parse(response.slice("data: ".length));
      return mcpCall({ requestState: result.requestState, inputResponses: accept(result) });
    },
  },
  "chatCompletions()": {
    prompt: { path: "/v1/chat/completions", body: { messages: [{ role: "user", content: "Pay" }] } },
    approve(response) {
      const question = { role: "assistant", content: JSON.parse(response).choices[0].message.content };
      const messages = [{ role: "user", content: "Pay" }, question, { role: "user", content: "yes" }];
      return { path: "/v1/chat/completions", body: { messages } };
    },
  },
};

/** Serves an agent in every dialect, with one session. */
export function servedEverywhere(
  model: ScriptedModel,
  tools: readonly AnyTool[] = [],
  use: readonly Middleware[] = [],
): App {
  return serve(agent({ model, tools, use }), {
    store: memory(),
    session: () => "s",
    wires: [aiSdkUi(), aiSdkMessages(), agUi(), mcpWire(), responses(), chatCompletions()],
  });
}

/** Serves an agent that asks before it pays, and returns what it has paid. */
export function payingApp(model: ScriptedModel): { readonly app: App; readonly paid: readonly number[] } {
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
  return { app: servedEverywhere(model, [pay]), paid };
}

/** Stops the paused run of the session. With `rollback`, takes the session back to the time before the run. */
export async function stopRun(app: App, rollback: boolean): Promise<void> {
  const { run } = await (await app.request("/sessions/s")).json();
  assertEquals((await post(app, `/runs/${run.id}/stop?session=s&rollback=${rollback}`, {})).status, 204);
  while ("run" in await (await app.request("/sessions/s")).json()); // the stop is answered before the run has ended
}
