import { agent, memory, type Model, ModelError, noUsage, serve, textOf } from "@jizai/jizai";
import { points } from "@jizai/jizai/kit";
import { scripted } from "@jizai/jizai/model/scripted";
import { trace } from "@opentelemetry/api";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { sign } from "hono/jwt";
import process from "node:process";
import { demo } from "../../examples/guides/model.ts";
import { journalKey } from "../../src/core/journal.ts";
import { sections } from "../../examples/guides/site.ts";
import { advance, advanceUntilSettled, hashAtOnce } from "../support/fake_time.ts";
import { chatStream } from "../support/providers/openai.ts";
import { decide, open } from "../support/linked.ts";
import { accept, ask, call } from "../support/mcp_calls.ts";
import { recorder } from "../support/recorder.ts";
import { type App, eventsOf, first, type Framed, post } from "../support/requests.ts";
import { filesIn } from "../support/source.ts";
import { load, programsOf } from "./guides.ts";

/** Sends a prompt and returns the events of its run. */
function prompt(app: App, text: string, headers?: Readonly<Record<string, string>>): Promise<Framed[]> {
  return eventsOf(post(app, "/runs", { prompt: text }, headers));
}

/** Approves all questions of a paused run, and returns the events that follow. */
function approve(app: App, events: readonly Framed[]): Promise<Framed[]> {
  const { session } = first("run.started", events);
  const answers = first("run.paused", events).questions.map(({ callId }) => ({ callId, type: "approve" }));
  return eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
}

Deno.test("index: the program of the first page asks a person", async () => {
  const { default: app } = await load("index", demo);
  const events = await approve(app, await prompt(app, "send to=ada"));
  assertStringIncludes(first("run.finished", events).text, "Sent to ada.");
});

Deno.test("start: without a key, a run fails and says so; with one, the provider receives it", async () => {
  using sent = stub(globalThis, "fetch", () => Promise.resolve(new Response("{}", { status: 401 })));
  const outcomes = [];
  for (const env of [{}, { OPENAI_API_KEY: "sk-mine" }]) {
    const { model } = await load("start", demo, { index: 1, env });
    const errors: unknown[] = [];
    await agent({ model }).run({ prompt: "Hi", onError: (error) => errors.push(error) }).result;
    outcomes.push(String(errors[0]).split("\n")[0]);
  }
  const missing = "ModelError: Cannot reach gpt-6.1-terra: its `apiKey` is empty; expected the key of your account";
  assertEquals([outcomes[0], sent.calls.length], [missing, 1]);
});

Deno.test("ask_a_person: a large refund waits for a person, a small one does not", async () => {
  const { default: app } = await load("ask_a_person", demo);
  assertEquals(
    first("run.finished", await prompt(app, "refund order=A7 amount=50")).text,
    "Refunded 50 for order A7.",
  );
  const paused = await prompt(app, "refund order=A7 amount=150");
  assertEquals(first("run.finished", await approve(app, paused)).text, "Refunded 150 for order A7.");
});

Deno.test("ask_a_person: rules decide by the name of a tool", async () => {
  const model = scripted({ calls: [["read", { path: "a" }], ["remove", { path: "a" }]] });
  const { assistant } = await load("ask_a_person", model, 1);
  const { questions } = await assistant.run("Tidy up").result;
  assertEquals(questions.map(({ questions }) => questions), [["Delete this file?"]]);
});

/** Executes a program that sends its questions by `fetch`, until a run has paused and they were sent. Its requests are answered with 200 until it is disposed. */
async function asking(index: number, text: string) {
  const sent: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
  const network = stub(globalThis, "fetch", (url, { headers, body } = {}) => {
    sent.push({ url: String(url), headers: new Headers(headers), body: String(body) });
    return Promise.resolve(new Response(null, { status: 200 }));
  });
  const { default: app } = await load("approvals_by_webhook", demo, index);
  const { session } = first("run.started", await prompt(app, text));
  while (sent.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  /** Waits for the end of the run, and returns its answer. */
  async function answer(): Promise<string> {
    for (;;) {
      const { run, messages } = await (await app.request(`/sessions/${session}`)).json();
      if (!run) return textOf(messages.at(-1));
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }
  return { app, request: sent[0]!, answer, [Symbol.dispose]: () => network[Symbol.dispose]() }; // one was sent
}

Deno.test("approvals_by_webhook: Slack gets the question as plain text, with two buttons, of which one approves", async () => {
  using program = await asking(0, "deploy version=<!channel>");
  const { app, request, answer } = program;
  const { blocks: [section, actions] } = JSON.parse(request.body);
  assertEquals(section.text, { type: "plain_text", text: 'Run deploy?\ndeploy {"version":"<!channel>"}' });
  assertEquals(actions.elements.map(({ text }: { readonly text: object }) => text), [
    { type: "plain_text", text: "Approve" },
    { type: "plain_text", text: "Deny" },
  ]);
  const [{ url: approve }, { url: deny }] = actions.elements;
  assertEquals(approve.startsWith("http://localhost:8000/approvals/") && approve.length < 3_000, true);
  assertStringIncludes((await open(app, approve))[2], "&lt;!channel&gt;");
  assertEquals(await decide(app, approve), [200, "Approved"]);
  assertEquals((await decide(app, deny))[0], 409);
  assertEquals(await answer(), "Deployed <!channel>.");
});

Deno.test("approvals_by_webhook: a mail has the question as text and as HTML, with two links, of which one denies", async () => {
  using program = await asking(1, "refund order=<b>A7</b> amount=150");
  const { app, request, answer } = program;
  const { text, html, to, subject } = JSON.parse(request.body);
  assertEquals([to, subject], [["ada@example.com"], "Approve refund?"]);
  assertEquals(request.url, "https://api.resend.com/emails");
  assertEquals([html.includes("<b>"), html.includes("&lt;b&gt;A7&lt;/b&gt;")], [false, true]);
  const [, approve = "", deny = ""] = /Approve: (\S+)\n\nDeny: (\S+)\n/.exec(text) ?? [];
  assertStringIncludes(html, `<a href="${approve}">`);
  assertEquals(await decide(app, deny, { reason: "Ask Bob" }), [200, "Denied"]);
  assertStringIncludes(await answer(), "Ask Bob");
});

Deno.test("approvals_by_webhook: the receiver gets the links, and refuses a request without a signature", async () => {
  using printed = stub(console, "log", () => {});
  using program = await asking(2, "deploy version=v2");
  const { app, request: { url, headers, body }, answer } = program;
  assertEquals((await post(app, "/asked", { data: {} })).status, 401);
  assertEquals((await app.request(new URL(url).pathname, { method: "POST", headers, body })).status, 204);
  const [, approve = ""] =
    /^Approve deploy \{"version":"v2"\}\? (\S+) or http/.exec(String(printed.calls[0]?.args[0])) ?? [];
  assertEquals(await decide(app, approve), [200, "Approved"]);
  assertEquals(await answer(), "Deployed v2.");
});

Deno.test("steps: both steps run, and the result contains the value of the first", async () => {
  using printed = stub(console, "log", () => {});
  const { default: app } = await load("steps", demo);
  const { text } = first("run.finished", await prompt(app, "order product=Tea"));
  assertEquals(text, "Ordered Tea: payment of Tea");
  assertEquals(printed.calls.map(({ args }) => args), [["Paid with payment of Tea", "mail"]]);
});

Deno.test("model_per_request: an unknown model is refused, and the default answers", async () => {
  const { default: app } = await load("model_per_request", demo);
  assertEquals((await post(app, "/runs", { prompt: "Hi" }, { "x-model": "none" })).status, 400);
  assertEquals(first("model.started", await prompt(app, "Hi")).model, "demo");
});

Deno.test("structured_output: the answer matches the schema, and arrives in parts", async () => {
  const { default: app } = await load("structured_output", demo);
  const events = await prompt(app, "city=Kyoto days=3");
  assertEquals(first("run.finished", events).output, { city: "Kyoto", days: 3 });
  assertEquals(events.some(({ type }) => type === "output.delta"), true);
});

Deno.test("stream_masking: an address that is split over deltas is masked", async () => {
  const { default: app } = await load("stream_masking", scripted({ text: ["Write to ada@exam", "ple.com now."] }));
  const events = await prompt(app, "To whom?");
  assertEquals(first("run.finished", events).text, "Write to [redacted] now.");
  assertEquals(JSON.stringify(events).includes("ada@"), false);
  assertEquals(first("text.delta", events).text, "Write to "); // what belongs to no match is not held back
});

Deno.test("users: each user reaches own sessions only", async () => {
  const { default: app } = await load("users", demo);
  const token = async (sub: string) => ({
    authorization: `Bearer ${await sign({ sub }, "change me: at least 32 characters", "HS256")}`,
  });
  assertEquals((await post(app, "/agent/runs", { prompt: "Hi" })).status, 401);
  const events = await eventsOf(post(app, "/agent/runs", { prompt: "Hi" }, await token("ada")));
  const path = `/agent/sessions/${first("run.started", events).session}`;
  assertEquals((await app.request(path, { headers: await token("ada") })).status, 200);
  assertEquals((await app.request(path, { headers: await token("bob") })).status, 404);
  const cookieOf = async (user: string) => ({ cookie: (await token(user)).authorization.replace("Bearer ", "token=") });
  assertEquals((await app.request(path, { headers: await cookieOf("ada") })).status, 200); // as an EventSource sends it
  assertEquals((await app.request(path, { headers: await cookieOf("bob") })).status, 404);
});

Deno.test("cors: the preflight allows the headers of a client that reconnects", async () => {
  const { default: app } = await load("cors", demo);
  const headers = { origin: "http://localhost:5173", "access-control-request-method": "POST" };
  const preflight = await app.request("/agent/runs", { method: "OPTIONS", headers });
  assertStringIncludes(preflight.headers.get("access-control-allow-headers") ?? "", "last-event-id");
  const response = await post(app, "/agent/runs", { prompt: "Hi" }, headers);
  assertEquals(response.headers.get("access-control-allow-origin"), "http://localhost:5173");
  assertEquals(response.headers.get("x-content-type-options"), "nosniff");
  await response.text();
});

Deno.test("cap_costs: a run ends at its budget, and a user at the limit of prompts", async () => {
  const { default: app } = await load("cap_costs", demo);
  assertEquals(first("run.finished", await prompt(app, "Hi", { "x-user": "ada" })).status, "done");
  for (let index = 1; index < 20; index++) await prompt(app, "Hi", { "x-user": "ada" });
  assertEquals(first("run.finished", await prompt(app, "Hi", { "x-user": "ada" })).status, "cancelled");
  const usage = { input: 60_000, output: 10 };
  const model = Object.assign(scripted({ usage }), { id: "demo" });
  const { assistant } = await load("cap_costs", model);
  assertEquals((await assistant.run({ prompt: "Hi ".repeat(80_000), vars: { user: "bob" } }).result).status, "limit");
});

Deno.test("cap_costs: a user who has spent the budget of the day is refused, and no other", async () => {
  const answer = { text: "Hello!", usage: { input: 300_000, output: 0 } }; // 0.30 dollars
  const { default: app } = await load("cap_costs", Object.assign(scripted(answer, answer, answer), { id: "demo" }), 1);
  const outcome = async (user: string) => {
    const { status, reason } = first("run.finished", await prompt(app, "Hi", { "x-user": user }));
    return [status, reason];
  };
  const done = ["done", undefined];
  const refused = ["cancelled", "Your budget of today is spent."];
  const outcomes = [await outcome("ada"), await outcome("ada"), await outcome("ada"), await outcome("bob")];
  assertEquals(outcomes, [done, done, refused, done]);
});

Deno.test("see_costs: each request is logged with its price", async () => {
  using printed = stub(console, "log", () => {});
  const { default: app } = await load("see_costs", demo);
  await prompt(app, "Hi");
  assertEquals(JSON.parse(String(printed.calls[0]?.args[0])).cost, 0.00002);
});

Deno.test("log_every_call: the record has the call and its input", async () => {
  using _ = stub(console, "log", () => {});
  const { default: app, lines } = await load("log_every_call", demo);
  await prompt(app, "weather city=Kyoto");
  const types = lines.map((line) => JSON.parse(line)).map(({ type, input, status }) => [type, input, status]);
  assertEquals(types, [
    ["prompt", "weather city=Kyoto", undefined],
    ["call", { city: "Kyoto" }, "ok"],
    ["run", undefined, "done"],
  ]);
});

Deno.test("opentelemetry: a run has a span in the trace of its request", async () => {
  const { api: { trace: { getTracer } }, spans } = recorder();
  trace.setGlobalTracerProvider({ getTracer });
  try {
    const { default: app } = await load("opentelemetry", demo);
    await prompt(app, "weather city=Kyoto", { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` });
  } finally {
    trace.disable();
  }
  assertEquals(spans.map(({ name, parentId }) => [name, parentId?.slice(0, 32)]), [
    ["invoke_agent assistant", "a".repeat(32)],
    ["chat demo", "a".repeat(32)],
    ["execute_tool weather", "a".repeat(32)],
    ["chat demo", "a".repeat(32)],
  ]);
});

Deno.test("metrics: Prometheus reads the runs, the tokens and their cost", async () => {
  const { default: app } = await load("metrics", demo);
  await prompt(app, "Hi");
  const response = await app.request("/metrics");
  const lines = (await response.text()).split("\n").map((line) => line.replace(',otel_scope_name="jizai"', ""));
  const model = 'gen_ai_request_model="demo"';
  const expected = [
    'jizai_server_started_total{jizai_cause="prompt"} 1',
    `jizai_server_tokens_total{${model},gen_ai_token_type="input"} 10`,
    `jizai_server_tokens_total{${model},gen_ai_token_type="output"} 10`,
    `jizai_server_cost_total{${model}} 0.00002`,
  ];
  assertEquals(lines.filter((line) => /^jizai_server_(started|tokens|cost)_total/.test(line)), expected);
});

Deno.test("rag: excerpts stand in the request, and a tool finds more", async () => {
  const model = scripted({ calls: [["search_documents", { query: "opening hours" }]] }, "From nine to five.");
  const { assistant } = await load("rag", model);
  await assistant.run("How do returns work?").result;
  assertStringIncludes(JSON.stringify(model.requests[0]?.messages), "within 30 days");
  assertStringIncludes(JSON.stringify(model.requests[1]?.messages), "Monday to Friday");
});

Deno.test("files_s3_r2: the model reads a picture of the bucket, and no other key", async () => {
  const bucket = {
    get: (key: string) =>
      Promise.resolve(
        key === "uploads/cat.png"
          ? { httpMetadata: { contentType: "image/png" }, arrayBuffer: () => Promise.resolve(new ArrayBuffer(3)) }
          : null,
      ),
  };
  const calls = [["read_file", { key: "uploads/cat.png" }], ["read_file", { key: "../secret" }]] as const;
  const model = scripted({ calls }, "A cat.");
  const { assistantOn } = await load("files_s3_r2", model);
  const { messages } = await assistantOn(bucket).run("What is it?").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map(({ status, parts }) => [status, parts[0]?.type]), [["ok", "media"], ["error", "text"]]);
});

const seven = Date.parse("2026-11-27T07:00Z"); // a Friday

/** The model of the guides, and the results that it reads. */
function noting() {
  const results: string[] = [];
  const model: Model = {
    ...demo,
    stream(request, context) {
      const last = request.messages.at(-1);
      if (last?.role === "tool") results.push(...last.results.map(textOf));
      return demo.stream(request, context);
    },
  };
  return { model, results };
}

Deno.test("schedules: Deno.cron calls the tool of a scheduled run", async () => {
  using time = new FakeTime(seven);
  using served = stub(Deno, "serve");
  const jobs = new Map<unknown, () => Promise<void>>();
  using _ = stub(Deno, "cron", (...[name, , , handler]: readonly unknown[]) => {
    jobs.set(name, handler as () => Promise<void>);
    return Promise.resolve();
  });
  const { model, results } = noting();
  const { shutDown } = await load("schedules", model, 0, "Deno.cron");
  for (const job of jobs.values()) await advanceUntilSettled(time, job());
  assertEquals([[...jobs.keys()], results, served.calls.length], [["report", "recover"], ["Sent: 2026-11-27"], 1]);
  await shutDown();
});

Deno.test("schedules: a cron trigger of Workers calls the tool of a scheduled run, once", async () => {
  const { model, results } = noting();
  const { default: worker } = await load("schedules", model, 0, "export default");
  for (const cron of ["0 7 * * MON-FRI", "* * * * *", "0 7 * * MON-FRI"]) {
    await worker.scheduled({ cron, scheduledTime: seven });
  }
  assertEquals(results, ["Sent: 2026-11-27"]);
});

Deno.test("schedules: a process that lives calls the tool of a scheduled run, until it shuts down", async () => {
  using time = new FakeTime(seven - 1_000);
  using _hash = hashAtOnce();
  using signals = stub(process, "once");
  const { model, results } = noting();
  const { shutDown } = await load("schedules", model, 0, "schedules.start");
  await advance(time, 10_000);
  assertEquals([results, signals.calls[0]?.args[0]], [["Sent: 2026-11-27"], "SIGTERM"]);
  await shutDown();
  await advance(time, 60_000);
  assertEquals(time.next(), false);
});

Deno.test("background_runs: the events are read after the response", async () => {
  using _ = stub(globalThis, "fetch", () => Promise.resolve(new Response()));
  const { default: app } = await load("background_runs", demo);
  const response = await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
  assertEquals(response.status, 202);
  const { run } = await response.json();
  assertEquals(first("run.finished", await eventsOf(app.request(`/runs/${run}`))).text, "You said: Hi");
  await app.settled(); // the webhook is sent
});

Deno.test("cancel: another tab stops the run of a session", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const model = scripted({
    before: (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        resolve();
      }),
  });
  const { default: app } = await load("cancel", model);
  const { stopSession } = await load("cancel", model, 1);
  const { session, run } = await (await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" })).json();
  await promise;
  assertEquals(await stopSession("", session, (url, init) => Promise.resolve(app.request(String(url), init))), true);
  const events = await eventsOf(app.request(`/runs/${run}`));
  assertEquals(events.at(-1)?.type, "run.aborted");
});

Deno.test("tools: progress reaches the client, and a hidden tool is not offered", async () => {
  const { default: app } = await load("tools", demo);
  const events = await prompt(app, "import_file rows=300");
  assertEquals(first("run.finished", events).text, `{"imported":300}`);
  assertEquals(events.filter(({ type }) => type === "tool.progress").length, 3);
  const model = scripted("A", "B");
  const { assistant } = await load("tools", model);
  for (const role of ["user", "admin"]) await assistant.run({ prompt: "Hi", vars: { role } }).result;
  const offered = model.requests.map(({ tools }) => tools.map(({ name }) => name));
  assertEquals(offered, [["import_file"], ["import_file", "delete_customers"]]);
});

Deno.test("several_agents: a subagent answers its caller", async () => {
  const { default: app } = await load("several_agents", demo);
  assertEquals(first("run.finished", await prompt(app, "researcher prompt=Kyoto")).text, "You said: Kyoto");
});

Deno.test("several_agents: a specialist takes over, with its tools", async () => {
  const transfer = { calls: [["transfer", { agent: "refunds" }] as const] };
  const model = scripted(transfer, { calls: [["refund", { order: "A7" }]] }, "Done.");
  const { default: app } = await load("several_agents", model, 1);
  const paused = await prompt(app, "Money back!");
  assertEquals(first("run.finished", await approve(app, paused)).text, "Done.");
  assertEquals(model.requests.at(-1)?.instructions, "You refund orders.");
});

Deno.test("long_conversations: a client compacts a session", async () => {
  const { default: app } = await load("long_conversations", scripted("Hello!", "A greeting."));
  const { session } = first("run.started", await prompt(app, "Hi"));
  const response = await post(app, `/sessions/${session}/compact`, { instructions: "Keep all numbers." });
  assertEquals(response.status, 200);
  await response.text();
});

Deno.test("mcp_servers: without the server, the run continues with a notice", async () => {
  using _ = stub(globalThis, "fetch", () => Promise.reject(new TypeError("Cannot connect")));
  const { assistant } = await load("mcp_servers", demo);
  const run = assistant.run({ prompt: "Hi", vars: { token: "t" }, onError: () => {} });
  assertEquals((await run.result).text, "You said: Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals(events.some(({ type }) => type === "notice"), true);
});

Deno.test("skills: the model loads a skill and its file, and the run continues without the site", async () => {
  using _ = stub(globalThis, "fetch", () => Promise.reject(new TypeError("Cannot connect")));
  const model = scripted(
    { calls: [["skill", { name: "refunds" }]] },
    { calls: [["read_skill_file", { name: "refunds", path: "references/limits.md" }]] },
    "Done.",
  );
  const { assistant } = await load("skills", model);
  const errors: unknown[] = [];
  const run = assistant.run({ prompt: "Money back?", vars: {}, onError: (error) => errors.push(error) });
  const results = (await run.result).messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map(textOf), [
    "Read references/limits.md first. Then answer with the amount.\n\nThe folder of the skill: .agents/skills/refunds\n\n" +
    "The skill has the files references/limits.md. Read them with read_skill_file.",
    "At most 100 for each order.",
  ]);
  assertMatch(model.requests[0]?.instructions ?? "", /\n- refunds: Decides about refunds\./);
  assertEquals(errors.length, 1); // the site
});

Deno.test("use_chat: a message of the page is answered, and stored for a reload", async () => {
  const { default: app } = await load("use_chat", demo);
  const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "send to=ada" }] }];
  const text = await (await post(app, "/chat", { id: "tab", messages })).text();
  assertStringIncludes(text, "tool-approval-request");
  assertEquals((await (await app.request("/chat/tab")).json()).length, 2);
});

Deno.test("ag_ui: state of the session is shown to the client", async () => {
  const { default: app } = await load("ag_ui", demo);
  const messages = [{ id: "m1", role: "user", content: "add todo=sleep" }];
  const body = { threadId: "t1", runId: "r1", messages, tools: [], context: [], state: {}, forwardedProps: {} };
  assertStringIncludes(await (await post(app, "/ag-ui", body)).text(), `{"todos":["sleep"]}`);
});

Deno.test("openai_clients: chat completions and Responses are answered", async () => {
  const { default: app } = await load("openai_clients", demo);
  const content = "weather city=Kyoto";
  const completion = await post(app, "/v1/chat/completions", { model: "a", messages: [{ role: "user", content }] });
  assertEquals((await completion.json()).choices[0].message.content, "Sunny in Kyoto.");
  const response = await post(app, "/v1/responses", { model: "a", input: content });
  assertStringIncludes(JSON.stringify(await response.json()), "Sunny in Kyoto.");
});

Deno.test("mcp_server: an order of an MCP client waits for its person, and belongs to its user", async () => {
  const { default: app } = await load("mcp_server", demo);
  const ada = { headers: { "x-user": "ada" } };
  const params = { arguments: { prompt: "order product=lamp" } };
  const waiting = await call(app, "buyer", params, ada);
  const answer = { ...params, requestState: waiting.requestState, inputResponses: accept(waiting) };
  assertMatch(JSON.stringify((await call(app, "buyer", answer, ada)).content), /Ordered lamp as/);
  const order = await call(app, "order", { arguments: { product: "lamp" } }, ada);
  assertEquals([order.resultType, (await ask(app, "tools/list"))[0]], ["input_required", 403]);
});

Deno.test("event_source: the page starts a run, and GET streams it", async () => {
  const { default: app } = await load("event_source", demo);
  assertMatch(await (await app.request("/")).text(), /new EventSource\("\/agent\/runs\/" \+ run\)/);
  const started = await post(app, "/agent/runs", { prompt: "Hi" }, { prefer: "respond-async" });
  const { run } = await started.json();
  const events = await eventsOf(app.request(`/agent/runs/${run}`));
  assertEquals(events.flatMap((event) => event.type === "text.delta" ? event.text : []).join(""), "You said: Hi");
  const last = events.at(-1)?.id;
  const again = await app.request(`/agent/runs/${run}`, { headers: { "last-event-id": String(last) } });
  assertEquals(again.status, 204);
});

Deno.test("survive_a_deploy: a run that a shutdown hands over is not lost", async () => {
  const { default: app, shutDown, continueLostRuns } = await load("survive_a_deploy", demo);
  assertEquals(first("run.finished", await prompt(app, "charge euros=5")).text, "Charged 5 euros.");
  assertEquals(await continueLostRuns(), 0);
  await shutDown();
  assertEquals((await post(app, "/runs", { prompt: "Hi" })).status, 503);
});

Deno.test("delete_data: a session is deleted, all of a person's sessions, and old data after its time", async () => {
  const { default: app, deleteOldData, deleteAllOf } = await load("delete_data", demo);
  const users = ["ada", "ada", "ada", "bo"];
  const ids: string[] = [];
  for (const user of users) {
    ids.push(first("run.started", await prompt(app, "Hi", { "x-user": user })).session);
  }
  const statusOf = async (user: string, id = "") =>
    (await app.request(`/sessions/${id}`, { headers: { "x-user": user } })).status;
  const statuses = () => Promise.all(users.map((user, index) => statusOf(user, ids[index])));
  await app.request(`/sessions/${ids[0]}`, { method: "DELETE", headers: { "x-user": "ada" } });
  assertEquals(await statuses(), [404, 200, 200, 200]);
  await deleteAllOf("ada");
  assertEquals(await statuses(), [404, 404, 404, 200]);
  const later = Date.now() + 30 * 86_400_000;
  using _ = stub(Date, "now", () => later);
  await deleteOldData();
  assertEquals([await statuses(), await app.sweep()], [[404, 404, 404, 404], 0]);
  await app.settled();
});

Deno.test("upgrade: the page finds the sessions that a newer version has written", async () => {
  using _ = stub(console, "log", () => {});
  const { app, unreadable, shutDown } = await load("upgrade", demo);
  assertEquals((await prompt(app, "Hi")).at(-1)?.type, "run.finished");
  const store = memory();
  for (let number = 0; number < 150; number++) await store.save({ id: `${number}`, version: 0, messages: [] });
  assertEquals(await unreadable(store), []);
  const change = { run: 0, state: "over", base: 1, waiting: 0, head: '{"format":99}', last: 0, entries: [] } as const;
  const creation = { from: undefined, to: { holder: "a", n: 1 }, created: { session: "newer" }, change };
  await store.journal.append(journalKey(undefined, "newer"), creation);
  assertEquals(await unreadable(store), ["newer"]);
  await shutDown();
});

Deno.test("operate: lines tell of runs and of a request that is refused", async () => {
  const { default: app, lines } = await load("operate", demo);
  assertEquals((await app.request("/ready")).status, 200);
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals((await post(app, "/runs", {})).status, 400);
  await app.settled();
  const facts = lines.map((line) => JSON.parse(line));
  assertEquals(facts.map(({ type }) => type), ["run.started", "run.ended", "request.refused"]);
  assertEquals([facts[1].run, facts[1].session, facts[1].status], [run, session, "done"]);
});

Deno.test("databases: a session outlives the server, in SQLite", async () => {
  const { persistence } = await load("databases", demo);
  const app = serve(agent({ model: demo }), persistence);
  const { session } = first("run.started", await prompt(app, "Hi"));
  await app.settled(); // its events are packed after its end
  const response = await serve(agent({ model: demo }), persistence).request(`/sessions/${session}`);
  assertEquals((await response.json()).messages.length, 2);
});

Deno.test("deploy: the key of the platform reaches the provider", async () => {
  const authorizations: (string | null)[] = [];
  using _ = stub(globalThis, "fetch", (_, init) => {
    authorizations.push(new Headers(init?.headers).get("authorization"));
    return Promise.resolve(new Response(chatStream({ content: "Hello!" }, "stop", 2)));
  });
  const { default: app } = await load("deploy", demo);
  const body = JSON.stringify({ prompt: "Hi" });
  const request = new Request("http://localhost/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  const events = await eventsOf(app.fetch(request, { OPENAI_API_KEY: "sk-platform" }));
  assertEquals([first("run.finished", events).text, authorizations], ["Hello!", ["Bearer sk-platform"]]);
});

Deno.test("nothing_streams: the probe sees each chunk", async () => {
  using _ = stub(console, "log", () => {});
  const { probe } = await load("nothing_streams", demo);
  const { default: app } = await load("ask_a_person", demo);
  const times = await probe("", (url, init) => Promise.resolve(app.request(String(url), init)));
  assertEquals(times.length > 1, true);
});

Deno.test("failures: a request that failed is repeated", async () => {
  const busy = new ModelError("Overloaded", { recoverable: true, retryAfter: 1 });
  const overloaded = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
  using second = stub(globalThis, "fetch", () => Promise.resolve(new Response(overloaded, { status: 529 })));
  const { assistant } = await load("failures", scripted({ error: busy }, "Hello!"), {
    env: { ANTHROPIC_API_KEY: "sk-ant-mine" },
  });
  assertEquals((await assistant.run({ prompt: "Hi", onError: () => {} }).result).text, "Hello!");
  assertEquals(second.calls.map(({ args: [url] }) => new URL(`${url}`).hostname), ["api.anthropic.com"]); // the fallback was asked
});

Deno.test("defaults: the program of the page runs", async () => {
  using _ = stub(console, "log", () => {});
  const { default: app } = await load("defaults", demo);
  assertEquals(first("run.finished", await prompt(app, "Hi")).text, "You said: Hi");
});

Deno.test("your_own_middleware: the third call is denied", async () => {
  const calls = ["Kyoto", "Oslo", "Rome"].map((city) => ["weather", { city }] as const);
  const { assistant } = await load("your_own_middleware", scripted({ calls, usage: noUsage }, "Done."));
  const { messages } = await assistant.run("Weather?").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map(({ status }) => status), ["ok", "ok", "denied"]);
});

Deno.test("concepts/onion: a run passes its points in the order of the page", async () => {
  const { assistant } = await load("concepts/onion", demo);
  const { text } = await assistant.run("ping pong").result;
  const page = await Deno.readTextFile("examples/guides/concepts/onion.md");
  assertStringIncludes(page.replace(/\s+/g, " "), `\`${text}\``);
  for (const point of points) assertStringIncludes(page, `<a href="#${point}">`);
});

Deno.test("concepts: events, sessions and recovery behave as their pages say", async () => {
  const { types, text } = await load("concepts/events", demo);
  assertEquals([types.at(0), types.at(-1), text], ["run.started", "run.finished", "You said: Hello"]);
  assertEquals((await load("concepts/sessions", demo)).text, "Visit 2");
  assertEquals((await load("concepts/recovery", demo)).text, "Paid 5.");
});

Deno.test("concepts/guards: a guard denies, allows and asks by the input", async () => {
  const calls = ["/etc/passwd", "a.tmp", "a.txt"].map((path) => ["remove", { path }] as const);
  const { assistant } = await load("concepts/guards", scripted({ calls }, "Done."));
  const { questions, session } = await assistant.run("Tidy up").result;
  assertEquals(questions.map(({ questions }) => questions), [["Delete a.txt?"]]);
  const { messages } = await assistant.run({ prompt: "Never mind", session }).result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map(({ status }) => status), ["denied", "ok", "skipped"]);
});

Deno.test("from/ai_sdk: the page receives the question", async () => {
  const { default: app } = await load("from/ai_sdk", demo);
  const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "refund order=A7 amount=150" }] }];
  assertStringIncludes(await (await post(app, "/chat", { id: "c1", messages })).text(), "tool-approval-request");
});

Deno.test("from/langchain: the rule asks, and the time of the call is logged", async () => {
  using printed = stub(console, "log", () => {});
  const { assistant } = await load("from/langchain", demo);
  const { session, questions } = await assistant.run("refund order=A7 amount=150").result;
  const answers = questions.map(({ callId }) => ({ callId, type: "approve" as const }));
  assertEquals((await assistant.resume({ session, answers }).result).text, "Refunded 150 for order A7.");
  assertEquals(printed.calls.map(({ args: [tool] }) => tool), ["refund"]);
});

Deno.test("from/tanstack_ai: the question interrupts the run of AG-UI", async () => {
  const { default: app } = await load("from/tanstack_ai", demo);
  const messages = [{ id: "m1", role: "user", content: "refund order=A7 amount=150" }];
  const body = { threadId: "t1", runId: "r1", messages, tools: [], context: [], state: {}, forwardedProps: {} };
  assertStringIncludes(await (await post(app, "/ag-ui", body)).text(), `"type":"interrupt"`);
});

Deno.test("from/claude_hooks: the hook and the middleware deny the same call", async () => {
  for (const index of [0, 3]) {
    const calls = ["rm -rf /", "ls"].map((command) => ["Bash", { command }] as const);
    const { assistant } = await load("from/claude_hooks", scripted({ calls }, "Done."), index);
    const { messages } = await assistant.run("Tidy up").result;
    const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
    assertEquals(results.map(({ status }) => status), ["denied", "ok"]);
  }
});

Deno.test("from/claude_hooks: the files of a project, of an administrator and of Copilot are hooks", async () => {
  const { managedHooks, copilotHooks } = await load("from/claude_hooks", scripted(), 2);
  const hooks = (command: string) => ({ hooks: { Stop: [{ hooks: [{ type: "command", command }] }] } });
  const files = [{ version: 1, hooks: { agentStop: [{ type: "command", bash: "true" }] } }];
  assertEquals(managedHooks(hooks("a"), hooks("b")).name, "command_hooks");
  assertEquals(copilotHooks(files).name, "command_hooks");
});

Deno.test("playground: the page is served, a tool runs alone past its guard, and a switch turns the guard off", async () => {
  const { default: app } = await load("playground", demo);
  assertStringIncludes(await (await app.request("/")).text(), "Without it, no person is asked.");
  const call = { name: "refund", input: { order: "A7", amount: 50 } };
  const last = async (headers = {}) => (await eventsOf(post(app, "/calls", call, headers))).at(-1)?.type;
  assertEquals([await last(), await last({ "x-off": "permissions" })], ["run.paused", "run.finished"]);
});

Deno.test("every guide is in the sidebar, and a test executes its programs", async () => {
  const test = await Deno.readTextFile("tests/site/guides_test.ts");
  const shown = sections.flatMap(({ files = [] }) => files);
  const files = await filesIn("examples/guides");
  const guides = files.filter((path) => path.endsWith(".md") && !path.endsWith("/SKILL.md"));
  assertEquals(guides.filter((path) => !shown.includes(path)), []);
  const names = guides.map((path) => path.slice("examples/guides/".length, -".md".length));
  const programs = await Promise.all(names.map(programsOf));
  const asserted = ["test_offline"]; // the gate executes it as a snippet, which has assertions
  assertEquals(names.filter((name, index) => programs[index]?.length && !test.includes(`load("${name}"`)), asserted);
});

Deno.test("every program of a guide that imports Jizai is executed", async () => {
  const guides = (await filesIn("examples/guides")).filter((path) => path.endsWith(".md"));
  const texts = await Promise.all(guides.map(async (path) => ({ path, text: await Deno.readTextFile(path) })));
  const ignored = texts.flatMap(({ path, text }) =>
    text.matchAll(/^```[jt]sx? ignore\n([^]*?)^```$/gm).flatMap(([, program = ""]) =>
      program.includes('from "@jizai/') ? [`${path}: ${program}`] : []
    ).toArray()
  );
  assertEquals(ignored.map((each) => each.split(":")[0]), ["examples/guides/use_chat.md"]); // a browser executes that page
});
