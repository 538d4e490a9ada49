import { agent, memory, serve, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { drop } from "../support/asking.ts";
import { eventsOf, first, post, refusalOf } from "../support/requests.ts";

/** Ids that some database would change, refuse, or take for another one. */
const changed = ["\ud800", "a\udfffb", "\ufffd", "\0", "s\0", "\udc00\ud800"];

const expected = "an id without NUL, lone surrogates and U+FFFD";

const wires = [agUi(), aiSdkUi(), aiSdkMessages(), chatCompletions(), responses()];

const text = { type: "text", text: "Hi" };
const prompt = { role: "user", parts: [text] };
const call = { type: "call", id: "c1", name: "look", input: {} };

/** Each field of a body that names a session, a run, a call, a message or a pause: the path of a request, and its body with the id. */
const fields: readonly (readonly [path: string, body: (id: string) => object])[] = [
  ["/runs", (session) => ({ prompt: "Hi", session })],
  ["/runs", (id) => ({ messages: [{ role: "assistant", parts: [{ ...call, id }] }, prompt] })],
  ["/runs", (callId) => ({
    messages: [
      { role: "assistant", parts: [call] },
      { role: "tool", results: [{ callId, name: "look", status: "ok", parts: [] }] },
      prompt,
    ],
  })],
  ["/runs", (callId) => ({
    messages: [
      { role: "assistant", parts: [{ type: "provider_call", callId, name: "search", input: {} }] },
      prompt,
    ],
  })],
  ["/runs", (callId) => ({
    messages: [
      { role: "assistant", parts: [{ type: "provider_result", callId, name: "search", status: "ok", output: "" }] },
      prompt,
    ],
  })],
  ["/sessions/s/answers", (callId) => ({ answers: [{ callId, type: "approve" }] })],
  ["/sessions/s/answers", (callId) => ({ answers: [{ callId, type: "deny" }] })],
  ["/sessions/s/answers", (callId) => ({ answers: [{ callId, type: "reply", text: "Hi" }] })],
  ["/sessions/s/answers", (run) => ({ answers: [], run, at: 1 })],
  ["/chat", (id) => ({ id, messages: [{ id: "m", ...prompt }] })],
  ["/chat", (id) => ({ id: "s", messages: [{ id, ...prompt }] })],
  ["/chat", (id) => ({ id: "s", messages: [{ id, ...prompt }], messageId: id })],
  ["/chat", (toolCallId) => ({
    id: "s",
    messages: [{
      role: "assistant",
      parts: [{ type: "tool-drop", toolCallId, state: "output-available", output: "" }],
    }],
  })],
  ["/ag-ui", (threadId) => ({ threadId, runId: "r", messages: [{ id: "m", role: "user", content: "Hi" }] })],
  ["/ag-ui", (runId) => ({ threadId: "s", runId, messages: [{ id: "m", role: "user", content: "Hi" }] })],
  ["/ag-ui", (id) => ({ threadId: "s", runId: "r", messages: [{ id, role: "user", content: "Hi" }] })],
  ["/ag-ui", (toolCallId) => ({
    threadId: "s",
    runId: "r",
    messages: [{ id: "m", role: "tool", toolCallId, content: "Found." }],
  })],
  ["/ag-ui", (interruptId) => ({
    threadId: "s",
    runId: "r",
    messages: [],
    resume: [{ status: "resolved", interruptId, payload: true }],
  })],
  ["/v1/chat/completions", (id) => ({
    model: "agent",
    messages: [
      { role: "assistant", tool_calls: [{ id, type: "function", function: { name: "look", arguments: "{}" } }] },
      { role: "user", content: "Hi" },
    ],
  })],
  ["/v1/chat/completions", (tool_call_id) => ({
    model: "agent",
    messages: [{ role: "tool", tool_call_id, content: "Found." }, { role: "user", content: "Hi" }],
  })],
  ["/v1/responses", (previous_response_id) => ({ model: "agent", input: "Hi", previous_response_id })],
  ["/v1/responses", (call_id) => ({
    model: "agent",
    input: [{ type: "function_call", call_id, name: "look", arguments: "{}" }, { role: "user", content: "Hi" }],
  })],
  ["/v1/responses", (call_id) => ({
    model: "agent",
    input: [{ type: "function_call_output", call_id, output: "Found." }, { role: "user", content: "Hi" }],
  })],
  ["/v1/responses", (approval_request_id) => ({
    model: "agent",
    input: [{ type: "mcp_approval_response", approval_request_id, approve: true }],
  })],
];

/** The requests whose path or query contains an id. */
const paths: readonly (readonly [method: string, path: (id: string) => string, body?: object])[] = [
  ["GET", (id) => `/runs/${id}`],
  ["POST", (id) => `/runs/${id}/messages`, { text: "Hi" }],
  ["POST", (id) => `/runs/${id}/finish`],
  ["POST", (id) => `/runs/${id}/stop`],
  ["POST", (id) => `/runs/r/stop?session=${id}`],
  ["GET", (id) => `/sessions/${id}`],
  ["POST", (id) => `/sessions/${id}/answers`, { answers: [] }],
  ["POST", (id) => `/sessions/${id}/compact`, {}],
  ["POST", (id) => `/runs?room=${id}`, { prompt: "Hi" }],
  ["POST", (id) => `/chat?room=${id}`, { id: "s", messages: [{ id: "m", ...prompt }] }],
  ["GET", (id) => `/chat/${id}`],
  ["GET", (id) => `/chat/${id}/stream`],
  ["DELETE", (id) => `/chat/${id}/stream`],
];

/** Returns a store that counts the sessions that are loaded and saved. */
function watched(store: Store) {
  const used: string[] = [];
  const counted: Store = {
    ...store,
    load: (id) => (used.push(id), store.load(id)),
    save: (session) => (used.push(session.id), store.save(session)),
  };
  return { store: counted, used };
}

for (const [index, [path, body]] of fields.entries()) {
  Deno.test(`POST ${path} refuses an id that a database would change, field ${index} of the bodies`, async () => {
    for (const id of changed) {
      const { store, used } = watched(memory());
      const app = serve(agent({ model: scripted() }), { store, wires });
      const [status, error] = await refusalOf(post(app, path, body(id)));
      assertEquals([id, status, JSON.stringify(error).includes(expected), used], [id, 400, true, []]);
    }
  });
}

Deno.test("serve() refuses an id that a database would change in every path and query", async () => {
  for (const [method, path, body] of paths) {
    for (const id of ["%00", "a%00b", "\ufffd", "\ud800"]) { // a URL turns a lone surrogate into U+FFFD
      const { store, used } = watched(memory());
      const session = (c: { req: { query(name: string): string | undefined } }) => c.req.query("room");
      const app = serve(agent({ model: scripted() }), { store, wires, session });
      const response = await app.request(path(id), {
        method,
        headers: { "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      const place = `${method} ${path(id)}`;
      assertEquals([place, response.status, used], [place, 400, []]);
      assertEquals((await response.text()).includes(expected), true);
    }
  }
});

Deno.test("serve() refuses an owner that a database would change, or that is too long beside an id", async () => {
  for (const owner of [...changed, "x".repeat(460), "\u0001".repeat(400)]) {
    const app = serve(agent({ model: scripted("Hello!") }), { owner: () => owner });
    const [status] = await refusalOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals([owner, status], [owner, 400]);
  }
  using kv = await Deno.openKv(":memory:");
  const options = { store: denoKvStore(kv), owner: () => "語".repeat(450) };
  const app = serve(agent({ model: scripted("Hello!") }), options);
  assertEquals((await eventsOf(post(app, "/runs", { prompt: "Hi" }))).at(-1)?.type, "run.finished");
});

Deno.test("serve() accepts every other id on each of its stores, and keeps sessions apart", async () => {
  using kv = await Deno.openKv(":memory:");
  using database = new DatabaseSync(":memory:");
  migrate(database);
  const ids = [
    "\ufffe",
    "\uffff",
    "\ufeffs",
    "\u{10ffff}s",
    "s",
    "S",
    " s",
    "s ",
    "é",
    "e\u0301",
    "{s}",
    "}",
    "1e5",
    "null",
    "\u0001",
    "a'b",
  ];
  for (const store of [memory(), denoKvStore(kv), sqliteStore(database)]) {
    const app = serve(agent({ model: scripted(...ids.map(() => "Hello!")) }), { store, wires });
    for (const id of ids) {
      const message = { id: "m", role: "user", parts: [{ type: "text", text: `I am ${id}.` }] };
      const response = await post(app, "/chat", { id, messages: [message] });
      assertEquals([response.status, (await response.text()).includes('"finishReason":"stop"')], [200, true]);
    }
    for (const id of ids) {
      const response = await app.request(`/sessions/${encodeURIComponent(id)}`);
      const { id: found, messages } = await response.json();
      assertEquals([found, messages[0].parts[0].text, messages.length], [id, `I am ${id}.`, 2]);
    }
  }
});

Deno.test("the id of a call that no database changes is matched as it is", async () => {
  const app = serve(agent({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done."), tools: [drop] }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  const [status, error] = await refusalOf(
    post(app, `/sessions/${session}/answers`, { answers: [{ callId: "call_1\0", type: "approve" }] }),
  );
  assertEquals([status, error], [400, {
    code: "invalid",
    message: `Cannot read answers.0.callId: expected ${expected}`,
    field: "answers.0.callId",
  }]);
  const answers = [{ callId: "call_1", type: "approve" }];
  assertEquals((await eventsOf(post(app, `/sessions/${session}/answers`, { answers }))).at(-1)?.type, "run.finished");
});

Deno.test("run() refuses a session that a database would change", () => {
  const assistant = agent({ model: scripted() });
  for (const session of [...changed, "", "x".repeat(501)]) {
    assertThrows(
      () => assistant.run({ prompt: "Hi", session }),
      TypeError,
      "Cannot run: `session` is no id; expected ",
    );
    assertThrows(() => assistant.resume({ answers: [], session }), TypeError, "`session` is no id");
  }
});
