/**
 * Attacks with requests that are refused: a flood of every kind, on every route and wire, leaves nothing behind.
 *
 * @module
 */
import { agent, memory, type Middleware, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { drop } from "../support/asking.ts";
import { entriesOf, listedStore } from "../support/leftovers.ts";
import { piecesOf } from "../support/requests.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** Refuses messages to a run, and the texts of answers. */
const refusing: Middleware = {
  name: "refusing",
  input: (ctx, next) => ctx.source === "prompt" ? next() : Promise.resolve({ status: "cancelled", messages: [] }),
};

/** A server with a paused run, a run that works, and a run that has ended. */
async function target() {
  const gate = Promise.withResolvers<void>();
  const model = scripted(
    { calls: [["drop", { table: "a" }]] },
    "Ended.",
    { before: () => gate.promise, text: "Worked." },
    "New.",
  );
  const { store, keys } = listedStore(durable(memory({ maxBytes: 60_000, maxOwnerBytes: Infinity }).journal));
  const failures: unknown[] = [];
  const app = serve(agent({ model, tools: [drop], use: [refusing] }), {
    store,
    wires: [agUi(), aiSdkUi(), aiSdkMessages(), chatCompletions(), responses()],
    busy: "refuse",
    onEnd() {},
    onError: (error) => failures.push(error),
  });
  const send = (method: string, path: string, body?: unknown, key?: string) =>
    app.request(path, {
      method,
      headers: { "content-type": "application/json", ...(key !== undefined && { "idempotency-key": key }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const idsIn = (text: string) => ({
    run: /"run":"([^"]+)"/.exec(text)?.[1] ?? "",
    session: /"session":"([^"]+)"/.exec(text)?.[1] ?? "",
  });
  const begin = async () => idsIn(await (await send("POST", "/runs", { prompt: "Hi" })).text());
  const [paused, ended] = [await begin(), await begin()];
  await app.settled(); // their ends are reported
  const stream = piecesOf(await send("POST", "/runs", { prompt: "Work" }));
  const working = idsIn(await stream.until("model.started"));
  return { store, keys, failures, send, paused, ended, working, stream, release: gate.resolve };
}

/** One request that is refused. */
type Refused = readonly [method: string, path: string, body?: unknown];

type Target = Awaited<ReturnType<typeof target>>;

/** Returns requests of every kind that the server refuses. */
function refusedRequests({ paused, ended, working }: Target, { one, below }: Chance): readonly [Refused, ...Refused[]] {
  const none = `none ${below(1_000)}`.padEnd(below(400), "x");
  const long = "x".repeat(501 + below(2_000));
  const session = one([none, long, "", "\0", "\ud800", working.session]);
  const callId = one(["call_9", "", "\0", "call_1@3"]);
  const answers = [{ callId, type: one(["approve", "deny", "reply"]), text: "Yes" }];
  const text = { type: "text", text: "Hi" };
  const plain = { role: "user", content: "Hi" };
  const path = encodeURIComponent(one([none, long, "\0", ended.run]));
  return [
    ["POST", "/runs", { prompt: "Hi", session }],
    ["POST", "/runs", { messages: [], session }],
    ["POST", "/runs", { prompt: 1 }],
    ["POST", `/sessions/${path}/answers`, { answers }],
    ["POST", `/sessions/${paused.session}/answers`, { answers }],
    ["POST", `/sessions/${paused.session}/answers`, { answers: [{ callId: "call_1", type: "deny", reason: "No" }] }],
    ["POST", `/sessions/${paused.session}/answers`, { answers: [{ callId: "call_1", type: "approve" }], run: none }],
    ["POST", `/sessions/${paused.session}/answers`, { answers: [{ callId: "call_1", type: "approve", input: 1 }] }],
    ["POST", `/sessions/${ended.session}/answers`, { answers }],
    ["POST", `/sessions/${working.session}/answers`, { answers }],
    ["POST", `/sessions/${one([none, ended.session, working.session]).replaceAll(" ", "%20")}/compact`, {}],
    ["POST", `/runs/${path}/messages`, { text: "Hi" }],
    ["POST", `/runs/${working.run}/messages`, { text: "Hi" }],
    ["POST", `/runs/${path}/finish`],
    ["POST", `/runs/${encodeURIComponent(none)}/stop`],
    ["GET", `/runs/${encodeURIComponent(none)}`],
    ["GET", `/runs/${ended.run}?after=9999`],
    ["GET", `/sessions/${path}`],
    ["GET", `/chat/${path}`],
    ["PUT", "/runs", {}],
    ["POST", "/chat", {
      id: one([long, "", "\0", working.session]),
      messages: [{ id: "m", role: "user", parts: [text] }],
    }],
    ["POST", "/chat", { id: none, messages: [{ id: "m", role: "user", parts: [] }] }],
    ["POST", "/chat", {
      id: one([none, paused.session]),
      messages: [{ role: "assistant", parts: [{ type: "tool-drop", toolCallId: "c", state: "output-error" }] }],
    }],
    ["POST", "/ag-ui", {
      threadId: one([long, "", "\ud800", working.session]),
      runId: "r",
      messages: [{ id: "m", ...plain }],
    }],
    ["POST", "/ag-ui", {
      threadId: none,
      runId: "r",
      messages: [{ id: "m", ...plain }],
      tools: [{ name: "drop", description: "", parameters: { type: "object" } }],
    }],
    ["POST", "/ag-ui", {
      threadId: paused.session,
      runId: "r",
      messages: [],
      resume: [{ status: "resolved", interruptId: callId, payload: true }],
    }],
    ["POST", "/v1/responses", { model: "agent", input: "Hi", previous_response_id: one([none, long, "\0"]) }],
    ["POST", "/v1/responses", { model: "agent", input: [{ type: "item_reference", id: "i" }, plain] }],
    ["POST", "/v1/responses", {
      model: "agent",
      input: "Hi",
      tools: [{ type: "function", name: "drop", parameters: { type: "object" } }],
    }],
    ["POST", "/v1/chat/completions", { model: "agent", messages: [] }],
    ["POST", "/v1/chat/completions", {
      model: "agent",
      messages: [plain],
      tools: [{ type: "function", function: { name: "drop", parameters: { type: "object" } } }],
    }],
  ];
}

/** Floods a server with requests that it refuses. Fails if one leaves an entry in the store, or if a run notices it. */
export const refusals: Attack = {
  name: "refusals",
  async attempt(chance) {
    const scene = await target();
    const { store, keys, failures, send, stream, release } = scene;
    const [sessions, journals] = [await entriesOf(store), [...keys].sort()];
    const count = 60;
    for (let sent = 0; sent < count; sent++) {
      const [method, path, body] = chance.one(refusedRequests(scene, chance));
      const key = chance.below(4) > 0 ? `key ${sent} ${"x".repeat(chance.below(200))}` : undefined;
      const { status, text } = await answerOf(await send(method, path, body, key));
      const request = `${method} ${path} ${JSON.stringify(body)}`.slice(0, 600);
      expect(status >= 400 && status < 500, () => `${request} was answered with ${status} ${text}: ${failures}`);
      const [left, stored] = [await entriesOf(store), [...keys].sort()];
      expect(String(left) === String(sessions), () => `${request} left ${left} in the store, not ${sessions}`);
      expect(String(stored) === String(journals), () => `${request} left the journals ${stored}, not ${journals}`);
    }
    const begun = await answerOf(await send("POST", "/runs", { prompt: "New" }, "a new one"));
    release();
    const rest = await stream.rest();
    expect(
      rest.includes('"type":"run.finished"'),
      () => `the stream of the run that works ended with ${rest.slice(-300)}`,
    );
    expect(begun.status === 200, () => `a new run was refused with ${begun.status} ${begun.text}`);
    return count;
  },
};

async function answerOf(response: Response): Promise<{ readonly status: number; readonly text: string }> {
  return { status: response.status, text: await response.text() };
}
