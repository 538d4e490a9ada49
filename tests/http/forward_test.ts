import { agent, serve, vars } from "@jizai/jizai";
import { forward, forwarded, type SigningKey, type Stub } from "@jizai/jizai/forward";
import { scripted } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Context, Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { signatures } from "../../src/session/resume_token/signature.ts";
import { eventsOf, first, piecesOf, post, refusalOf } from "../support/requests.ts";

const header = "x-jizai-forwarded";
const key = (id: string): SigningKey => ({ id, secret: id.repeat(32) });
const keys = [key("k1")];

/** An app in front of `stub`, for Ada. */
function front(stub: Stub, signing = keys): Hono {
  return new Hono().all("/*", (c) => forward(c, stub, { user: "Ada" }, { keys: signing }));
}

/** An object that greets who is asking, and how often it did. */
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

/** What is said to whoever asks with these headers. */
async function greeting(app: Hono, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const request = (path: string, init?: RequestInit) =>
    app.request(path, { ...init, headers: { ...headers, "content-type": "application/json" } });
  return first("run.finished", await eventsOf(post({ request }, "/runs", { prompt: "Hi" }))).text;
}

/** The header that a request is forwarded with. */
async function headerOf(request: Request, user = "Ada", signing = keys): Promise<string> {
  const said = Promise.withResolvers<string>();
  const stub: Stub = {
    fetch({ headers }) {
      said.resolve(headers.get(header) ?? "");
      return new Response();
    },
  };
  await new Hono().all("/*", (c) => forward(c, stub, { user }, { keys: signing })).fetch(request);
  return await said.promise;
}

const asked = (path = "/runs", method = "POST") => new Request(`http://localhost${path}`, { method });

Deno.test("forward() tells the object who is asking", async () => {
  assertEquals(await greeting(front(greeter().app)), "Hello Ada!");
});

Deno.test("forward() leaves out what a client says in its place", async () => {
  const { app } = greeter();
  const theirs = [
    "Eve",
    await headerOf(asked(), "Eve", [key("k2")]),
    await headerOf(asked(), "Eve"), // even one that would count
  ];
  for (const said of theirs) assertEquals(await greeting(front(app), { [header]: said }), "Hello Ada!");
});

Deno.test("forward() says no vars where there are none, and any that JSON can say", async () => {
  for (const given of [undefined, null, "Ada", 1, ["自在鉤"], { user: { name: "Ada" } }]) {
    const read = forwarded({ keys });
    const object = new Hono().get("/", async (c) => c.json({ vars: await read(c) }));
    const app = new Hono().get("/", (c) => forward(c, object, given, { keys }));
    assertEquals((await (await app.request("/")).json()).vars, given);
  }
});

Deno.test("forward() changes nothing else of a request", async () => {
  const arrived = Promise.withResolvers<Request>();
  const app = front({
    fetch(request) {
      arrived.resolve(request);
      return new Response();
    },
  });
  const sent = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
  const sending = sent.writable.getWriter();
  const url = "http://example.com/a%20b/runs?after=3";
  await app.request(url, { method: "PUT", headers: { "x-a": "1", "last-event-id": "3" }, body: sent.readable });
  const request = await arrived.promise;
  const { [header]: signed, ...headers } = Object.fromEntries(request.headers);
  assert(signed);
  assertEquals([request.method, request.url, headers], ["PUT", url, { "x-a": "1", "last-event-id": "3" }]);

  assert(request.body); // which streams: the first half is there before the second is sent
  const reader = request.body.getReader();
  for (const half of ["自在", "鉤"]) {
    const bytes = new TextEncoder().encode(half);
    const [{ value }] = await Promise.all([reader.read(), sending.write(bytes)]);
    assertEquals(value, bytes);
  }
});

Deno.test("forward() changes nothing of an answer, which streams", async () => {
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

Deno.test("forward() lets middleware in front change the headers of an answer", async () => {
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

Deno.test("forward() lets the object see a client leave, before the answer and in the middle of it", async () => {
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

Deno.test("forwarded() refuses what was not forwarded as it came, and begins nothing", async () => {
  const { sign } = signatures("jizai.resumeToken", keys);
  const signed = await headerOf(asked());
  const [id, content, signature] = signed.split(".");
  const another = (await headerOf(asked(), "Eve")).split(".")[1];
  const forged: readonly (readonly [why: string, said: string | undefined])[] = [
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
  ];
  const object = greeter();
  for (const [why, said] of forged) {
    const headers = { "content-type": "application/json", ...(said !== undefined && { [header]: said }) };
    const response = object.app.request("/runs", { method: "POST", headers, body: `{"prompt":"Hi"}` });
    const error = { code: "not-forwarded", message: "Cannot serve this request: it was not forwarded" };
    assertEquals(await refusalOf(response), [401, error], why);
  }
  assertEquals(object.greeted, 0);
});

Deno.test("forwarded() believes for a minute", async () => {
  using time = new FakeTime();
  const request = asked();
  request.headers.set(header, await headerOf(request));
  const object = new Hono().post("/runs", async (c: Context) => c.json(await forwarded({ keys })(c)));
  time.tick(59_999);
  assertEquals(await (await object.fetch(request)).json(), { user: "Ada" });
  time.tick(1);
  assertEquals((await object.fetch(request)).status, 401);
});

Deno.test("forward() signs with the first key, and forwarded() believes every key", async () => {
  const changing = [key("k2"), key("k1")];
  assertEquals(await greeting(front(greeter(changing).app)), "Hello Ada!");
  assertEquals(await greeting(front(greeter(changing).app, changing)), "Hello Ada!");
  assertEquals((await post(front(greeter().app, changing), "/runs", { prompt: "Hi" })).status, 401);
});

Deno.test("forward() and forwarded() need a key", async () => {
  assertThrows(() => forwarded({ keys: [] }), RangeError, "Cannot sign: there is no key");
  assertThrows(() => forwarded({ keys: [{ id: "k1", secret: "short" }] }), RangeError, "less than 32 bytes");
  const app = front({ fetch: () => new Response() }, []).onError((error) => Promise.reject(error));
  await assertRejects(async () => await app.request("/"), RangeError, "Cannot sign: there is no key");
});
