import { agent, memory, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { journalKey } from "../../src/core/journal.ts";
import { drop } from "../support/asking.ts";
import { compacting } from "../support/compacting.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";
import { saving } from "../support/saving.ts";

const calls = [["drop", { table: "a" }]] as const;

const reused = [409, {
  code: "key-reused",
  message: "Cannot handle the request: another request has its idempotency key",
}] as const;

/** A model that answers "One.", and "Two." once it is released. */
function twoStep() {
  const gate = Promise.withResolvers<void>();
  const model = scripted({ before: () => gate.promise, text: "Hello!" });
  return { model, release: gate.resolve };
}

/** Sends a prompt with a key. */
async function prompt(app: App, key: string, body: object = { prompt: "Hi" }): Promise<Response> {
  return await post(app, "/runs", body, { "idempotency-key": key });
}

Deno.test("POST /runs with the same key returns the same run, while it runs and after its end", async () => {
  const { model, release } = twoStep();
  const app = serve(agent({ model }), { onClientGone: "detach" });
  const one = piecesOf(await prompt(app, "k1"));
  const before = framesOf(await one.until("model.started"));
  const two = eventsOf(prompt(app, "k1"));
  await one.cancel();
  release();
  const all = await two;
  assertEquals([all.slice(0, before.length), all.at(-1)?.type], [before, "run.finished"]);
  assertEquals(await eventsOf(prompt(app, "k1")), all);
  assertEquals(model.requests.length, 1);
});

Deno.test("POST /runs sent several times at once with the same key begins one run", async () => {
  const alone = { store: memory() };
  for (const among of [shared(), alone]) {
    const model = scripted("Hello!");
    const apps = among === alone
      ? [serve(agent({ model }), among)]
      : [1, 2, 3].map(() => processOf(among, agent({ model })).app);
    const all = await Promise.all([...apps, ...apps, ...apps].map((app) => eventsOf(prompt(app, "k1"))));
    for (const events of all) assertEquals(events, all[0]);
    assertEquals([all[0]?.at(-1)?.type, model.requests.length], ["run.finished", 1]);
  }
});

Deno.test("POST /runs with the same key never begins a second run, also once the record of the first is deleted", async () => {
  const model = scripted("One.", "Two.", "Three.", "Four.");
  const store = memory();
  const app = serve(agent({ model }), { store });
  const events = await eventsOf(prompt(app, "k1"));
  const { session } = first("run.started", events);
  for (const text of ["Ho", "Hu"]) await eventsOf(post(app, "/runs", { prompt: text, session }));
  assertEquals(await eventsOf(prompt(app, "k1")), events);
  await store.journal.trim(journalKey(undefined, session), 3);
  assertEquals(await refusalOf(prompt(app, "k1")), [410, {
    code: "forgotten",
    message: "Cannot repeat the request: the record of its run has been deleted",
  }]);
  assertEquals(model.requests.length, 3);
});

Deno.test("POST /runs is busy while a run of this process claims the session, although its lease has ended", async () => {
  using time = new FakeTime();
  const kept = memory();
  const hang = Promise.withResolvers<void>();
  const hanging = Promise.withResolvers<void>();
  let claims = 0;
  const store = durable(saving(kept, async ({ run }, save) => {
    const saved = await save();
    if (run && ++claims === 1) await (hanging.resolve(), hang.promise);
    return saved;
  }));
  await store.save({ id: "s", version: 0, messages: [] });
  const served = serve(agent({ model: scripted("One.", "Two.") }), { store, lease: 5_000, storeDeadline: 60_000 });
  const body = { prompt: "Hi", session: "s" };
  const claiming = prompt(served, "k1", body);
  await hanging.promise;
  await time.tickAsync(6_000);
  const refused = await prompt(served, "k2", { prompt: "Meanwhile", session: "s" });
  assertEquals([refused.status, (await refused.json()).error.code], [409, "busy"]);
  hang.resolve();
  await advanceUntilSettled(time, eventsOf(claiming));
  assertEquals((await advanceUntilSettled(time, eventsOf(prompt(served, "k1", body)))).at(-1)?.type, "run.finished");
  assertEquals(lines((await store.load("s"))?.messages ?? []), ["user Hi", "assistant One."]);
});

Deno.test("POST /runs refuses a key that another request has used", async () => {
  const app = serve(agent({ model: scripted("Hello!", "Again!") }), {});
  const { session } = first("run.started", await eventsOf(prompt(app, "k1")));
  for (const body of [{ prompt: "Ho" }, { prompt: "Hi", session }, { messages: [{ role: "user", parts: [] }] }]) {
    assertEquals(await refusalOf(prompt(app, "k1", body)), reused);
  }
  const answers = post(app, `/sessions/${session}/answers`, { answers: [] }, { "idempotency-key": "k1" });
  assertEquals(await refusalOf(answers), reused);
  assertEquals((await eventsOf(prompt(app, "k2", { prompt: "Ho" }))).at(-1)?.type, "run.finished");
});

Deno.test("POST /runs refuses an invalid key", async () => {
  const app = serve(agent({ model: scripted() }), {});
  for (const key of ["", "k".repeat(256)]) {
    const message = "Cannot read idempotency-key: expected 1 to 255 characters";
    const error = { code: "invalid", message, field: "idempotency-key" };
    assertEquals(await refusalOf(prompt(app, key)), [400, error]);
  }
});

Deno.test("POST /runs may be repeated with its key after a refusal", async () => {
  const gate = Promise.withResolvers<void>();
  const model = scripted("First.", { before: () => gate.promise, text: "Slow." }, "Later.");
  const app = serve(agent({ model }), {});
  const { session } = first("run.started", await eventsOf(prompt(app, "k1")));
  const slow = await prompt(app, "k2", { prompt: "Slowly", session });
  const body = { prompt: "Later", session };
  const busy = { code: "busy", message: `Cannot run session "${session}": another run has it` };
  assertEquals(await refusalOf(prompt(app, "k3", body)), [409, busy]);
  gate.resolve();
  await slow.text();
  const events = await eventsOf(prompt(app, "k3", body));
  assertEquals(first("run.finished", events).text, "Later.");
  assertEquals(await eventsOf(prompt(app, "k3", body)), events);
});

Deno.test("POST /sessions/:id/answers with the same key returns the events after the pause again", async () => {
  const model = scripted({ calls }, { text: "More.", calls }, "Done.");
  const app = serve(agent({ model, tools: [drop] }), {});
  const before = await eventsOf(prompt(app, "k1"));
  const { session } = first("run.started", before);
  const answer = (key: string, callId: string) => {
    const answers = [{ callId, type: "approve" }];
    return post(app, `/sessions/${session}/answers`, { answers }, { "idempotency-key": key });
  };
  const both = await Promise.all([answer("k2", "call_1"), answer("k2", "call_1")].map(eventsOf));
  assertEquals(both[0], both[1]);
  assertEquals([both[0]?.[0]?.id, both[0]?.at(-1)?.type], [before.length + 1, "run.paused"]);
  assertEquals(await eventsOf(answer("k2", "call_1")), both[0]);
  assertEquals(await refusalOf(answer("k2", "call_2")), reused);
  const rest = await eventsOf(answer("k3", "call_2"));
  assertEquals(first("run.finished", rest).text, "Done.");
  assertEquals(await eventsOf(answer("k3", "call_2")), rest);
  assertEquals(await eventsOf(answer("k2", "call_1")), [...both[0] ?? [], ...rest]);
  assertEquals(model.requests.length, 3);
});

Deno.test("POST /sessions/:id/answers loses against concurrent answers, and may be repeated with its key", async () => {
  const { store } = shared();
  const { journal } = store;
  const looked = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const slowly = tool({
    name: "drop",
    description: "Drops a table, slowly",
    input: z.object({ table: z.string() }),
    ask: true,
    execute: () => done.promise.then(() => "Dropped"),
  });
  const dropping = () => agent({ model: scripted({ calls: [...calls, ...calls] }, "Done."), tools: [slowly] });
  const one = processOf({ store }, dropping()).app;
  /** A slow process: another one takes the session between its load and its save. */
  const late = processOf({
    store: durable({
      ...journal,
      async head(key) {
        const head = await journal.head(key);
        looked.resolve();
        await taken.promise;
        return head;
      },
    }),
  }, dropping()).app;
  const { session, run } = first("run.started", await eventsOf(post(one, "/runs", { prompt: "Drop" })));
  const send = (app: App, callId: string, key: string) =>
    post(app, `/sessions/${session}/answers`, { answers: [{ callId, type: "approve" }] }, { "idempotency-key": key });

  const refused = refusalOf(send(late, "call_2", "k2"));
  await looked.promise;
  const answered = piecesOf(await send(one, "call_1", "k1"));
  const begun = await answered.until("tool.started");
  taken.resolve();
  const busy = { code: "busy", message: `Cannot run session "${session}": another run has it` };
  assertEquals(await refused, [409, busy]);
  done.resolve();
  const received = framesOf(begun + await answered.rest());
  assertEquals(await eventsOf(send(one, "call_1", "k1")), received);
  const rest = await eventsOf(send(one, "call_2", "k2"));
  assertEquals([first("run.started", rest).run, rest.at(-1)?.type], [run, "run.finished"]);
  assertEquals(await eventsOf(send(one, "call_2", "k2")), rest);
});

Deno.test("POST /sessions/:id/answers that was refused leaves its key free", async () => {
  const app = serve(agent({ model: scripted({ calls }, "Done."), tools: [drop] }), {});
  const { session } = first("run.started", await eventsOf(prompt(app, "k1")));
  const answer = (callId: string) => {
    const answers = [{ callId, type: "approve" }];
    return post(app, `/sessions/${session}/answers`, { answers }, { "idempotency-key": "k2" });
  };
  const [status, error] = await refusalOf(answer("call_9"));
  assertEquals([status, error], [409, {
    code: "unasked",
    message: "Cannot answer call call_9: it is not asked, or was answered before; expected an answer to call call_1",
  }]);
  const events = await eventsOf(answer("call_1"));
  assertEquals(first("run.finished", events).text, "Done.");
  assertEquals(await eventsOf(answer("call_1")), events);
  assertEquals(await refusalOf(answer("call_9")), reused);
});

Deno.test("serve() without a store begins a run once while it runs", async () => {
  const { model, release } = twoStep();
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const app = serve(agent({ model }), { resumeTokens: resumeTokens({ keys }), onClientGone: "detach" });
  const one = piecesOf(await prompt(app, "k1"));
  await one.until("model.started");
  const message = "Cannot repeat the request: its run continues, and there is no store to join it";
  assertEquals(await refusalOf(prompt(app, "k1")), [409, { code: "repeated", message }]);
  await one.cancel();
  assertEquals(await refusalOf(prompt(app, "k1")), [409, { code: "repeated", message }]);
  release();
  const [status] = await refusalOf(prompt(app, "k2", { prompt: 1 }));
  assertEquals(status, 400);
});

Deno.test("serve() keeps the keys of different owners apart", async () => {
  const options: readonly ServeOptions[] = [{}, shared()];
  for (const more of options) {
    const model = scripted("Hello, Ada!", "Hello, Bob!");
    const app = serve(agent({ model }), { ...more, owner: (c) => c.req.header("x-user") });
    const ask = async (user: string) => {
      const headers = { "idempotency-key": "k1", "x-user": user };
      return first("run.finished", await eventsOf(post(app, "/runs", { prompt: "Hi" }, headers))).text;
    };
    assertEquals([await ask("ada"), await ask("bob")], ["Hello, Ada!", "Hello, Bob!"]);
  }
});

Deno.test("POST /sessions/:id/compact with the same key returns the same run", async () => {
  const app = serve(compacting({ model: scripted("Hello!") }), {});
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  const compact = (body: object) => post(app, `/sessions/${session}/compact`, body, { "idempotency-key": "k1" });
  const events = await eventsOf(compact({}));
  assertEquals(events.at(-1)?.type, "run.finished");
  assertEquals(await eventsOf(compact({})), events);
  assertEquals(await refusalOf(compact({ instructions: "Keep names" })), reused);
});
