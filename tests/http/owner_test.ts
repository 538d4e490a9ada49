import { agent, memory, serve, type ServeOptions, textOf, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals } from "@std/assert";
import { HTTPException } from "hono/http-exception";
import { drop } from "../support/asking.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";

/** An app whose `x-user` header names the owner. */
function app(options: ServeOptions = {}) {
  const gate = Promise.withResolvers<void>();
  const model = scripted(
    { calls: [["drop", { table: "a" }]] },
    { before: () => gate.promise, text: "Done." },
    "Really.",
  );
  const served = serve(agent({ model, tools: [drop] }), {
    owner: (c) => Promise.resolve(c.req.header("x-user")),
    ...options,
  });
  /** Sends requests of an owner. */
  const as = (user: string) => ({
    request: (path: string, init: RequestInit = {}) =>
      served.request(path, { ...init, headers: { ...init.headers, "x-user": user } }),
  });
  return { served, as, release: gate.resolve };
}

const answers = [{ callId: "call_1", type: "approve" }];

/** Everything that a client sees of a response, with the ids that it sent replaced by "id". */
async function seen(response: Response | Promise<Response>, ...ids: readonly string[]) {
  const { status, headers, body } = await response;
  const text = await new Response(body).text();
  return [status, Object.fromEntries(headers), ids.reduce((text, id) => text.replaceAll(id, "id"), text)];
}

Deno.test("serve() answers requests for sessions and runs of another owner as if they did not exist", async () => {
  const { as, release } = app();
  const [ada, bob] = [as("ada"), as("bob")];
  const { run, session } = first("run.started", await eventsOf(post(ada, "/runs", { prompt: "Drop a" })));
  const none = crypto.randomUUID();
  const requests: readonly ((app: typeof ada, run: string, session: string) => Promise<Response>)[] = [
    (app, run) => app.request(`/runs/${run}`) as Promise<Response>,
    (app, run) => app.request(`/runs/${run}?after=1`, { headers: { "last-event-id": "3" } }) as Promise<Response>,
    (app, run) => app.request(`/runs/${run}?after=1000`) as Promise<Response>,
    (app, run) => post(app, `/runs/${run}/stop`),
    (app, _run, session) => app.request(`/sessions/${session}`) as Promise<Response>,
    (app, _run, session) => post(app, "/runs", { prompt: "Hi", session }),
    (app, _run, session) => post(app, `/sessions/${session}/answers`, { answers }),
    (app, _run, session) => post(app, `/sessions/${session}/answers`, { answers: [] }, { "idempotency-key": "k1" }),
  ];
  const bobSees = async () => {
    for (const request of requests) {
      assertEquals(
        await seen(request(bob, run, session), run, session),
        await seen(request(bob, none, none), none),
      );
      assertEquals((await request(bob, run, session)).status, 404);
    }
  };
  await bobSees(); // while the run is paused

  const going = piecesOf(await post(ada, `/sessions/${session}/answers`, { answers }));
  await going.until("model.started");
  await bobSees(); // while it runs
  release();
  assertEquals(framesOf(await going.rest()).at(-1)?.type, "run.finished");
  await bobSees(); // after its end
  assertEquals((await eventsOf(ada.request(`/runs/${run}`))).at(-1)?.type, "run.finished");
  assertEquals((await ada.request(`/sessions/${session}`)).status, 200);
  assertEquals((await eventsOf(post(ada, "/runs", { prompt: "Hi", session }))).at(-1)?.type, "run.finished");
});

Deno.test("serve() separates owners whose names contain each other", async () => {
  const { as } = app();
  const { run } = first("run.started", await eventsOf(post(as("a b"), "/runs", { prompt: "Drop a" })));
  assertEquals((await as("b").request(`/runs/${encodeURIComponent(`${run} a`)}`)).status, 404);
  assertEquals((await as("a b").request(`/runs/${run}`)).status, 200);
});

Deno.test("serve() refuses requests without an owner on every route", async () => {
  const { as, served } = app();
  const unidentified = [403, { error: { code: "unidentified", message: "Cannot serve the request: it has no owner" } }];
  const requests: readonly ((app: App) => Response | Promise<Response>)[] = [
    (app) => post(app, "/runs", { prompt: "Hi" }),
    (app) => app.request("/runs/r1"),
    (app) => post(app, "/runs/r1/messages", { text: "Hi" }),
    (app) => post(app, "/runs/r1/finish"),
    (app) => post(app, "/runs/r1/stop"),
    (app) => app.request("/sessions/s1"),
    (app) => post(app, "/sessions/s1/answers", { answers }),
    (app) => post(app, "/sessions/s1/compact", {}),
    (app) => app.request("/runs", { method: "POST" }),
    (app) => post(app, "/runs", { prompt: 1 }),
    (app) => post(app, "/runs", { prompt: "x".repeat(2_000_000) }),
    (app) => app.request("/runs/r1?after=x"),
    (app) => app.request("/sessions/s1/answers", { method: "POST" }),
  ];
  for (const request of requests) {
    for (const app of [served, as("")]) {
      const response = await request(app);
      assertEquals([response.status, await response.json()], unidentified);
    }
  }
  assertEquals((await served.request("/health")).status, 200);
});

Deno.test("serve() responds with an HTTPException of the owner option", async () => {
  const { served } = app({
    owner() {
      throw new HTTPException(401, { message: "Who are you?" });
    },
  });
  const response = await post(served, "/runs", { prompt: "Hi" });
  assertEquals([response.status, await response.text()], [401, "Who are you?"]);
});

Deno.test("serve() with owners does not show sessions without an owner", async () => {
  const store = memory();
  const before = serve(agent({ model: scripted("Hello!") }), { store });
  const { session } = first("run.started", await eventsOf(post(before, "/runs", { prompt: "Hi" })));
  const { as } = app({ store });
  assertEquals((await as("ada").request(`/sessions/${session}`)).status, 404);
});

Deno.test("serve() accepts a resume token from its owner only", async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const { as, release } = app({ resumeTokens: resumeTokens({ keys }) });
  const before = await eventsOf(post(as("ada"), "/runs", { prompt: "Drop a" }));
  const { session } = first("run.started", before);
  const { resumeToken } = first("run.paused", before);
  const answer = (user: string) => post(as(user), `/sessions/${session}/answers`, { answers, resumeToken });
  const error = { code: "unknown", message: `Cannot resume session "${session}": there is none` };
  const refused = await answer("bob");
  assertEquals([refused.status, await refused.json()], [404, { error }]);
  release();
  assertEquals((await eventsOf(answer("ada"))).at(-1)?.type, "run.finished");
});

Deno.test("serve() lets two owners use the same session id, and each sees only its own session", async () => {
  for (const store of [memory(), durable(memory().journal)]) {
    const model = scripted("Hello Ada!", "Hello Bob!", "Ada again!");
    const app = serve(agent({ model }), {
      store,
      owner: (c) => c.req.header("x-user"),
      session: (c) => c.req.query("room"),
    });
    const send = async (user: string, prompt: string) =>
      await eventsOf(post(app, "/runs?room=s1", { prompt }, { "x-user": user }));
    const shown = async (user: string) => {
      const response = await app.request("/sessions/s1", { headers: { "x-user": user } });
      return response.status === 200 ? (await response.json()).messages.map(textOf) : response.status;
    };
    await send("ada", "I am Ada");
    assertEquals([await shown("ada"), await shown("bob")], [["I am Ada", "Hello Ada!"], 404]);
    assertEquals(first("session.opened", await send("bob", "I am Bob")).source, "new");
    await send("ada", "Hi again");
    assertEquals(await shown("ada"), ["I am Ada", "Hello Ada!", "Hi again", "Ada again!"]);
    assertEquals(await shown("bob"), ["I am Bob", "Hello Bob!"]);
    assertEquals(await store.list({ owner: "bob" }), ["s1"]);
  }
});

Deno.test("serve() separates owners and ids with special characters", async () => {
  const names = ["a", "a b", "b", " ", '"', '["a","b"]', "a,b", "\u0000", "key:", "語"];
  const store = memory();
  const sessions = names.flatMap((owner) => names.map((id) => [owner, id] as const));
  for (const [owner, id] of sessions) {
    await store.save({ id, owner, version: 0, messages: [user(`${owner} / ${id}`)] });
  }
  for (const [owner, id] of sessions) {
    assertEquals((await store.load(id, { owner }))?.messages, [user(`${owner} / ${id}`)]);
    assertEquals((await store.list({ owner, limit: 1_000 })).toSorted(), names.toSorted());
  }
});

for (const option of ["owner", "session"]) {
  Deno.test(`serve() answers 500 if ${option} returns a value that is no string, and stores nothing`, async () => {
    for (const value of [{ id: "ada" }, 5, true, ["ada"], Symbol("ada")]) {
      const errors: string[] = [];
      const store = memory();
      const returned = () => value as never; // as an untyped context returns it
      const served = serve(agent({ model: scripted("Hello!") }), {
        store,
        [option]: returned,
        onError: (error) => errors.push(String(error)),
      });
      const { status } = await post(served, "/runs", { prompt: "Hi" });
      const type = Object.prototype.toString.call(value).slice("[object ".length, -1);
      const problem = `\`${option}\` is ${type}; expected String`;
      assertEquals([status, errors], [500, [`TypeError: Cannot serve the request: ${problem}`]]);
      assertEquals(await store.list(), []);
    }
  });
}
