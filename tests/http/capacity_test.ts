/**
 * The capacity of a process, and whether new requests should come to it.
 *
 * @module
 */
import { agent, memory, serve, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advance } from "../support/fake_time.ts";
import { drop } from "../support/asking.ts";
import { eventsOf, first, piecesOf, post } from "../support/requests.ts";
import { stepping } from "../support/stepping.ts";

/** Returns the status of a response, the code of its error, and when the client may try again. */
async function refusal(response: Response) {
  const { error } = response.ok ? { error: undefined } : await response.json();
  return [response.status, error?.code, response.headers.get("retry-after")];
}

/** Serves an agent whose answer waits. */
function waiting(capacity: NonNullable<ServeOptions["capacity"]>) {
  const { model, release } = stepping("Hello!");
  const app = serve(agent({ model }), { capacity, onClientGone: "detach" });
  return { app, release: () => release(0) };
}

Deno.test("serve() refuses a run beyond capacity.runs with 503, also of requests that arrive together, and stores nothing of it", async () => {
  const { app, release } = waiting({ runs: 2 });
  const ask = (session: string) => app.request("/runs", prompt({ session }));
  const sessions = Array.from({ length: 5 }, (_, n) => `s${n}`);
  const prompt = ({ session }: { session: string }) => ({
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async", "idempotency-key": session },
    body: JSON.stringify({ prompt: "Hi" }),
  });
  const responses = await Promise.all(sessions.map(ask));
  const statuses = await Promise.all(responses.map(refusal));
  assertEquals(statuses.map(([status]) => status), [202, 202, 503, 503, 503]);
  assertEquals(statuses.at(-1), [503, "capacity", "2"]);
  assertEquals(app.stats().runs, 2);
  assertEquals(await refusal(await app.request("/ready")), [503, "capacity", "2"]);
  release();
  await app.settled();
  assertEquals((await app.request("/ready")).status, 200);
  assertEquals((await ask("s4")).status, 202); // the key of the refused request is free
});

Deno.test("a message, a finish and a stop reach a run of a process that is full", async () => {
  const { app, release } = waiting({ runs: 1, streams: 1, bytes: 1 });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const { run } = first(
    "run.started",
    JSON.parse(
      `[${
        (await pieces.until("model.started")).split("\n").flatMap((line) =>
          line.startsWith("data: ") ? [line.slice(6)] : []
        ).join()
      }]`,
    ),
  );
  assertEquals(await refusal(await post(app, "/runs", { prompt: "Hi" })), [503, "capacity", "2"]);
  assertEquals((await post(app, `/runs/${run}/messages`, { text: "More" })).status, 202);
  assertEquals((await app.request(`/runs/${run}/finish`, { method: "POST" })).status, 204);
  assertEquals((await app.request(`/runs/${run}/stop`, { method: "POST" })).status, 204);
  release();
  await pieces.rest();
});

Deno.test("serve() refuses a stream beyond capacity.streams, also that of a follower, and not a run in the background", async () => {
  const { app, release } = waiting({ streams: 1 });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");
  assertEquals(await refusal(await post(app, "/runs", { prompt: "Hi" })), [503, "capacity", "2"]);
  const background = await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
  assertEquals(background.status, 202);
  const { run } = await background.json();
  assertEquals(await refusal(await app.request(`/runs/${run}`)), [503, "capacity", "2"]);
  release();
  await pieces.rest();
  await app.settled();
  assertEquals((await app.request(`/runs/${run}`)).status, 200);
});

Deno.test("an answer beyond the capacity is refused, and its question stays open", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const model = scripted({ calls: [["drop", { table: "a" }]] }, { before: () => promise, text: "Busy." }, "Done.");
  const app = serve(agent({ model, tools: [drop] }), {
    capacity: { runs: 1 },
    session: (c) => c.req.header("x-session"),
  });
  const send = (path: string, body: unknown, session: string) => post(app, path, body, { "x-session": session });
  const { callId = "" } = first("approval.asked", await eventsOf(send("/runs", { prompt: "Drop a" }, "asks")));
  const busy = piecesOf(await send("/runs", { prompt: "Hi" }, "busy"));
  await busy.until("model.started");
  const answer = () => send("/sessions/asks/answers", { answers: [{ callId, type: "approve" }] }, "asks");
  assertEquals(await refusal(await answer()), [503, "capacity", "2"]);
  resolve();
  await busy.rest();
  await app.settled();
  assertEquals(first("run.finished", await eventsOf(answer())).status, "done");
});

Deno.test("capacity.bytes counts the transcripts of the runs as they grow", async () => {
  const { app, release } = waiting({ bytes: 190_000 });
  const ask = (prompt: string) => post(app, "/runs", { prompt }, { prefer: "respond-async" });
  assertEquals((await ask("a".repeat(30_000))).status, 202); // 125 KB
  assertEquals((await ask("Hi")).status, 202);
  assertEquals(await refusal(await ask("Hi")), [503, "capacity", "2"]);
  release();
  await app.settled();
  assertEquals((await ask("Hi")).status, 202);
});

Deno.test("serve() rejects a capacity out of range, and an unknown one", () => {
  const assistant = agent({ model: scripted() });
  const message = "Cannot serve: `capacity.runs` is 0; expected a number of 1 or more";
  assertThrows(() => serve(assistant, { capacity: { runs: 0 } }), RangeError, message);
  assertThrows(() => serve(assistant, { capacity: { run: 1 } as object }), TypeError, "run");
});

Deno.test("GET /ready answers 200, and 503 while the store does not answer within a second, and after a shutdown", async () => {
  using time = new FakeTime();
  const { journal } = memory();
  let isFrozen = false;
  const head: typeof journal.head = (key) => isFrozen ? new Promise(() => {}) : journal.head(key);
  const shutdown = new AbortController();
  const store = durable({ ...journal, head });
  const app = serve(agent({ model: scripted() }), { store, signal: shutdown.signal, onError() {} });
  assertEquals((await app.request("/ready")).status, 200);
  isFrozen = true;
  const late = Promise.resolve(app.request("/ready"));
  await advance(time, 1_000);
  assertEquals(await refusal(await late), [503, "unavailable", "2"]);
  isFrozen = false;
  assertEquals((await app.request("/ready")).status, 200);
  shutdown.abort();
  assertEquals(await refusal(await app.request("/ready")), [503, "shutdown", "2"]);
  await advance(time, 10_000); // the frozen look reaches its deadline
  assert((await app.request("/health")).status === 503);
});
