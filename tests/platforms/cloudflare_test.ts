import { forward, type Stub } from "@jizai/jizai/forward";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { folder } from "./folder.ts";
import { cut, type Mortal, rest, told } from "./heard.ts";
import { begun, forEver, goneOnWith, prompt } from "./shop.ts";
import { bundled, type Served, served } from "./workerd.ts";

const secret = "32 bytes that nobody can guess..";
const worker = await bundled("examples/cloudflare/worker.ts");

/** The shop, in a workerd of its own. A step takes it `pace` milliseconds. */
function shop(path: string, pace: number, script = worker): Promise<Served> {
  return served(script, { className: "Conversation", settings: { FORWARD_SECRET: secret, PACE: String(pace) } }, path);
}

/** The conversation "tea" of a user. */
function tea({ request, kill }: Served, user = "Ada", more: Readonly<Record<string, string>> = {}): Mortal {
  return {
    request: (path, init) =>
      request(`/tea${path}`, { ...init, headers: { ...init?.headers, ...more, "x-user": user } }),
    kill,
  };
}

const ended = [
  'tool.progress call_1 {"shelf":2}',
  'tool.progress call_2 {"shelf":2}',
  'tool.progress call_1 {"shelf":3}',
  'tool.progress call_2 {"shelf":3}',
  "tool.finished call_1 ok There are 7 kettles.",
  "tool.finished call_2 ok Delivered 2 hooks to Ada.",
  "turn.finished 1",
  "turn.started 2",
  "model.started rule-based",
  "text.delta There are 7 kettles. Delivered 2 hooks to Ada.",
  "model.finished stop",
  "turn.finished 2",
  "session.closed",
  "run.finished done There are 7 kettles. Delivered 2 hooks to Ada.",
];

Deno.test("in workerd, a run goes on in its object when its client has gone, and a client that comes back hears the rest", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 20);
  const app = tea(worker);
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  const heard = framesOf(await pieces.until(`"type":"tool.progress"`));
  await pieces.cancel();
  assertEquals(told([...heard, ...await rest(app, heard)]), [...begun, ...ended]);
});

Deno.test("in workerd, two clients hear one run at once", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 20);
  const app = tea(worker);
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  const start = await pieces.until(`"type":"run.started"`);
  const [one, two] = await Promise.all([pieces.rest(), rest(app, framesOf(start))]);
  const heard = framesOf(start + one);
  assertEquals(told(heard), [...begun, ...ended]);
  assertEquals(two, heard.slice(framesOf(start).length));
});

Deno.test("in workerd, a run that asked a person goes on with the answer, after workerd was killed", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 0);
  const asked = await cut(tea(killed), "Order 3 lanterns", `"type":"run.paused"`);
  await using worker = await shop(disk.path, 0);
  const answers = [{ callId: "call_1", type: "approve" }];
  const answered = await eventsOf(post(tea(worker), "/sessions/tea/answers", { answers }));
  assertEquals(told([...asked, ...answered]), [
    "run.started",
    "session.opened new",
    "prompt.accepted Order 3 lanterns",
    "turn.started 1",
    "model.started rule-based",
    'call.delta call_1 {"item":"lanterns","amount":3}',
    "call.ready order call_1",
    "model.finished calls",
    "tool.started order call_1",
    "approval.asked call_1 Run order?",
    "session.closed",
    "run.paused Run order?",
    // killed, and started again
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "tool.started order call_1",
    "approval.decided call_1 allow person",
    "tool.finished call_1 ok Ordered 3 lanterns for Ada.",
    "turn.finished 1",
    "turn.started 2",
    "model.started rule-based",
    "text.delta Ordered 3 lanterns for Ada.",
    "model.finished stop",
    "turn.finished 2",
    "session.closed",
    "run.finished done Ordered 3 lanterns for Ada.",
  ]);
});

Deno.test("in workerd, a run that was cut when workerd was killed goes on when somebody asks for the rest", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, forEver);
  const heard = await cut(tea(killed), prompt, `"type":"tool.progress","turn":1,"call":"call_2"`);
  await using worker = await shop(disk.path, 0);
  assertEquals(told([...heard, ...await rest(tea(worker), heard)]), [...begun, ...goneOnWith]);
});

/** Returns the claims about the user that the Worker sends to an object. */
async function forwardedBy(key: string, method: string, path: string): Promise<string> {
  const said = Promise.withResolvers<string>();
  const stub: Stub = {
    fetch({ headers }) {
      said.resolve(headers.get("x-jizai-forwarded") ?? "");
      return new Response();
    },
  };
  const keys = [{ id: "k1", secret: key }];
  await new Hono().all("/*", (c) => forward(c, stub, { user: "Ada" }, { keys })).request(path, { method });
  return await said.promise;
}

/** The status and the code of an answer. */
async function codeOf(response: Response | Promise<Response>): Promise<readonly [number, unknown]> {
  const [status, error] = await refusalOf(response);
  return [status, typeof error === "object" && error !== null && "code" in error && error.code];
}

Deno.test("in workerd, a conversation is nobody else's, whatever they say", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 0);
  const events = await eventsOf(post(tea(worker), "/runs", { prompt: "Order 3 hooks" }));
  const { run } = first("run.started", events);
  for (const key of [secret, "32 bytes that somebody did guess"]) {
    const forged = await forwardedBy(key, "GET", `/tea/runs/${run}`);
    const eve = tea(worker, "Eve", { "x-jizai-forwarded": forged });
    assertEquals(await codeOf(eve.request(`/runs/${run}`)), [404, "unknown"]);
    assertEquals(await codeOf(post(eve, `/runs/${run}/stop`)), [404, "unknown"]);
    assertEquals(await codeOf(eve.request("/sessions/tea")), [404, "unknown"]);
    const answers = [{ callId: "call_1", type: "approve" }];
    assertEquals(await codeOf(post(eve, "/sessions/tea/answers", { answers })), [404, "unknown"]);
  }
  assertEquals(await eventsOf(tea(worker).request(`/runs/${run}`)), events);
});

Deno.test("in workerd, an object refuses what was not forwarded to it, on every path", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 0, await bundled("tests/platforms/impostor.ts"));
  const paths = ["/tea/runs", "/tea/runs/r1", "/tea/runs/r1/stop", "/tea/sessions/tea", "/tea/sessions/tea/answers"];
  for (const path of paths) {
    const method = /r1$|tea$/.test(path) ? "GET" : "POST";
    const forged = await forwardedBy("32 bytes that somebody did guess", method, path);
    const elsewhere = await forwardedBy(secret, method, "/tea");
    for (const said of ["", forged, elsewhere]) {
      const headers = { "content-type": "application/json", "x-jizai-forwarded": said };
      const response = worker.request(path, { method, headers, ...(method === "POST" && { body: "{}" }) });
      assertEquals(await codeOf(response), [401, "not-forwarded"]);
    }
  }
});
