import { agent, serve, vars } from "@jizai/jizai";
import { forward, forwarded, type SecretKey, type Stub } from "@jizai/jizai/forward";
import { scripted } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Context, Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { signatures } from "../../src/session/resume_token/encryption.ts";
import { eventsOf, first, piecesOf, post, refusalOf, tooLarge } from "../support/requests.ts";

const header = "x-jizai-forwarded";
const key = (id: string): SecretKey => ({ id, secret: id.repeat(32) });
const keys = [key("k1")];

/** An app in front of `stub`, for Ada. */
function front(stub: Stub, signing = keys): Hono {
  return new Hono().all("/*", (c) => forward(c, stub, { user: "Ada" }, { keys: signing }));
}

/** An object that greets the user, and counts the greetings. */
function greeter(known = keys) {
  let greeted = 0;
  const assistant = agent({
    vars: vars<{ user: string }>(),
    model({ vars }) {
      greeted++;
      return scripted(`Hello ${vars.user}!`);
    },
  });
  return {
    app: serve(assistant, { vars: forwarded({ keys: known }) }),
    get greeted() {
      return greeted;
    },
  };
}

/** The greeting for a request with these headers. */
async function greeting(app: Hono, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const request = (path: string, init?: RequestInit) =>
    app.request(path, { ...init, headers: { ...headers, "content-type": "application/json" } });
  return first("run.finished", await eventsOf(post({ request }, "/runs", { prompt: "Hi" }))).text;
}

/** Returns the signature of a forwarded request. */
async function headerOf(request: Request, user = "Ada", signing = keys): Promise<string> {
  const forwardedHeader = Promise.withResolvers<string>();
  const stub: Stub = {
    fetch({ headers }) {
      forwardedHeader.resolve(headers.get(header) ?? "");
      return new Response();
    },
  };
  await new Hono().all("/*", (c) => forward(c, stub, { user }, { keys: signing })).fetch(request);
  return await forwardedHeader.promise;
}

const prompt = `{"prompt":"Hi"}`;
const asked = (path = "/runs", method = "POST", body: string | null = prompt) =>
  new Request(`http://localhost${path}`, { method, body });

Deno.test("forward() passes vars to the object", async () => {
  assertEquals(await greeting(front(greeter().app)), "Hello Ada!");
});

Deno.test("forward() replaces a signature that the client sent", async () => {
  const { app } = greeter();
  const theirs = [
    "Eve",
    await headerOf(asked(), "Eve", [key("k2")]),
    await headerOf(asked(), "Eve"), // also a valid signature of another request
  ];
  for (const value of theirs) assertEquals(await greeting(front(app), { [header]: value }), "Hello Ada!");
});

Deno.test("forward() passes JSON of every type as vars", async () => {
  for (const given of [undefined, null, "Ada", 1, ["自在鉤"], { user: { name: "Ada" } }]) {
    const read = forwarded({ keys });
    const object = new Hono().get("/", async (c) => c.json({ vars: await read(c) }));
    const app = new Hono().get("/", (c) => forward(c, object, given, { keys }));
    assertEquals((await (await app.request("/")).json()).vars, given);
  }
});

Deno.test("forward() changes nothing else in a request", async () => {
  const arrived = Promise.withResolvers<Request>();
  const app = front({
    fetch(request) {
      arrived.resolve(request);
      return new Response();
    },
  });
  const url = "http://example.com/a%20b/runs?after=3";
  const bytes = new Uint8Array([0, 255, ...new TextEncoder().encode("自在鉤")]);
  const body = new Blob([bytes]).stream();
  await app.request(url, { method: "PUT", headers: { "x-a": "1", "last-event-id": "3" }, body });
  const request = await arrived.promise;
  const { [header]: signed, ...headers } = Object.fromEntries(request.headers);
  assert(signed);
  assertEquals([request.method, request.url, headers], ["PUT", url, { "x-a": "1", "last-event-id": "3" }]);
  assertEquals(await request.bytes(), bytes);
});

Deno.test("forward() forwards a body that the app in front has read", async () => {
  const object = greeter();
  const app = new Hono().use(async (c, next) => {
    assertEquals(await c.req.json(), { prompt: "Hi" });
    await next();
  }).route("/", front(object.app));
  assertEquals(await greeting(app), "Hello Ada!");
});

Deno.test("forward() refuses a body that is too large", async () => {
  const object = greeter();
  const app = new Hono().all("/*", (c) => forward(c, object.app, {}, { keys, maxBody: 10 }));
  const message = "Cannot forward the request: its body has more than 10 bytes";
  assertEquals(await refusalOf(post(app, "/runs", { prompt: "Hi" })), [413, { code: "too-large", message }]);
  assertEquals(object.greeted, 0);
});

Deno.test("forward() rejects with the error of a body that cannot be read, and forwards nothing", async () => {
  const object = greeter();
  const errors: string[] = [];
  const app = front(object.app).onError((error, c) => {
    errors.push(error.message);
    return c.text("cut off", 500);
  });
  const body = new ReadableStream({
    pull() {
      throw new Error("connection reset");
    },
  });
  const response = await app.fetch(new Request("http://localhost/runs", { method: "POST", body }));
  assertEquals([response.status, errors, object.greeted], [500, ["connection reset"], 0]);
});

const encode = (text: string) => new TextEncoder().encode(text);
for (
  const [named, body] of [
    ["with a byte order mark", encode(`\uFEFF${prompt}`)],
    ["with invalid UTF-8", Uint8Array.from([...encode(`{"prompt":"`), 0xff, ...encode(`"}`)])],
  ] as const
) {
  Deno.test(`forwarded() accepts a forwarded body ${named}, as serve() does`, async () => {
    const request = () => {
      const headers = { "content-type": "application/json" };
      return new Request("http://localhost/runs", { method: "POST", headers, body });
    };
    const plain = serve(agent({ model: scripted("Hello!") }));
    for (const app of [plain, front(greeter().app)]) {
      assertEquals((await eventsOf(app.fetch(request()))).at(-1)?.type, "run.finished");
    }
  });
}

Deno.test("an object whose maxBody is smaller than that of the app in front refuses a body as too large", async () => {
  const object = serve(agent({ model: scripted() }), { vars: forwarded({ keys }), maxBody: 100 });
  const stub: Stub = {
    fetch(request) {
      const headers = new Headers(request.headers);
      headers.delete("content-length"); // as a stub that streams the body
      return object.fetch(new Request(request, { headers }));
    },
  };
  const response = post(front(stub), "/runs", { prompt: "x".repeat(200) });
  assertEquals(await refusalOf(response), tooLarge(100));
});

Deno.test("forward() changes nothing in a response, which streams", async () => {
  const answer = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
  const answering = answer.writable.getWriter();
  const answered = new Response(answer.readable, { status: 418, statusText: "Teapot", headers: { "x-a": "1" } });
  const response = await front({ fetch: () => answered }).request("/");
  assertEquals([response.status, response.statusText, [...response.headers]], [418, "Teapot", [["x-a", "1"]]]);
  const { next } = piecesOf(response);
  for (const half of ["自在", "鉤"]) {
    const [piece] = await Promise.all([next(), answering.write(new TextEncoder().encode(half))]);
    assertEquals(piece, half);
  }
});

Deno.test("forward() returns a response whose headers middleware can change", async () => {
  const app = new Hono().use(secureHeaders()).route(
    "/",
    front({ fetch: () => Response.redirect("http://localhost/b") }),
  );
  const { status, headers } = await app.request("/");
  assertEquals([status, headers.get("location"), headers.get("x-frame-options")], [
    302,
    "http://localhost/b",
    "SAMEORIGIN",
  ]);
});

Deno.test("forward() reports the client's disconnect to the object, before and during the response", async () => {
  const leaving = new AbortController();
  const seen = Promise.withResolvers<unknown>();
  const left = Promise.withResolvers<void>();
  const app = front({
    fetch({ signal }) {
      signal.addEventListener("abort", () => seen.resolve(signal.reason));
      return new Response(new ReadableStream({ cancel: () => left.resolve() }));
    },
  });
  const { body } = await app.fetch(new Request("http://localhost/", { signal: leaving.signal }));
  leaving.abort("left");
  assertEquals(await seen.promise, "left");
  await body?.cancel();
  await left.promise;
});

Deno.test("forwarded() refuses a request that differs from the forwarded one, and runs nothing", async () => {
  const { sign } = signatures("jizai.resumeToken", keys);
  const signed = await headerOf(asked());
  const [id, content, signature] = signed.split(".");
  const another = (await headerOf(asked(), "Eve")).split(".")[1];
  const forged: readonly (readonly [why: string, value: string | undefined])[] = [
    ["it is missing", undefined],
    ["it is empty", ""],
    ["it is made up", "Ada"],
    ["it is two", `${signed}, ${signed}`],
    ["it says something else", `${id}.${another}.${signature}`],
    ["it is cut", signed.slice(0, -1)],
    ["it is signed for something else", await sign(atob((content ?? "").replaceAll("-", "+").replaceAll("_", "/")))],
    ["its key is not known", await headerOf(asked(), "Ada", [key("k2")])],
    ["its key only has the name of one", await headerOf(asked(), "Ada", [{ id: "k1", secret: "2".repeat(64) }])],
    ["it is of another method", await headerOf(asked("/runs", "PUT"))],
    ["it is of another path", await headerOf(asked("/runs/r1/stop"))],
    ["it is of another query", await headerOf(asked("/runs?after=1"))],
    ["it is of another body", await headerOf(asked("/runs", "POST", `{"prompt":"Ho"}`))],
    ["it is of a shorter body", await headerOf(asked("/runs", "POST", `{}`))],
    ["it is of no body", await headerOf(asked("/runs", "POST", null))],
  ];
  const object = greeter();
  for (const [why, value] of forged) {
    const headers = { "content-type": "application/json", ...(value !== undefined && { [header]: value }) };
    const response = object.app.request("/runs", { method: "POST", headers, body: prompt });
    const error = { code: "not-forwarded", message: "Cannot serve this request: it was not forwarded" };
    assertEquals(await refusalOf(response), [401, error], why);
  }
  assertEquals(object.greeted, 0);
});

Deno.test("forwarded() guards every route of serve() except the page, health and ready", async () => {
  const { app } = greeter();
  const routes: readonly (readonly [method: string, path: string, body?: unknown])[] = [
    ["POST", "/runs", { prompt: "Hi" }],
    ["GET", "/runs/r1"],
    ["POST", "/runs/r1/messages", { text: "Hi" }],
    ["POST", "/runs/r1/finish"],
    ["POST", "/runs/r1/stop"],
    ["GET", "/sessions/s1"],
    ["DELETE", "/sessions/s1"],
    ["POST", "/sessions/s1/answers", { answers: [] }],
    ["POST", "/sessions/s1/compact", {}],
  ];
  const served = new Set(
    app.routes.filter(({ method }) => method !== "ALL").map((route) => `${route.method} ${route.path}`),
  );
  const guarded = routes.map(([method, path]) => `${method} ${path.replace(/[rs]1/, ":jizai_id")}`);
  assertEquals([...served.difference(new Set(guarded))], ["GET /health", "GET /ready"]);
  for (const [method, path, body] of routes) {
    const init = body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    assertEquals((await app.request(path, { method, ...init })).status, 401, path);
  }
});

Deno.test("forwarded() accepts a signature for a minute", async () => {
  using time = new FakeTime();
  const signed = await headerOf(asked());
  const object = new Hono().post("/runs", async (c: Context) => c.json(await forwarded({ keys })(c)));
  const send = () => {
    const request = asked();
    request.headers.set(header, signed);
    return object.fetch(request);
  };
  time.tick(59_999);
  assertEquals(await (await send()).json(), { user: "Ada" });
  time.tick(1);
  assertEquals((await send()).status, 401);
});

Deno.test("forward() signs with the first key, and forwarded() accepts every key", async () => {
  const changing = [key("k2"), key("k1")];
  assertEquals(await greeting(front(greeter(changing).app)), "Hello Ada!");
  assertEquals(await greeting(front(greeter(changing).app, changing)), "Hello Ada!");
  assertEquals((await post(front(greeter().app, changing), "/runs", { prompt: "Hi" })).status, 401);
});

Deno.test("forward() and forwarded() need a key", async () => {
  assertThrows(() => forwarded({ keys: [] }), RangeError, "expected at least one key");
  assertThrows(() => forwarded({ keys: [{ id: "k1", secret: "short" }] }), RangeError, "expected at least 32 bytes");
  const app = front({ fetch: () => new Response() }, []).onError((error) => Promise.reject(error));
  await assertRejects(async () => await app.request("/"), RangeError, "expected at least one key");
});
