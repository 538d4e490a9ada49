import { agent, type Event, memory, serve, type ServeOptions, user } from "@jizai/jizai";
import { ShapeError, type Wire, type WireRequest } from "@jizai/jizai/wire";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { drop } from "../support/asking.ts";
import { halting } from "../support/halting.ts";
import { type App, piecesOf, post, refusalOf } from "../support/requests.ts";

/** A dialect that answers with a line for each text, or with JSON if the prompt ends with "!". */
function plain(): Wire {
  const lines = {
    type: "stream" as const,
    encoder: () => (event: Event) => event.type === "text.delta" ? `${event.text}\n` : "",
  };
  const whole = {
    type: "json" as const,
    headers: { "x-plain": "yes" },
    collector: () => (event: Event) =>
      event.type === "run.finished" ? { status: 200 as const, body: { text: event.text } } : undefined,
  };
  function chat({ body, params: { room }, session }: WireRequest) {
    if (typeof body !== "string") throw new ShapeError("Cannot read the body: expected a string", "body");
    const input = () => ({ messages: [user(body)] });
    return { type: "chat" as const, session: session ?? room, input, reply: body.endsWith("!") ? whole : lines };
  }
  return {
    routes: (name) => [
      { method: "POST", path: "/plain/:room", parse: chat },
      {
        method: "GET",
        path: "/plain/:room",
        parse: ({ params: { room = "" } }) => ({ type: "follow", session: room, reply: lines }),
      },
      {
        method: "DELETE",
        path: "/plain/:room",
        parse: ({ params: { room = "" } }) => ({ type: "stop", session: room }),
      },
      { method: "GET", path: "/plain", parse: () => ({ type: "json", body: { name } }) },
    ],
  };
}

Deno.test("serve() serves a custom wire: as a stream, as JSON, and with static JSON", async () => {
  const app = serve(agent({ name: "helper", model: scripted({ text: ["Hel", "lo."] }, "Hello!") }), {
    wires: [plain()],
  });
  const stream = await post(app, "/plain/one", "Hi");
  assertEquals([stream.headers.get("content-type"), await stream.text()], ["text/event-stream", "Hel\nlo.\n"]);
  const whole = await post(app, "/plain/one", "Hi!");
  assertEquals([whole.headers.get("x-plain"), await whole.json()], ["yes", { text: "Hello!" }]);
  assertEquals(await (await app.request("/plain")).json(), { name: "helper" });
  assertEquals(await refusalOf(post(app, "/plain/one", { not: "a text" })), [400, {
    code: "invalid",
    message: "Cannot read the body: expected a string",
    field: "body",
  }]);
  assertEquals((await app.request("/plain/one", { method: "PUT" })).headers.get("allow"), "POST, GET, HEAD, DELETE");
});

Deno.test("serve() sends no chunk for an event without a frame", async () => {
  const app = serve(agent({ model: scripted({ text: ["Hel", "lo."] }) }), { wires: [plain()] });
  const pieces = piecesOf(await post(app, "/plain/one", "Hi"));
  const received: string[] = [];
  for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) received.push(piece);
  assertEquals([received.join(""), received.includes("")], ["Hel\nlo.\n", false]);
});

for (const body of ["Hi", "Hi!"]) {
  Deno.test(`serve() recognizes a repeated request of a wire, ${body === "Hi" ? "streamed" : "as JSON"}`, async () => {
    const model = scripted("Hello.");
    const app = serve(agent({ model }), { wires: [plain()] });
    const send = async (text = body) => await post(app, "/plain/one", text, { "idempotency-key": "k" });
    const [first, second] = await Promise.all([send(), send()]);
    const third = await send();
    const reported = await Promise.all([first, second, third].map((response) => response.text()));
    assertEquals([new Set(reported).size, model.left], [1, 0]);
    assertEquals((await refusalOf(send("Other")))[0], 409);
  });
}

Deno.test("serve() follows and stops the run of a session over a wire", async () => {
  const { model, begun, release } = halting("Two.");
  const app = serve(agent({ model }), { wires: [plain()], onClientGone: "detach" });
  const first = piecesOf(await post(app, "/plain/one", "Hi"));
  await begun;
  await first.cancel();
  const rest = app.request("/plain/one");
  release();
  assertEquals(await (await rest).text(), "One.\nTwo.\n");
  const head = await app.request("/plain/one", { method: "HEAD" });
  assertEquals([head.status, await head.text()], [200, ""]);
  const other = halting("Two.");
  const stopping = serve(agent({ model: other.model }), { wires: [plain()] });
  const talking = post(stopping, "/plain/one", "Hi");
  await other.begun;
  await stopping.request("/plain/two", { method: "DELETE" });
  await stopping.request("/plain/one", { method: "DELETE" });
  assertEquals(await (await talking).text(), "One.\n");
});

const busy = { refuse: 409, queue: 200 } as const;
for (const [how, expected] of Object.entries(busy)) {
  Deno.test(`serve() ${how === "queue" ? "queues" : "refuses"} a prompt of a wire whose session is busy`, async () => {
    const { model, begun, release } = halting("Two.");
    const app = serve(agent({ model }), { wires: [plain()], busy: how as keyof typeof busy }); // one of the keys of `busy`
    const first = await post(app, "/plain/one", "Hi");
    await begun;
    const second = post(app, "/plain/one", "And?");
    setTimeout(release);
    const { status, body } = await second;
    await body?.cancel();
    assertEquals([status, await first.text()], [expected, "One.\nTwo.\n"]);
  });
}

Deno.test("serve() drains a run whose client disconnects before its JSON response", async () => {
  const { model, begun, release } = halting("Two.");
  const ended = Promise.withResolvers<Event>();
  const observe = (event: Event) => void (event.type === "run.finished" && ended.resolve(event));
  const app = serve(agent({ model, observe }), { wires: [plain()], onClientGone: "drain" });
  const leaving = new AbortController();
  const request = new Request("http://localhost/plain/one", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `"Hi!"`,
    signal: leaving.signal,
  });
  const responding = app.fetch(request);
  await begun;
  leaving.abort();
  release();
  assertEquals((await ended.promise as { readonly text: string }).text, "One.Two.");
  await responding;
});

/** The request of each client. */
const requests: Readonly<Record<string, unknown>> = {
  "/chat": { id: "s", messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Go" }] }] },
  "/v1/chat/completions": { stream: true, messages: [{ role: "user", content: "Go" }] },
  "/v1/responses": { stream: true, input: "Go" },
  "/ag-ui": { threadId: "s", runId: "r", messages: [{ id: "m", role: "user", content: "Go" }] },
};
for (const [path, body] of Object.entries(requests)) {
  Deno.test(`serve() responds at ${path} with a durable store as with one in memory`, async () => {
    const wires = [aiSdkUi(), chatCompletions(), responses(), agUi()];
    const model = () =>
      scripted({ reasoning: ["H", "m."], text: ["S", "ee."], calls: [["drop", { table: "a" }]] }, "unreached");
    const reported = async (options: ServeOptions) => {
      const app: App = serve(agent({ model: model(), tools: [drop] }), { wires, ...options });
      const text = await (await post(app, path, body)).text();
      return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "uuid").replace(/[\w-]{22}-1(?!\d)/g, "run")
        .replace(/"created(_at)?":\d+/g, "");
    };
    const [inMemory, stored] = await Promise.all([reported({}), reported({ store: durable(memory().journal) })]);
    assertEquals(stored, inMemory);
  });
}

Deno.test("serve() refuses an empty session in the URL with 400, at native routes and at those of wires", async () => {
  const session: ServeOptions["session"] = (c) => c.req.query("room");
  const app = serve(agent({ model: scripted() }), { wires: [plain()], session });
  const requests = [
    post(app, "/runs?room=", { prompt: "Hi" }),
    post(app, "/plain/r1?room=", "Hi"),
    app.request("/plain/r1?room="),
    app.request("/plain/r1?room=", { method: "DELETE" }),
  ];
  for (const request of requests) {
    assertEquals(await refusalOf(request), [400, {
      code: "invalid",
      field: "id",
      message: "Cannot read id: expected the id of a session or run",
    }]);
  }
});
