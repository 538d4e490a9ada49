/**
 * `client()` with a served agent, and with hundreds of runs over bad networks.
 */
import { agent, type Event, memory, serve, tool } from "@jizai/jizai";
import { client, ClientError, type ClientRun, fold, noRun, type RunState } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { breakingProxy } from "../support/breaking_proxy.ts";
import { type Fate, faultyNetwork } from "../support/faulty_network.ts";
import { waiting } from "../support/halting.ts";
import { answers, asking, recorded } from "../support/recorded.ts";
import type { App } from "../support/requests.ts";
import { named } from "../support/run_events.ts";
import { type Chance, seeded } from "../support/seeded.ts";

const drop = tool({
  name: "drop",
  description: "Drops a table",
  input: z.object({ table: z.string() }),
  ask: true,
  execute: ({ table }) => `Dropped ${table}.`,
});

Deno.test("client() reads a run of a served agent, and continues its session", async () => {
  const model = scripted({ text: ["Hel", "lo!"] }, "Hello again!");
  const assistant = client("", { fetch: serve(agent({ model })).request });
  const { status, text, session = "", messages } = await assistant.run({ prompt: "Hi" }).result();
  assertEquals([status, text], ["done", "Hello!"]);
  assertEquals(messages, [
    { role: "user", parts: [{ type: "text", text: "Hi" }] },
    { role: "assistant", turn: 1, parts: [{ type: "text", id: 0, text: "Hello!" }] },
  ]);
  const repeated = await assistant.run({ prompt: "Hi", session }).result();
  assertEquals([repeated.session, repeated.text, model.requests[1]?.messages.length], [session, "Hello again!", 3]);
});

Deno.test("client() answers the questions of a served agent one by one", async () => {
  const calls = ["a", "b", "c"].map((id) => ({ id, name: "drop", input: { table: id } }));
  const store = memory();
  const app = serve(agent({ model: scripted({ calls }, "Done."), tools: [drop] }), { store });
  const asking = client("", { fetch: app.request }).run({ prompt: "Drop them" });
  const { questions } = await asking.result();
  assertEquals(questions.map(({ callId, tool, input }) => [callId, tool, input]), [
    ["a", "drop", { table: "a" }],
    ["b", "drop", { table: "b" }],
    ["c", "drop", { table: "c" }],
  ]);
  const some = asking.answer([
    { callId: "a", type: "approve", input: { table: "x" } },
    { callId: "b", type: "deny", reason: "Not b." },
  ]);
  assertEquals((await some.result()).questions.map(({ callId }) => callId), ["c"]);
  const { status, messages, at } = await some.answer([{ callId: "c", type: "approve" }]).result();
  assertEquals([status, at > some.state.at], ["done", true]);
  const parts = messages.flatMap((message) => message.turn ? message.parts : []);
  assertEquals(parts.map((part) => part.type === "call" ? [part.id, part.status, part.by, part.parts] : part.text), [
    ["a", "ok", "person", [{ type: "text", text: "Dropped x." }]],
    ["b", "denied", "person", [{ type: "text", text: "A person said no: Not b." }]],
    ["c", "ok", "person", [{ type: "text", text: "Dropped c." }]],
    "Done.",
  ]);
});

Deno.test("client() stops a run of a served agent", async () => {
  const run = client("", { fetch: serve(agent({ model: waiting() })).request }).run({ prompt: "Hi" });
  for await (const { type } of run.events) {
    if (type === "model.started") await run.stop();
  }
  assertEquals([run.state.status, run.state.reason], ["aborted", "stop"]);
  await run.stop(); // it is over
});

Deno.test("client() stops a paused run, and one that is over only on a server that keeps its events", async () => {
  const { assistant } = asking();
  const paused = client("", { fetch: serve(assistant).request }).run({ prompt: "Go" });
  assertEquals((await paused.result()).status, "paused");
  await paused.stop();
  await paused.stop(); // it is over
  const options = {
    resumeTokens: resumeTokens({ keys: [{ id: "k1", secret: "a secret of at least thirty-two bytes" }] }),
  };
  const over = client("", { fetch: serve(agent({ model: scripted("Done.") }), options).request }).run({ prompt: "Go" });
  assertEquals((await over.result()).status, "done");
  assertEquals((await assertRejects(() => over.stop(), ClientError)).status, 404);
});

Deno.test("client() throws the refusals of a served agent", async () => {
  const assistant = client("", { fetch: serve(agent({ model: scripted("Hello!") })).request });
  const refused = async (request: Parameters<typeof assistant.run>[0]) => {
    const { code, status, message } = await assertRejects(() => assistant.run(request).result(), ClientError);
    return [status, code, message];
  };
  assertEquals(await refused({ prompt: "Hi", session: "s1" }), [
    404,
    "unknown",
    `Cannot run session "s1": there is none`,
  ]);
  assertEquals(await refused({ messages: [] }), [
    400,
    "invalid",
    'Cannot read messages: expected a last message of role "user"',
  ]);
});

Deno.test("client() over the network reads a run to its end through connections that break", async () => {
  const { assistant, model } = asking();
  const app = serve(assistant, { onClientGone: "detach" });
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
  const reaches = [0, 1_500, 2_500, 1_000];
  await using line = breakingProxy(server.addr.port, (connection) => reaches[connection] ?? Infinity);
  const events: Event[] = [];
  let run = client(`http://127.0.0.1:${line.port}`).run({ prompt: "Go" });
  for await (const event of run.events) events.push(event);
  for (const given of answers) {
    run = run.answer(given);
    for await (const event of run.events) events.push(event);
  }
  const frames = (await recorded()).flat();
  const [received, sent] = [events, frames.map(({ event }) => event)].map((events) => {
    const [started] = events;
    return started?.type === "run.started" ? named(events, started) : [];
  });
  assertEquals(received, sent);
  assertEquals(run.state, events.map((event, index) => ({ id: index + 1, event })).reduce(fold, noRun));
  assertEquals(model.requests.length, 3);
});

Deno.test("client() resumes a paused run with a resume token", async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
  const app = serve(agent({ model, tools: [drop] }), { resumeTokens: resumeTokens({ keys }) });
  const asking = client("", { fetch: app.request }).run({ prompt: "Drop a" });
  const { resumeToken } = await asking.result();
  assertMatch(resumeToken ?? "", /^k1\./);
  const kept: RunState = JSON.parse(JSON.stringify(asking.state));
  const page = client("", { fetch: app.request }).follow(kept);
  const { status, text } = await page.answer([{ callId: "call_1", type: "approve" }]).result();
  assertEquals([status, text], ["done", "Done."]);
});

Deno.test("client() over the network disconnects, and the server notices", async () => {
  const left = Promise.withResolvers<string>();
  const app = serve(agent({
    model: waiting(),
    observe: (event) => event.type === "run.aborted" && left.resolve(event.reason),
  }));
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
  const leaving = new AbortController();
  const run = client(`http://127.0.0.1:${server.addr.port}`).run({ prompt: "Hi", signal: leaving.signal });
  const reading = async () => {
    for await (const { type } of run.events) {
      if (type === "model.started") leaving.abort(new Error("bye"));
    }
  };
  await assertRejects(reading, Error, "bye");
  assertEquals(await left.promise, "client-gone");
});

Deno.test("client() stops a paused run whose session is stored, and rejects if the server has resume tokens instead", async () => {
  const tokens = resumeTokens({ keys: [{ id: "k1", secret: "a secret of at least thirty-two bytes" }] });
  const outcomes: unknown[] = [];
  for (
    const options of [{}, { store: memory(), resumeTokens: tokens }, { resumeTokens: tokens }]
  ) {
    const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
    const { request } = serve(agent({ model, tools: [drop] }), options);
    const run = client("", { fetch: request }).run({ prompt: "Drop" });
    await run.result();
    const outcome = await run.stop().then(() => "stopped", (error) => error instanceof ClientError && error.status);
    const answer = run.answer([{ callId: "call_1", type: "approve" }]).result();
    outcomes.push([outcome, run.state.status, await answer.then(({ status }) => status, () => "refused")]);
  }
  assertEquals(outcomes, [
    ["stopped", "paused", "refused"],
    ["stopped", "paused", "refused"],
    [404, "paused", "done"],
  ]);
});

const frames = (await recorded()).flat();

/** Returns the fault of one request, most often a bad one. */
function fateBy({ one, below }: Chance): Fate {
  const type = one<Fate["type"]>(["well", "lost", "unanswered", "refused", "cut", "cut", "cut", "ended", "ended"]);
  switch (type) {
    case "refused":
      return { type, status: one([429, 500, 502, 503, 504]) };
    case "cut":
    case "ended":
      return { type, after: below(2_500) };
    default:
      return { type };
  }
}

/** Returns a function that splits bytes at random. */
function piecesBy({ one, below }: Chance): (text: string) => readonly Uint8Array<ArrayBuffer>[] {
  return (text) => {
    const bytes = new TextEncoder().encode(one([text, text.replaceAll("\n", "\r\n"), `:\n\n${text}:\n\n`]));
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for (let at = 0, end = 0; at < bytes.length; at = end) {
      end = at + 1 + below(one([3, 40, 1_000]));
      pieces.push(bytes.slice(at, end));
    }
    return pieces;
  };
}

/** An app that does not receive idempotency keys. */
function keyless(app: App): App {
  return {
    request(path, { headers, ...init } = {}) {
      const sent = new Headers(headers);
      if (path.endsWith("/answers")) sent.delete("idempotency-key");
      return app.request(path, { ...init, headers: sent });
    },
  };
}

/** Reads a run to its end over a bad network, and answers its questions. Sometimes another page takes over. */
async function read(seed: number) {
  const chance = seeded(seed);
  const { assistant, model, done } = asking();
  const app = serve(assistant, { onClientGone: "detach" });
  const connection = faultyNetwork(chance.one([app, keyless(app)]), {
    fate: () => fateBy(chance),
    pieces: piecesBy(chance),
  });
  const reader = client("", { fetch: connection.fetch, attempts: 1_000 });
  const events: Event[] = [];
  const rest = [...answers];
  let run: ClientRun = reader.run({ prompt: "Go" });
  for (;;) {
    let left = false;
    for await (const event of run.events) {
      events.push(event);
      left = chance.below(20) === 0;
      if (left) break;
    }
    if (left) run = reader.follow(JSON.parse(JSON.stringify(run.state)));
    else if (run.state.status === "paused") run = run.answer(rest.shift() ?? []);
    else break;
  }
  const { run: id = "", session = "" } = run.state;
  return { outcome: named({ events, state: run.state }, { run: id, session }), asked: model.requests.length, done };
}

Deno.test("client() loses and repeats no event in 200 runs over bad networks", async () => {
  using time = new FakeTime();
  const state = frames.reduce(fold, noRun);
  const { run = "", session = "" } = state;
  const events = frames.map(({ event }) => event);
  const expected = {
    outcome: named({ events, state }, { run, session }),
    asked: 3,
    done: ["look_1", "look_2", "drop_1"].map((id) => `${id} 🔥\u2028`),
  };
  const runs = Array.from({ length: 200 }, async (_, seed) => {
    const outcome = await read(seed).catch((error) => {
      throw new Error(`Cannot read the run of seed ${seed}`, { cause: error });
    });
    assertEquals(outcome, expected, `seed ${seed}`);
  });
  let settled = false;
  const over = Promise.all(runs).finally(() => settled = true);
  over.catch(() => {}); // awaited below
  while (!settled) await time.tickAsync(1_000);
  await over;
});
