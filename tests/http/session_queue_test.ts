import { agent, memory, type Middleware, type Model, serve, type ServeOptions, type Store, textOf } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

/** A model that answers each prompt with the prompt itself, once it is released. */
function echo() {
  const asked: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gateOf = (text: string) => gates.getOrInsertComputed(text, () => Promise.withResolvers<void>());
  const model: Model = {
    id: "echo",
    async *stream({ messages }, { signal }) {
      const last = messages.findLast((message) => message.role === "user");
      const text = last ? textOf(last) : "";
      asked.push(text);
      const left = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      await Promise.race([gateOf(text).promise, left]);
      yield [{ type: "text", text }, { type: "finish", reason: "stop" }];
    },
  };
  return { model, asked, let: (text: string) => gateOf(text).resolve() };
}

/** A session with an active run, and functions that send more prompts. */
async function scene(options: ServeOptions) {
  const { model, asked, ...rest } = echo();
  const app = serve(agent({ model }), { onClientGone: "detach", ...options });
  rest.let("zero");
  const started = first("run.started", await eventsOf(post(app, "/runs", { prompt: "zero" })));
  const { session } = started;
  const send = (prompt: string, init: RequestInit = {}) =>
    Promise.resolve(app.request("/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt, session }),
      ...init,
    }));
  const one = await send("one");
  asked.shift();
  return { app, model, asked, session, send, one, ...rest };
}

async function eventsOf(response: Response | Promise<Response>): Promise<Framed[]> {
  return framesOf((await (await response).text()).replaceAll(":\n\n", ""));
}

async function endOf(response: Response | Promise<Response>) {
  const { type, ...rest } = (await eventsOf(response)).at(-1) ?? { type: "none" };
  return [type, "reason" in rest ? rest.reason : "text" in rest ? rest.text : undefined];
}

function turns(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

const stores: Readonly<Record<string, () => Store>> = {
  "a store in memory": memory,
  "a durable store": () => durable(memory().journal),
};

for (const [named, open] of Object.entries(stores)) {
  Deno.test(`serve() with ${named} and busy: "queue" runs the prompts of a session one after another, in order`, async () => {
    const { asked, session, send, one, app, ...rest } = await scene({ busy: "queue", store: open() });
    const more = ["two", "three", "four"].map((prompt) => send(prompt));
    await turns();
    assertEquals(asked, ["one"]);
    for (const prompt of ["four", "three", "two", "one"]) rest.let(prompt);
    assertEquals(await Promise.all([one, ...more].map(endOf)), [
      ["run.finished", "one"],
      ["run.finished", "two"],
      ["run.finished", "three"],
      ["run.finished", "four"],
    ]);
    assertEquals(asked, ["one", "two", "three", "four"]);
    const { messages } = await (await app.request(`/sessions/${session}`)).json();
    assertEquals(messages.length, 10);
  });

  Deno.test(`serve() with ${named} and busy: "replace" stops the active run, and begins`, async () => {
    const { asked, send, one, ...rest } = await scene({ busy: "replace", store: open() });
    const two = await send("two");
    assertEquals(await endOf(one), ["run.aborted", "replaced"]);
    rest.let("two");
    assertEquals(await endOf(two), ["run.finished", "two"]);
    assertEquals(asked, ["one", "two"]);
  });

  Deno.test(`serve() with ${named} and busy: "replace" gives the session to the last of several concurrent requests`, async () => {
    const { send, one, ...rest } = await scene({ busy: "replace", store: open() });
    const prompts = Array.from({ length: 14 }, (_, index) => `more ${index}`);
    const more = prompts.map((prompt) => send(prompt));
    rest.let("more 13");
    const ends = await Promise.all([one, ...more].map(endOf));
    const replaced = prompts.map(() => ["run.aborted", "replaced"]);
    assertEquals(ends, [...replaced, ["run.finished", "more 13"]]);
  });
}

Deno.test('busy: "queue" lets ten prompts wait for one session', async () => {
  const { session, send, one, asked, ...rest } = await scene({ busy: "queue" });
  const prompts = Array.from({ length: 10 }, (_, index) => `more ${index}`);
  const more = prompts.map((prompt) => send(prompt));
  const error = { code: "busy", message: `Cannot run session "${session}": 10 prompts wait for it` };
  await turns();
  assertEquals(await refusalOf(send("too many")), [409, error]);
  for (const prompt of ["one", ...prompts]) rest.let(prompt);
  await Promise.all([one, ...more].map(endOf));
  assertEquals(asked, ["one", ...prompts]);
  rest.let("later");
  assertEquals(await endOf(send("later")), ["run.finished", "later"]);
});

Deno.test('busy: "queue" skips prompts whose client has left', async () => {
  const { asked, send, one, ...rest } = await scene({ busy: "queue" });
  const leaving = new AbortController();
  const left = Array.from({ length: 10 }, (_, index) => send(`left ${index}`, { signal: leaving.signal }));
  await turns();
  leaving.abort();
  const stays = send("stays"); // the queue has room again
  await turns();
  for (const prompt of ["one", "stays"]) rest.let(prompt);
  assertEquals(await endOf(one), ["run.finished", "one"]);
  assertEquals(await endOf(stays), ["run.finished", "stays"]);
  for (const response of left) assertEquals((await response).status, 409);
  assertEquals(asked, ["one", "stays"]);
});

Deno.test('busy: "queue" continues with the next prompt if one cannot begin', async () => {
  const { asked, app, send, one, ...rest } = await scene({ busy: "queue" });
  const wrong = post(app, "/runs", { prompt: "two", session: "s9" });
  const next = send("three");
  for (const prompt of ["one", "three"]) rest.let(prompt);
  assertEquals((await wrong).status, 404);
  assertEquals([await endOf(one), await endOf(next)], [["run.finished", "one"], ["run.finished", "three"]]);
  assertEquals(asked, ["one", "three"]);
});

Deno.test('busy: "queue" begins one run for one idempotency key', async () => {
  const { asked, app, session, one, ...rest } = await scene({ busy: "queue" });
  const same = [1, 2, 3].map(() => post(app, "/runs", { prompt: "two", session }, { "idempotency-key": "k1" }));
  await turns();
  for (const prompt of ["one", "two"]) rest.let(prompt);
  assertEquals(await endOf(one), ["run.finished", "one"]);
  const all = await Promise.all(same.map(eventsOf));
  for (const events of all) assertEquals(events, all[0]);
  assertEquals([all[0]?.at(-1)?.type, asked], ["run.finished", ["one", "two"]]);
});

/** A session whose run is active in another process. */
async function elsewhere(busy: "refuse" | "queue" | "replace") {
  const among = shared();
  const { model, asked, ...rest } = echo();
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort({ reason }, next) {
      reasons.push(reason);
      await next();
    },
  };
  const [here, there] = [1, 2].map(() => processOf(among, agent({ model, use: [watch] }), { busy }));
  if (!here || !there) throw new Error("Cannot go on: there are two");
  const one = await post(there.app, "/runs", { prompt: "one" });
  const pieces = piecesOf(one);
  const { session, run } = first("run.started", framesOf(await pieces.until("model.started")));
  const send = (app: App, prompt: string) => post(app, "/runs", { prompt, session });
  return { here, there, pieces, session, run, asked, reasons, send, ...rest };
}

Deno.test('busy: "queue" waits for the end of a run in another process', async () => {
  using time = new FakeTime();
  const { here, pieces, asked, send, ...rest } = await elsewhere("queue");
  const two = send(here.app, "two");
  await advance(time, 100_000); // its process is alive
  assertEquals(asked, ["one"]);
  for (const prompt of ["one", "two"]) rest.let(prompt);
  await advanceUntilSettled(time, pieces.rest());
  assertEquals(await advanceUntilSettled(time, endOf(two)), ["run.finished", "two"]);
});

Deno.test('busy: "queue" ends a run whose process died, and begins', async () => {
  using time = new FakeTime();
  const { here, there, asked, run, send, reasons, ...rest } = await elsewhere("queue");
  const two = send(here.app, "two");
  await time.tickAsync();
  there.kill();
  rest.let("two");
  assertEquals(await advanceUntilSettled(time, endOf(two)), ["run.finished", "two"]);
  assertEquals([await advanceUntilSettled(time, endOf(Promise.resolve(here.app.request(`/runs/${run}`)))), reasons], [
    ["run.aborted", "lost"],
    ["lost"],
  ]);
  assertEquals(asked, ["one", "two"]);
});

Deno.test('busy: "replace" ends a run in another process, which stops', async () => {
  using time = new FakeTime();
  const { here, there, asked, run, pieces, send, reasons, ...rest } = await elsewhere("replace");
  rest.let("two");
  assertEquals(await advanceUntilSettled(time, endOf(send(here.app, "two"))), ["run.finished", "two"]);
  for (const { app } of [here, there]) {
    assertEquals(await advanceUntilSettled(time, endOf(Promise.resolve(app.request(`/runs/${run}`)))), [
      "run.aborted",
      "replaced",
    ]);
  }
  await advance(time, 30_000);
  await pieces.rest();
  assertEquals([asked, reasons], [["one", "two"], ["replaced", "lost"]]);
});

Deno.test("serve() refuses answers while a run holds the session, with every busy option", async () => {
  for (const busy of ["refuse", "queue", "replace"] as const) {
    const { app, session, one, ...rest } = await scene({ busy });
    const message = `Cannot run session "${session}": another run has it`;
    const answers = post(app, `/sessions/${session}/answers`, { answers: [] });
    assertEquals(await refusalOf(answers), [409, { code: "busy", message }]);
    rest.let("one");
    assertEquals(await endOf(one), ["run.finished", "one"]);
  }
});

Deno.test('busy: "queue" does not delay prompts of other sessions', async () => {
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => gate.promise, text: "Slow." }, "Fast.") }), {
    busy: "queue",
  });
  const slow = await post(app, "/runs", { prompt: "Hi" });
  assertEquals(await endOf(post(app, "/runs", { prompt: "Hi" })), ["run.finished", "Fast."]);
  gate.resolve();
  assertEquals(await endOf(slow), ["run.finished", "Slow."]);
});
