import { agent, memory, serve, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { memoryLog } from "@jizai/jizai/session/log";
import { assertEquals } from "@std/assert";
import { HTTPException } from "hono/http-exception";
import { drop } from "../support/asking.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";

/** An app that believes a header. */
function app(options: ServeOptions = {}) {
  const gate = Promise.withResolvers<void>();
  const model = scripted(
    { calls: [["drop", { table: "a" }]] },
    { before: () => gate.promise, text: "Done." },
    "Really.",
  );
  const served = serve(agent({ model, tools: [drop] }), {
    log: memoryLog(),
    owner: (c) => Promise.resolve(c.req.header("x-user")),
    ...options,
  });
  /** Asks as somebody. */
  const as = (user: string) => ({
    request: (path: string, init: RequestInit = {}) =>
      served.request(path, { ...init, headers: { ...init.headers, "x-user": user } }),
  });
  return { served, as, goOn: gate.resolve };
}

const answers = [{ callId: "call_1", type: "approve" }];

/** All of an answer that a client sees, with ids that it sent itself told apart from others by nothing. */
async function seen(response: Response | Promise<Response>, ...ids: readonly string[]) {
  const { status, headers, body } = await response;
  const text = await new Response(body).text();
  return [status, Object.fromEntries(headers), ids.reduce((text, id) => text.replaceAll(id, "id"), text)];
}

Deno.test("serve() tells nobody but its owner from nothing what a session or a run is", async () => {
  const { as, goOn } = app();
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
  await bobSees(); // while it waits

  const going = piecesOf(await post(ada, `/sessions/${session}/answers`, { answers }));
  await going.until("model.started");
  await bobSees(); // while it runs
  goOn();
  assertEquals(framesOf(await going.rest()).at(-1)?.type, "run.finished");
  await bobSees(); // once it has ended
  assertEquals((await eventsOf(ada.request(`/runs/${run}`))).at(-1)?.type, "run.finished");
  assertEquals((await ada.request(`/sessions/${session}`)).status, 200);
  assertEquals((await eventsOf(post(ada, "/runs", { prompt: "Hi", session }))).at(-1)?.type, "run.finished");
});

Deno.test("serve() lets an owner whose name goes on where another ends reach nothing of theirs", async () => {
  const { as } = app();
  const { run } = first("run.started", await eventsOf(post(as("a b"), "/runs", { prompt: "Drop a" })));
  assertEquals((await as("b").request(`/runs/${encodeURIComponent(`${run} a`)}`)).status, 404);
  assertEquals((await as("a b").request(`/runs/${run}`)).status, 200);
});

Deno.test("serve() serves nobody of whom it is not known who they are", async () => {
  const { as, served } = app();
  const nobody = [403, { error: { code: "nobody", message: "Cannot serve this: it is not known whose it is" } }];
  const paths = [
    ["POST", "/runs"],
    ["GET", "/runs/r1"],
    ["POST", "/runs/r1/stop"],
    ["GET", "/sessions/s1"],
    ["POST", "/sessions/s1/answers"],
  ] as const;
  for (const [method, path] of paths) {
    for (const app of [served, as("")]) {
      const response = await app.request(path, { method });
      assertEquals([response.status, await response.json()], nobody);
    }
  }
  assertEquals((await served.request("/health")).status, 200);
});

Deno.test("serve() lets what owner answers with HTTP's words through", async () => {
  const { served } = app({
    owner() {
      throw new HTTPException(401, { message: "Who are you?" });
    },
  });
  const response = await post(served, "/runs", { prompt: "Hi" });
  assertEquals([response.status, await response.text()], [401, "Who are you?"]);
});

Deno.test("serve() takes sessions that nobody owns for nobody's", async () => {
  const store = memory();
  const before = serve(agent({ model: scripted("Hello!") }), { store });
  const { session } = first("run.started", await eventsOf(post(before, "/runs", { prompt: "Hi" })));
  const { as } = app({ store });
  assertEquals((await as("ada").request(`/sessions/${session}`)).status, 404);
});

Deno.test("serve() takes a resume token from its owner alone", async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const { as, goOn } = app({ resumeTokens: resumeTokens({ keys }) });
  const before = await eventsOf(post(as("ada"), "/runs", { prompt: "Drop a" }));
  const { session } = first("run.started", before);
  const { resumeToken } = first("run.paused", before);
  const answer = (user: string) => post(as(user), `/sessions/${session}/answers`, { answers, resumeToken });
  const error = { code: "unknown", message: `Cannot resume session "${session}": there is none` };
  const refused = await answer("bob");
  assertEquals([refused.status, await refused.json()], [404, { error }]);
  goOn();
  assertEquals((await eventsOf(answer("ada"))).at(-1)?.type, "run.finished");
});
