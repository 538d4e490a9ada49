import { agent, type Message, serve } from "../../mod.ts";
import { scripted } from "../../src/model/scripted.ts";
import { denoKvStore } from "../../src/session/deno_kv/mod.ts";
import { agUi } from "../../src/wire/ag_ui/mod.ts";
import { aiSdkUi } from "../../src/wire/ai_sdk/mod.ts";
import { chatCompletions, responses } from "../../src/wire/openai/mod.ts";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import { eventsOf, first, post, refusalOf, tooLarge } from "../support/requests.ts";

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

function refused(field: string, expected: string) {
  return [400, { code: "invalid", message: `Cannot read ${field}: expected ${expected}`, field }] as const;
}

const runs: readonly (readonly [body: unknown, field: string, expected: string])[] = [
  [{}, "prompt", "a string"],
  [{ prompt: 1 }, "prompt", "a string"],
  [{ prompt: null }, "prompt", "a string"],
  [{ prompt: "Hi", session: 1 }, "session", "a string"],
  [{ prompt: "Hi", messages: [user("Hi")] }, "messages", "a prompt or messages, not both"],
  [{ messages: "Hi" }, "messages", "an array"],
  [{ messages: [] }, "messages", 'a last message of role "user"'],
  [{ messages: [user("Hi"), { role: "assistant", parts: [] }] }, "messages", 'a last message of role "user"'],
  [{ messages: [null] }, "messages.0", "an object"],
  [{ messages: [[]] }, "messages.0", "an object"],
  [{ messages: [{ parts: [] }] }, "messages.0.role", 'one of "user", "assistant", "tool"'],
  [{ messages: [{ role: "system", parts: [] }] }, "messages.0.role", 'one of "user", "assistant", "tool"'],
  [{ messages: [{ role: "constructor", parts: [] }] }, "messages.0.role", 'one of "user", "assistant", "tool"'],
  [{ messages: [{ role: "user" }] }, "messages.0.parts", "an array"],
  [{ messages: [{ role: "user", content: "Hi" }] }, "messages.0.parts", "an array"],
  [
    { messages: [{ role: "user", parts: [{ type: "text", text: "a" }, { type: "text" }] }] },
    "messages.0.parts.1.text",
    "a string",
  ],
  [{ messages: [{ role: "user", parts: [{ type: "call" }] }] }, "messages.0.parts.0.type", 'one of "text", "media"'],
  [{ messages: [{ role: "user", parts: [{ type: "media", url: "a" }] }] }, "messages.0.parts.0.mediaType", "a string"],
  [
    { messages: [{ role: "user", parts: [{ type: "media", mediaType: "a/b" }] }] },
    "messages.0.parts.0",
    "data or a url",
  ],
  [{ messages: [{ role: "user", parts: [], from: {} }] }, "messages.0.from", "a string"],
  [
    { messages: [{ role: "assistant", parts: [{ type: "image" }] }] },
    "messages.0.parts.0.type",
    'one of "text", "reasoning", "media", "source", "provider_call", "provider_result", "refusal", "logprobs", "call"',
  ],
  [{ messages: [{ role: "assistant", parts: [{ type: "media" }] }] }, "messages.0.parts.0.mediaType", "a string"],
  [
    { messages: [{ role: "assistant", parts: [{ type: "media", mediaType: "a/b" }] }] },
    "messages.0.parts.0",
    "data or a url",
  ],
  [{ messages: [{ role: "assistant", parts: [{ type: "call", id: 1 }] }] }, "messages.0.parts.0.id", "a string"],
  [
    { messages: [{ role: "assistant", parts: [{ type: "call", id: "1", name: "a" }] }] },
    "messages.0.parts.0.input",
    "a value",
  ],
  [{ messages: [{ role: "tool", results: [{ callId: "1" }] }] }, "messages.0.results.0.name", "a string"],
  [
    { messages: [{ role: "tool", results: [{ callId: "1", name: "a", status: "fine" }] }] },
    "messages.0.results.0.status",
    'one of "ok", "error", "denied", "timeout", "skipped", "aborted"',
  ],
];

Deno.test("serve() names the invalid field of a body", async () => {
  const app = serve(agent({ model: scripted() }));
  for (const [body, field, expected] of runs) {
    assertEquals(await refusalOf(post(app, "/runs", body)), refused(field, expected));
  }
});

Deno.test("serve() answers deeply nested JSON with 400, at every place in the body", async () => {
  const app = serve(agent({ model: scripted("Hello!") }), {
    wires: [aiSdkUi(), agUi(), chatCompletions(), responses()],
  });
  const headers = { "content-type": "application/json" };
  const hi = `{"role":"user","parts":[{"type":"text","text":"Hi"}]}`;
  const requests = [
    ["/runs", `{"messages":[{"role":"assistant","parts":[{"type":"reasoning","text":"","meta":DEEP}]},${hi}]}`],
    ["/runs", `{"messages":[{"role":"assistant","parts":[{"type":"call","id":"1","name":"a","input":DEEP}]},${hi}]}`],
    ["/sessions/s1/answers", `{"answers":[{"type":"approve","callId":"1","input":DEEP}]}`],
    ["/chat", `{"id":"c1","messages":[{"role":"user","parts":[{"type":"text","text":DEEP}]}]}`],
    ["/chat", `{"id":"c1","messages":[],"more":DEEP}`],
    ["/ag-ui", `{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":DEEP}]}`],
    ["/ag-ui", `{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"a","parameters":DEEP}]}`],
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":DEEP}]}`],
    ["/v1/responses", `{"input":DEEP}`],
  ] as const;
  for (const levels of [1_000, 20_000]) {
    const deep = `${`{"a":`.repeat(levels)}1${"}".repeat(levels)}`;
    for (const [path, body] of requests) {
      const response = await app.request(path, { method: "POST", headers, body: body.replace("DEEP", deep) });
      const { error } = await response.json();
      assertEquals([path, response.status, /at most 100 levels of nesting$/.test(error.message)], [path, 400, true]);
    }
  }
});

Deno.test("serve() names the invalid field of answers", async () => {
  const app = serve(agent({ model: scripted() }));
  const answers: readonly (readonly [body: unknown, field: string, expected: string])[] = [
    [{}, "answers", "an array"],
    [{ answers: {} }, "answers", "an array"],
    [{ answers: ["yes"] }, "answers.0", "an object"],
    [{ answers: [{ callId: "1" }] }, "answers.0.type", 'one of "approve", "deny", "reply"'],
    [{ answers: [{ callId: "1", type: true }] }, "answers.0.type", 'one of "approve", "deny", "reply"'],
    ...["constructor", "__proto__", "toString", "allow", ""].map((type) =>
      [{ answers: [{ callId: "1", type }] }, "answers.0.type", `one of "approve", "deny", "reply"`] as const
    ),
    [{ answers: [{ type: "approve" }] }, "answers.0.callId", "a string"],
    [{ answers: [{ callId: "1", type: "deny", reason: 1 }] }, "answers.0.reason", "a string"],
  ];
  for (const [body, field, expected] of answers) {
    assertEquals(await refusalOf(post(app, "/sessions/s1/answers", body)), refused(field, expected));
  }
});

Deno.test("serve() refuses a body that is not a JSON object", async () => {
  const app = serve(agent({ model: scripted() }));
  const headers = { "content-type": "application/json" };
  for (
    const [body, expected] of [["", "JSON"], ["{", "JSON"], ["null", "an object"], ["[]", "an object"], [
      `"Hi"`,
      "an object",
    ]]
  ) {
    assertEquals(await refusalOf(app.request("/runs", { method: "POST", headers, body: body ?? "" })), [
      400,
      { code: "invalid", message: `Cannot read the body: expected ${expected}` },
    ]);
  }
});

Deno.test("serve() refuses a body whose content type is not JSON", async () => {
  const app = serve(agent({ model: scripted() }));
  const error = { code: "not-json", message: "Cannot read the body: expected content-type application/json" };
  for (
    const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/jsonp",
      "text/json; application/json",
    ]
  ) {
    const request = { method: "POST", headers: { "content-type": type }, body: `{"prompt":"Hi"}` };
    assertEquals(await refusalOf(app.request("/runs", request)), [415, error]);
  }
  assertEquals(await refusalOf(app.request("/runs", { method: "POST" })), [415, error]);
});

Deno.test("serve() accepts every JSON content type", async () => {
  for (const type of ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.api+json"]) {
    const request = { method: "POST", headers: { "content-type": type }, body: `{"prompt":"Hi"}` };
    const app = serve(agent({ model: scripted("Hello!") }));
    assertEquals(first("run.finished", await eventsOf(app.request("/runs", request))).text, "Hello!");
  }
});

Deno.test("serve() refuses a body that is too large, with a right, a missing or a wrong content length", async () => {
  const app = serve(agent({ model: scripted("Hello!") }), { maxBody: 100 });
  const large = JSON.stringify({ prompt: "ü".repeat(50) });
  const cancelled = Promise.withResolvers<void>();
  const endless = () =>
    new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(large)),
      cancel: () => cancelled.resolve(),
    });
  for (
    const [length, body] of [["115", large], [undefined, large], [undefined, endless()], ["20", endless()]] as const
  ) {
    const headers = { "content-type": "application/json", ...(length !== undefined && { "content-length": length }) };
    assertEquals(await refusalOf(app.request("/runs", { method: "POST", headers, body })), tooLarge(100));
  }
  await cancelled.promise;
  const small = `{"prompt":"${"ü".repeat(43)}"}`; // exactly 100 bytes
  const fits = app.request("/runs", { method: "POST", headers: { "content-type": "application/json" }, body: small });
  assertEquals(first("run.finished", await eventsOf(fits)).text, "Hello!");
});

Deno.test("serve() over the network refuses a body that is too large while it arrives", async () => {
  const app = serve(agent({ model: scripted() }));
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
  const response = await fetch(`http://127.0.0.1:${server.addr.port}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: new Blob(["x".repeat(1_048_577)]).stream(),
  });
  assertEquals(await refusalOf(response), tooLarge(1_048_576));
});

Deno.test("serve() reads a body whose characters are split over chunks", async () => {
  const bytes = new TextEncoder().encode(JSON.stringify({ prompt: "自在鉤" }));
  const body = new ReadableStream({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  const app = serve(agent({ model: scripted("Hello!") }));
  const headers = { "content-type": "application/json" };
  const events = await eventsOf(app.request("/runs", { method: "POST", headers, body }));
  assertEquals(first("prompt.accepted", events).prompt, user("自在鉤"));
});

Deno.test("serve() lets other Hono handlers read the body before or after", async () => {
  const seen: unknown[] = [];
  const app = new Hono();
  app.use(async (c, next) => {
    if (c.req.header("early")) seen.push(await c.req.json());
    await next();
  });
  app.route(
    "/",
    serve(agent({ model: scripted("One.", "Two.") }), { vars: async (c) => void seen.push(await c.req.json()) }),
  );
  const headers = { "content-type": "application/json" };
  for (const each of [headers, { ...headers, early: "yes" }]) {
    await eventsOf(app.request("/runs", { method: "POST", headers: each, body: `{"prompt":"Hi"}` }));
  }
  assertEquals(seen, [{ prompt: "Hi" }, { prompt: "Hi" }, { prompt: "Hi" }]);
});

Deno.test("serve() accepts the client's messages, drops unknown fields, and repairs them", async () => {
  const model = scripted("Hello!");
  const given = [
    { ...user("Weather?"), id: "m1" },
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "Hm.", meta: { signature: ["a", null] }, index: 0 },
        { type: "text", text: "Let me see." },
        { type: "call", id: "c1", name: "weather", input: { city: "Kyoto", deep: [1] } },
        { type: "call", id: "c2", name: "weather", input: "Os", malformed: "not JSON" },
      ],
    },
    {
      role: "tool",
      results: [{ callId: "c1", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }] }],
    },
    { role: "user", from: "me", parts: [{ type: "media", mediaType: "image/png", data: "iVBO", alt: "" }] },
  ];
  const events = await eventsOf(post(serve(agent({ model })), "/runs", { messages: given }));
  assertEquals(events.flatMap((event) => event.type === "warning" ? [event.code, event.message] : []), [
    "note.dropped",
    "Notes of a provider, which only this server may write, were left out of the messages: 1",
    "transcript.repaired",
    "The messages were not valid: no result for call c2",
  ]);
  assertEquals(model.requests[0]?.messages, [
    user("Weather?"),
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "Let me see." },
        { type: "call", id: "c1", name: "weather", input: { city: "Kyoto", deep: [1] } },
        { type: "call", id: "c2", name: "weather", input: "Os", malformed: "not JSON" },
      ],
    },
    {
      role: "tool",
      results: [
        { callId: "c1", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }] },
        { callId: "c2", name: "weather", status: "skipped", parts: [{ type: "text", text: "There is no result." }] },
      ],
    },
    { role: "user", from: "me", parts: [{ type: "media", mediaType: "image/png", data: "iVBO" }] },
  ]);
});

Deno.test("serve() leaves out the author of a message that names the engine or compaction()", async () => {
  const model = scripted("Hello!");
  const reserved = ["compaction", "context", "input", "output", "prompt", "session", "stop", "turn"];
  const named = reserved.map((from) => ({ ...user("Hi"), from }));
  const own = { ...user("Hi"), from: "me" };
  await eventsOf(post(serve(agent({ model })), "/runs", { messages: [...named, own] }));
  assertEquals(model.requests[0]?.messages, [...named.map(() => user("Hi")), own]);
});

Deno.test("serve() refuses ids that are too long for database keys or empty, and accepts all others", async () => {
  using kv = await Deno.openKv(":memory:");
  const app = serve(agent({ model: scripted(...Array.from({ length: 6 }, () => "Hello!")) }), {
    store: denoKvStore(kv),
    session: (c) => c.req.query("room"),
    wires: [aiSdkUi(), agUi()],
  });
  /** Returns the response to every request that contains an id. */
  async function answered(id: string): Promise<readonly (readonly [number, unknown])[]> {
    const chat = { id, messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Hi" }] }] };
    const thread = { threadId: id, runId: "r", messages: [{ id: "m", role: "user", content: "Hi" }] };
    const asked: readonly (() => Response | Promise<Response>)[] = [
      () => app.request(`/runs/${id}`),
      () => app.request(`/sessions/${id}`),
      () => app.request(`/chat/${id}/stream`),
      () => post(app, `/runs/${id}/messages`, { text: "Hi" }),
      () => post(app, `/runs/${id}/finish`),
      () => post(app, `/runs/${id}/stop`),
      () => post(app, `/sessions/${id}/answers`, { answers: [] }),
      () => post(app, `/sessions/${id}/compact`, {}),
      () => post(app, "/runs", { prompt: "Hi", session: id }),
      () => post(app, `/runs?room=${id}`, { prompt: "Hi" }),
      () => post(app, "/chat", chat),
      () => post(app, "/ag-ui", thread),
    ];
    const answers: (readonly [number, unknown])[] = [];
    for (const ask of asked) {
      const response = await ask();
      const text = await response.text();
      answers.push([response.status, response.status === 400 ? JSON.parse(text).error : undefined]);
    }
    return answers;
  }

  assertEquals(
    await refusalOf(post(app, "/runs?room=", { prompt: "Hi" })),
    refused("id", "the id of a session or run"),
  );
  const [status, error] = refused("id", "500 characters at most");
  assertEquals(await answered("語".repeat(501)), Array(12).fill([status, error]));
  for (const id of ["語".repeat(500), '\u{10ffff}["","r"]']) {
    const statuses = (await answered(id)).map(([status]) => status);
    assertEquals(statuses, [404, 404, 204, 404, 404, 404, 404, 404, 404, 200, 200, 200]);
  }
});
