import { forward, type Stub } from "@jizai/jizai/forward";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { folder } from "./folder.ts";
import { cut, type KillableApp, linesOf, rest } from "./received_events.ts";
import { begun, prompt, resumedEvents, unlimited } from "./shop.ts";
import { bundled, type Served, served } from "./workerd.ts";

const secret = "32 bytes that cannot be guessed..";
const worker = await bundled("examples/cloudflare/worker.ts");

/** Serves the shop in a workerd process of its own. `pace` is the duration of a step in milliseconds. */
function shop(path: string, pace: number, script = worker): Promise<Served> {
  return served(script, { className: "Conversation", settings: { FORWARD_SECRET: secret, PACE: String(pace) } }, path);
}

/** A client of the conversation "tea" of a user. */
function tea({ request, kill }: Served, user = "Ada", more: Readonly<Record<string, string>> = {}): KillableApp {
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

Deno.test("in workerd, a run continues without its client, and a client that returns receives the rest", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 20);
  const app = tea(worker);
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  const received = framesOf(await pieces.until(`"type":"tool.progress"`));
  await pieces.cancel();
  assertEquals(linesOf([...received, ...await rest(app, received)]), [...begun, ...ended]);
});

Deno.test("in workerd, two clients read one run at the same time", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 20);
  const app = tea(worker);
  const pieces = piecesOf(await post(app, "/runs", { prompt }));
  const start = await pieces.until(`"type":"run.started"`);
  const [one, two] = await Promise.all([pieces.rest(), rest(app, framesOf(start))]);
  const received = framesOf(start + one);
  assertEquals(linesOf(received), [...begun, ...ended]);
  assertEquals(two, received.slice(framesOf(start).length));
});

Deno.test("in workerd, a paused run continues with the answer after workerd was killed", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 0);
  const asked = await cut(tea(killed), "Order 3 lanterns", `"type":"run.paused"`);
  await using worker = await shop(disk.path, 0);
  const answers = [{ callId: "call_1", type: "approve" }];
  const answered = await eventsOf(post(tea(worker), "/sessions/tea/answers", { answers }));
  assertEquals(linesOf([...asked, ...answered]), [
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

Deno.test("in workerd, a run that was running when workerd was killed continues when a client requests the rest", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, unlimited);
  const received = await cut(tea(killed), prompt, `"type":"tool.progress","turn":1,"call":"call_2"`);
  await using worker = await shop(disk.path, 0);
  assertEquals(linesOf([...received, ...await rest(tea(worker), received)]), [...begun, ...resumedEvents]);
});

/** Returns the claims about the user that the Worker sends to an object. */
async function forwardedBy(key: string, method: string, path: string): Promise<string> {
  const forwardedHeader = Promise.withResolvers<string>();
  const stub: Stub = {
    fetch({ headers }) {
      forwardedHeader.resolve(headers.get("x-jizai-forwarded") ?? "");
      return new Response();
    },
  };
  const keys = [{ id: "k1", secret: key }];
  await new Hono().all("/*", (c) => forward(c, stub, { user: "Ada" }, { keys })).request(path, { method });
  return await forwardedHeader.promise;
}

/** Returns the status and the code of a response. */
async function codeOf(response: Response | Promise<Response>): Promise<readonly [number, unknown]> {
  const [status, error] = await refusalOf(response);
  return [status, typeof error === "object" && error !== null && "code" in error && error.code];
}

Deno.test("in workerd, a user cannot reach the conversation of another, with forged headers or signatures", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 0);
  const events = await eventsOf(post(tea(worker), "/runs", { prompt: "Order 3 hooks" }));
  const { run } = first("run.started", events);
  for (const key of [secret, "32 bytes that have been guessed.."]) {
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

Deno.test("in workerd, an object refuses requests that were not forwarded, on every path", async () => {
  await using disk = await folder();
  await using worker = await shop(disk.path, 0, await bundled("tests/platforms/impostor.ts"));
  const paths = ["/tea/runs", "/tea/runs/r1", "/tea/runs/r1/stop", "/tea/sessions/tea", "/tea/sessions/tea/answers"];
  for (const path of paths) {
    const method = /r1$|tea$/.test(path) ? "GET" : "POST";
    const forged = await forwardedBy("32 bytes that have been guessed..", method, path);
    const elsewhere = await forwardedBy(secret, method, "/tea");
    for (const value of ["", forged, elsewhere]) {
      const headers = { "content-type": "application/json", "x-jizai-forwarded": value };
      const response = worker.request(path, { method, headers, ...(method === "POST" && { body: "{}" }) });
      assertEquals(await codeOf(response), [401, "not-forwarded"]);
    }
  }
});
