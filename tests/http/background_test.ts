import { agent, serve, type ServeOptions, tool } from "@jizai/jizai";
import { client, ClientError } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import { Hono } from "hono";
import * as z from "zod";
import { eventsOf, post, refusalOf } from "../support/requests.ts";

const prefer = { prefer: "respond-async" };

/** An app whose agent drops a table if a person allows it. */
function app(options: ServeOptions = {}) {
  const drop = tool({ name: "drop", description: "", input: z.object({}), ask: true, execute: () => "Dropped." });
  const model = scripted({ calls: [["drop", {}]] }, "It is gone.", "Again.");
  return serve(agent({ model, tools: [drop] }), { ...options });
}

for (const preference of ["respond-async", "wait=10, Respond-Async", "respond-async; wait=3"]) {
  Deno.test(`POST /runs with Prefer: ${preference} responds with 202 and the address of the run`, async () => {
    const mounted = new Hono().route("/assistant", app());
    const response = await post(mounted, "/assistant/runs", { prompt: "Drop" }, { prefer: preference });
    const { run, session } = await response.json();
    const { status, headers } = response;
    const named = ["location", "preference-applied"].map((name) => headers.get(name));
    assertEquals([status, ...named], [202, `/assistant/runs/${run}`, "respond-async"]);
    const asked = await eventsOf(mounted.request(`${named[0]}`));
    assertEquals([asked[0]?.type, asked.at(-1)?.type], ["run.started", "run.paused"]);
    const answers = [{ callId: "call_1", type: "approve" }];
    const path = `/assistant/sessions/${encodeURIComponent(session)}/answers`;
    const answered = await post(mounted, path, { answers }, { prefer: preference });
    assertEquals([answered.status, answered.headers.get("location")], [202, `/assistant/runs/${run}`]);
    const all = await eventsOf(mounted.request(`${named[0]}`));
    assertEquals([all.length > asked.length, all.at(-1)?.type], [true, "run.finished"]);
  });
}

Deno.test("POST /runs with Prefer: respond-async, without a store, responds with the address of the run", async () => {
  const made = agent({ model: scripted("Hello!") });
  const served = serve(made, { session: (c) => c.req.query("room") });
  const response = await post(served, "/runs?room=a%20b", { prompt: "Hi" }, prefer);
  const location = response.headers.get("location");
  const { run } = await response.json();
  assertEquals([response.status, location], [202, `/runs/${run}`]);
  assertEquals((await eventsOf(served.request(`${location}`))).at(-1)?.type, "run.finished");
  await served.settled();
  const { messages } = await (await served.request("/sessions/a%20b")).json();
  assertEquals(messages.length, 2);
});

Deno.test("POST /runs with Prefer: respond-async, sent again with its idempotency key, responds with the same run", async () => {
  const served = app();
  const headers = { ...prefer, "idempotency-key": "k1" };
  const send = async () => await (await post(served, "/runs", { prompt: "Drop" }, headers)).json();
  const { run } = await send();
  await eventsOf(served.request(`/runs/${run}`));
  assertEquals((await send()).run, run);
});

Deno.test("POST /runs with Prefer: respond-async refuses what other requests may not do either", async () => {
  const served = app();
  assertEquals((await refusalOf(post(served, "/runs", { prompt: "Hi", session: "none" }, prefer)))[0], 404);
  assertEquals((await refusalOf(post(served, "/runs", { promt: "Hi" }, prefer)))[0], 400);
});

Deno.test("a wire ignores Prefer: respond-async, which its clients do not understand", async () => {
  const served = serve(agent({ model: scripted("Hello!") }), { wires: [chatCompletions()] });
  const body = { model: "agent", messages: [{ role: "user", content: "Hi" }] };
  const response = await post(served, "/v1/chat/completions", body, prefer);
  assertEquals([response.status, (await response.json()).choices[0].message.content], [200, "Hello!"]);
});

Deno.test("client().start() begins a run in the background, which follow() reads to its end", async () => {
  const served = app({ onClientGone: "stop" });
  const assistant = client("", { fetch: served.request });
  const { state } = await assistant.start({ prompt: "Drop" });
  assertEquals([typeof state.run, typeof state.session, state.at], ["string", "string", 0]);
  const run = assistant.follow(JSON.parse(JSON.stringify(state)));
  const { questions } = await run.result();
  const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" } as const));
  assertEquals((await run.answer(answers).result()).text, "It is gone.");
  await assertRejects(() => assistant.start({ prompt: "Hi", session: "none" }), ClientError, "there is none");
});

for (const prefix of ["/t/%E6%97%A5", "/t/a%20b", "/t/a%0D%0Ax"]) {
  Deno.test(`POST /runs with Prefer: respond-async, mounted at ${prefix}, responds with the encoded address`, async () => {
    const mounted = new Hono().route("/t/:tenant", app());
    const response = await post(mounted, `${prefix}/runs`, { prompt: "Drop" }, prefer);
    const { run } = await response.json();
    const location = response.headers.get("location");
    assertEquals([response.status, location], [202, `${prefix}/runs/${run}`]);
    assertEquals((await eventsOf(mounted.request(`${location}`))).at(-1)?.type, "run.paused");
  });
}
