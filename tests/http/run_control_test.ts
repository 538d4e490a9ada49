import { agent, compacted, memory, type Middleware, serve, tool, user } from "../../mod.ts";
import { scripted } from "../../src/model/scripted.ts";
import { durable } from "../../src/session/durable/mod.ts";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { halting } from "../support/halting.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";
import { compaction } from "@jizai/jizai/middleware/compaction";

/** A served run whose tool waits until it is released. */
async function working(owner?: "ada") {
  const go = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    execute: () => {
      begun.resolve();
      return go.promise;
    },
  });
  const model = scripted({ calls: [["work", {}], ["work", {}]] }, "Done.");
  const made = agent({ model, tools: [work], limits: { parallel: 1 } });
  const app: App = serve(made, owner ? { owner: (c) => c.req.header("x-user") } : {});
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Go" }, owner && { "x-user": owner }));
  const frames = await pieces.until("run.started");
  const { run } = first("run.started", framesOf(frames));
  const more = frames.includes(`"tool.started"`) ? "" : await pieces.until(`"tool.started"`);
  await begun.promise;
  const rest = async () => {
    go.resolve("worked");
    return framesOf(frames + more + await pieces.rest());
  };
  return { app, run, model, rest };
}

Deno.test("serve() delivers a message to a run, as text or parts, at the requested place", async () => {
  const { app, run, model, rest } = await working();
  const image = { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" };
  const sent = [
    await post(app, `/runs/${run}/messages`, { text: "Make it red" }),
    await post(app, `/runs/${run}/messages`, { parts: [image], after: "calls" }),
  ];
  assertEquals(sent.map(({ status }) => status), [202, 202]);
  const events = await rest();
  const messages = [
    { role: "user" as const, parts: [{ type: "text" as const, text: "Make it red" }] },
    { role: "user", parts: [image] },
  ];
  assertEquals(first("steering.injected", events).messages as unknown, messages);
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "user Go",
    "call work work",
    "ok worked",
    "skipped Skipped due to queued user message.",
    "user Make it red",
  ]);
});

Deno.test("POST /runs/:id/finish makes a run finish with one more answer", async () => {
  const { app, run, model, rest } = await working();
  assertEquals((await post(app, `/runs/${run}/finish`)).status, 204);
  const { status, reason, text } = first("run.finished", await rest());
  assertEquals([status, reason, text, model.requests[1]?.tools], ["done", "interrupted", "Done.", []]);
});

Deno.test("POST /runs/:id/finish is refused if another process has taken the session", async () => {
  const store = durable(memory());
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ text: "One.", before: () => gate.promise }) }), { store });
  const { run, session } = await (await post(app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  const stored = await store.load(session);
  if (stored) await store.save({ ...stored, lease: { until: Date.now() + 60_000 } }); // by the other process
  assertEquals(await refusalOf(post(app, `/runs/${run}/finish`)), [409, {
    code: "busy",
    message: `Cannot finish run "${run}": it is ending`,
  }]);
  gate.resolve();
  await app.settled();
});

Deno.test("a request to finish that was answered is kept if the process of the run dies", async () => {
  using time = new FakeTime();
  const among = shared();
  const begun = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    execute() {
      begun.resolve();
      return new Promise(() => {});
    },
  });
  const one = processOf(among, agent({ model: scripted({ calls: [["wait", {}]] }), tools: [wait] }));
  const { run } = await (await post(one.app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  await begun.promise;
  assertEquals((await post(one.app, `/runs/${run}/finish`)).status, 204);
  one.kill();
  const model = scripted("Done.");
  const two = processOf(among, agent({ model, tools: [wait] }), { singleProcess: true });
  const { runs, over } = await two.app.recover();
  await advanceUntilSettled(time, over);
  assertEquals([runs, model.requests.map(({ tools }) => tools)], [[run], [[]]]);
});

Deno.test("POST /runs/:id/stop?rollback stops a run and removes its messages", async () => {
  const { app, run, rest } = await working();
  assertEquals((await post(app, `/runs/${run}/stop?rollback`)).status, 204);
  const { session } = first("run.started", await rest());
  assertEquals(await (await app.request(`/sessions/${session}`)).json(), { id: session, messages: [] });
});

Deno.test("POST /runs/:id/stop?rollback=false stops a run and keeps its messages, and other values are refused", async () => {
  const { app, run, rest } = await working();
  const message = "Cannot read rollback: expected true or false";
  const refused = await refusalOf(post(app, `/runs/${run}/stop?rollback=no`));
  assertEquals(refused, [400, { code: "invalid", field: "rollback", message }]);
  assertEquals((await post(app, `/runs/${run}/stop?rollback=false`)).status, 204);
  const { session } = first("run.started", await rest());
  const { messages } = await (await app.request(`/sessions/${session}`)).json();
  assertEquals(lines(messages)[0], "user Go");
});

Deno.test("a RangeError of an input hook is a failure of the request, not a queue that is full", async () => {
  const { model, begun, release } = halting();
  const reported: unknown[] = [];
  const reviewer: Middleware = {
    name: "reviewer",
    input(ctx, next) {
      if (ctx.source === "steering") throw new RangeError("a bug in the hook");
      return next();
    },
  };
  const app = serve(agent({ model, use: [reviewer] }), {
    onError: (error) => reported.push(error instanceof Error && error.message),
  });
  const response = await post(app, "/runs", { prompt: "Go" });
  await begun;
  const { run } = first("run.started", framesOf(await piecesOf(response).until("model.started")));
  const [status] = await refusalOf(post(app, `/runs/${run}/messages`, { text: "Hi" }));
  assertEquals([status, reported], [500, ["a bug in the hook"]]);
  release();
  await app.settled();
});

Deno.test("serve() names the invalid field of a message", async () => {
  const { app, run, rest } = await working();
  const send = (body: unknown) => refusalOf(post(app, `/runs/${run}/messages`, body));
  const wrong = (field: string, expected: string): readonly [number, unknown] => [
    400,
    { code: "invalid", field, message: `Cannot read ${field}: expected ${expected}` },
  ];
  assertEquals(await send({}), wrong("text", "a string"));
  assertEquals(await send({ text: "Hi", parts: [] }), wrong("parts", "a text or parts, not both"));
  assertEquals(await send({ text: "Hi", after: "now" }), wrong("after", 'one of "batch", "calls"'));
  for (let index = 0; index < 10; index++) await post(app, `/runs/${run}/messages`, { text: "Hi" });
  const message = `Cannot send a message to run "${run}": too many wait`;
  assertEquals(await send({ text: "Hi" }), [409, { code: "full", message }]);
  await rest();
  assertEquals(await send({ text: "Hi" }), [404, {
    code: "unknown",
    message: `Cannot send a message to run "${run}": it does not run`,
  }]);
});

Deno.test("serve() lets only its owner control a run", async () => {
  const { app, run, rest } = await working("ada");
  const [theirs, none] = [run, "none"].map((id) =>
    ["messages", "finish"].map((what) =>
      refusalOf(post(app, `/runs/${id}/${what}`, { text: "Hi" }, { "x-user": "bob" }))
    )
  );
  const named = (refusals: readonly unknown[]) => JSON.parse(JSON.stringify(refusals).replaceAll(run, "none"));
  assertEquals(named(await Promise.all(theirs ?? [])), await Promise.all(none ?? []));
  assertEquals((await post(app, `/runs/${run}/finish`, undefined, { "x-user": "ada" })).status, 204);
  await rest();
});

Deno.test("POST /sessions/:id/compact compacts a session without a run", async () => {
  const made = agent({
    model: scripted("One.", "Two."),
    use: [compaction({ summarize: false }), {
      name: "brief",
      compact: ({ instructions }) => Promise.resolve(compacted([user(`Brief: ${instructions}`)])),
    }],
  });
  const store = memory();
  const app: App = serve(made, { store });
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "1" })));
  const events = await eventsOf(post(app, `/sessions/${session}/compact`, { instructions: "names" }));
  const reported = events.flatMap((event) => event.type === "compact.finished" ? [event.trigger, event.status] : []);
  assertEquals([reported, first("run.finished", events).status], [["manual", "compacted"], "done"]);
  assertEquals(lines((await store.load(session))?.messages ?? []), ["user Brief: names"]);
});

Deno.test("POST /sessions/:id/compact refuses unknown sessions, and sessions with a run", async () => {
  const { app, rest } = await working();
  assertEquals(await refusalOf(post(app, "/sessions/none/compact", {})), [404, {
    code: "unknown",
    message: 'Cannot compact session "none": there is none',
  }]);
  assertEquals((await app.request("/sessions/none/compact")).status, 405);
  await rest();
});
