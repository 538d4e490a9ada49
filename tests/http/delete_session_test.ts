/**
 * Sessions that are deleted: nothing of them is left, and nothing of them comes back.
 */
import { agent, memory, type Model, serve, type ServeOptions, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { journalKey, placeOf } from "../../src/core/journal.ts";
import { drop, lookAndDrop } from "../support/asking.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { halting, waiting } from "../support/halting.ts";
import { listedStore } from "../support/leftovers.ts";
import { processOf } from "../support/process.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

/** A store that processes share, and the keys of its journals. */
const listed = () => listedStore<Store>(durable(memory().journal));

async function remove(app: App, session: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await app.request(`/sessions/${session}`, { method: "DELETE", headers });
  assertEquals(await response.text(), "");
  return response.status;
}

/** Begins a run, whose events are read until a text arrives. */
async function begun(app: App, until: string) {
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" }));
  const { run, session } = first("run.started", framesOf(await pieces.until(until)));
  return { pieces, run, session };
}

Deno.test("DELETE /sessions/:id leaves no message, event, idempotency key or owed report", async () => {
  const { store, keys } = listed();
  using _ = new FakeTime(); // reports are tried again later
  const onEnd = () => Promise.reject(new Error("down"));
  const app = serve(agent({ model: scripted("One.", { calls: [["drop", { table: "a" }]] }), tools: [drop] }), {
    store,
    onEnd,
    onError() {},
  });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  for (const [key, prompt] of [["k1", "More"], ["k2", "And more"]] as const) {
    await (await post(app, "/runs", { prompt, session }, { "idempotency-key": key })).text();
  }
  assertEquals(keys.size > 5, true);
  assertEquals([await remove(app, session), [...keys]], [204, []]);
  assertEquals([await store.list(), await store.journal.pending(9, 2 ** 42)], [[], []]);
  for (const path of [`/sessions/${session}`, `/runs/${run}`]) {
    assertEquals((await refusalOf(app.request(path)))[0], 404);
  }
  assertEquals(await remove(app, session), 204); // it may be repeated
  assertEquals(await remove(app, "none"), 204);
});

Deno.test("DELETE /sessions/:id reaches the sessions of its owner only", async () => {
  const { store, keys } = listed();
  const owner: ServeOptions["owner"] = (c) => c.req.header("user");
  const app = serve(agent({ model: scripted("One.", "Two.") }), { store, owner, session: (c) => c.req.query("s") });
  for (const user of ["ada", "eve"]) await (await post(app, "/runs?s=s1", { prompt: "Hi" }, { user })).text();
  assertEquals(await remove(app, "s1", { user: "ada" }), 204);
  assertEquals([...keys], [journalKey("eve", "s1")]);
  await app.deleteSession("s1");
  assertEquals([...keys], [journalKey("eve", "s1")]);
  await app.deleteSession("s1", { owner: "eve" });
  assertEquals([...keys], []);
  assertEquals((await refusalOf(app.request("/sessions/s1", { method: "DELETE" })))[0], 403);
});

for (const [where, isElsewhere] of [["this process", false], ["another process", true]] as const) {
  Deno.test(`DELETE /sessions/:id stops a run of ${where}, whose client receives its end`, async () => {
    const { store, keys } = listed();
    const errors: unknown[] = [];
    const options = { onError: (error: unknown) => void errors.push(error) };
    const one = processOf({ store }, agent({ model: waiting() }), options).app;
    const { pieces, session } = await begun(one, "Wait");
    const app = isElsewhere ? processOf({ store }, agent({ model: scripted() }), options).app : one;
    assertEquals([await remove(app, session), [...keys]], [204, []]);
    assertEquals(framesOf(await pieces.rest()).at(-1)?.type, "run.aborted");
    await one.settled();
    assertEquals([[...keys], errors], [[], []]);
  });

  Deno.test(`a run of ${where} that does not stop stores nothing after DELETE /sessions/:id`, async () => {
    using time = new FakeTime();
    const { store, keys } = listed();
    const gate = Promise.withResolvers<void>();
    const tireless: Model = {
      id: "tireless",
      async *stream() {
        yield [{ type: "text", text: "One." }];
        await gate.promise;
        yield [{ type: "text", text: " Two." }, { type: "finish", reason: "stop" }];
      },
    };
    const one = processOf({ store }, agent({ model: tireless }), { onError() {} }).app;
    const { run, pieces, session } = await begun(one, "One.");
    const app = isElsewhere ? processOf({ store }, agent({ model: scripted() })).app : one;
    assertEquals(await advanceUntilSettled(time, remove(app, session)), 204);
    assertEquals([...keys], []);
    const again = processOf({ store }, agent({ model: scripted("New.") })).app;
    await store.save({ id: session, version: 0, messages: [] }); // it is created anew
    gate.resolve();
    await advanceUntilSettled(time, pieces.rest());
    await advanceUntilSettled(time, one.settled());
    assertEquals((await again.request(`/sessions/${session}`)).status, 200);
    const { key = "" } = placeOf(run) ?? {};
    const { mark } = await store.journal.head(key) ?? {};
    assertEquals([(await store.load(session))?.messages, mark?.n], [[], 1]);
    assertEquals(await store.journal.read(key, 1, 0), undefined);
  });
}

Deno.test("DELETE /sessions/:id of a paused run and of one whose process has died runs nothing", async () => {
  using _ = new FakeTime(); // a killed process leaves its timers
  const { store, keys } = listed();
  const paused = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const one = processOf({ store }, paused, { onEnd() {} });
  const asked = first("run.started", await eventsOf(post(one.app, "/runs", { prompt: "Hi" })));
  const two = processOf({ store }, agent({ model: waiting() }), { onEnd() {} });
  const lost = await begun(two.app, "Wait");
  two.kill();
  const app = processOf({ store }, agent({ model: scripted() }), { singleProcess: true }).app;
  for (const { session } of [asked, lost]) assertEquals(await remove(app, session), 204);
  assertEquals([...keys], []);
  const { runs } = await app.recover();
  assertEquals(runs, []);
});

Deno.test("a session that cannot be read can be deleted", async () => {
  const { store, keys } = listed();
  const app = serve(agent({ model: scripted("One.") }), { store, onError() {} });
  const { session } = first(
    "run.started",
    await eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k" })),
  );
  const key = journalKey(undefined, session);
  const head = await store.journal.head(key);
  const to = { holder: "newer", n: 9 };
  const change = {
    run: 1,
    state: "over",
    base: 1,
    waiting: 0,
    head: '{"format":99}',
    last: head?.last ?? 0,
    entries: [],
  } as const;
  await store.journal.append(key, { from: head?.mark, to, change });
  assertEquals((await refusalOf(app.request(`/sessions/${session}`)))[0], 500);
  assertEquals([await remove(app, session), [...keys]], [204, []]);
});

Deno.test("a prompt that follows the deletion of its session begins a new one, or is refused", async () => {
  const { model, begun: answering } = halting();
  const store = memory();
  const app = serve(agent({ model }), { store, session: (c) => c.req.query("s"), busy: "queue" });
  const running = post(app, "/runs?s=s1", { prompt: "Hi" });
  await answering;
  const waits = post(app, "/runs?s=s1", { prompt: "More" });
  assertEquals(await remove(app, "s1"), 204);
  assertEquals(framesOf(await (await running).text()).at(-1)?.type, "run.aborted");
  await (await waits).text();
  assertEquals((await store.load("s1"))?.messages.at(0), { role: "user", parts: [{ type: "text", text: "More" }] });
});

Deno.test("the deletion of a session keeps the idempotency key that another session has since", async () => {
  using time = new FakeTime();
  const { store, keys } = listed();
  const app = serve(agent({ model: scripted("One.", "Two.") }), { store });
  const send = () => eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" }));
  const { session } = first("run.started", await send());
  time.tick(86_400_000);
  const events = await send(); // the key has expired, and begins another session
  assertEquals(first("run.started", events).session === session, false);
  assertEquals([await remove(app, session), keys.size], [204, 2]);
  assertEquals(await send(), events);
});

Deno.test("store.delete() leaves no idempotency key either", async () => {
  const { store, keys } = listed();
  const app = serve(agent({ model: scripted("One.") }), { store });
  const { session } = first(
    "run.started",
    await eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k" })),
  );
  assertEquals(keys.size, 2);
  await durable(store.journal).delete(session);
  assertEquals([...keys], []);
});

Deno.test("whenever another process deletes the session of a run, nothing of it is left", async () => {
  let last = 0;
  for (let at = 1; at <= last + 1; at += 2) {
    using time = new FakeTime();
    const { store, keys } = listed();
    const assistant = () =>
      agent({
        model: scripted({ text: ["I ", "look."], calls: [["look", { table: "a" }]] }, "Done."),
        tools: lookAndDrop().tools,
      });
    const other = processOf({ store }, assistant()).app;
    let count = 0;
    let existed = false;
    let deleting: Promise<number> | undefined;
    /** Deletes the session at one of the operations of the run. */
    const counted = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
      if (++count === at) {
        existed = await store.journal.head(journalKey(undefined, "s1")) !== undefined;
        deleting = remove(other, "s1");
      }
      return await work(...args);
    };
    const { head, open, append, entries } = store.journal;
    const journal = {
      ...store.journal,
      ...{ head: counted(head), open: counted(open), append: counted(append), entries: counted(entries) },
    };
    const one = processOf({ store: durable(journal) }, assistant(), {
      session: () => "s1",
      onEnd() {},
      onError() {},
    }).app;
    const response = post(one, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" });
    await advanceUntilSettled(time, response.then((response) => response.text()));
    await advanceUntilSettled(time, one.settled());
    if (deleting) assertEquals(await advanceUntilSettled(time, deleting), 204);
    if (existed) assertEquals([...keys], [], `deleted at operation ${at}`);
    last = Math.max(last, count);
  }
  assertEquals(last > 12, true);
});
