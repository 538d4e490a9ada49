import { agent, memory, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals, assertMatch } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { type App, eventsOf, first, post, refusalOf } from "../support/requests.ts";

const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];

/** The servers that accept resume tokens. */
const servers: Readonly<Record<string, () => ServeOptions>> = {
  "without a store": () => ({}),
  "with a store": () => ({ store: memory() }),
  "with a durable store": () => ({ store: durable(memory().journal) }),
};

const approve = { callId: "call_1", type: "approve" };

/** An app that accepts resume tokens, by default without a store, and the effects of its tool. */
function scene(options: ServeOptions = {}, held: Promise<void> = Promise.resolve()) {
  const done: string[] = [];
  const drop = tool({
    name: "drop",
    description: "Drops a table",
    input: z.object({ table: z.string() }),
    ask: true,
    async execute({ table }) {
      done.push(table);
      await held;
      return `Dropped ${table}`;
    },
  });
  const calls = [["drop", { table: "a" }]] as const;
  const model = scripted({ text: "Dropping.", calls }, { text: "More.", calls: [["drop", { table: "b" }]] }, "Done.");
  const app = serve(agent({ model, tools: [drop] }), { resumeTokens: resumeTokens({ keys }), ...options });
  return { app, done, model };
}

/** A paused run, and its resume token. */
async function paused(app: App) {
  const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const { session, run } = first("run.started", events);
  const { resumeToken = "" } = first("run.paused", events);
  return { events, session, run, resumeToken };
}

async function answer(
  app: App,
  session: string,
  resumeToken: string | undefined,
  answers: readonly unknown[] = [approve],
) {
  return await post(app, `/sessions/${session}/answers`, {
    answers,
    ...(resumeToken !== undefined && { resumeToken }),
  });
}

for (const [how, open] of Object.entries(servers)) {
  Deno.test(`serve() ${how} resumes a run from a resume token`, async () => {
    const { app, done } = scene(open());
    const { events, session, run, resumeToken } = await paused(app);
    assertMatch(resumeToken, /^k1\./);
    const rest = await eventsOf(answer(app, session, resumeToken));
    const started = first("run.started", rest);
    assertEquals([started.run, started.session, started.resumed, started.id], [run, session, true, events.length + 1]);
    const { resumeToken: next } = first("run.paused", rest);
    const last = await eventsOf(answer(app, session, next, [{ callId: "call_2", type: "deny" }]));
    assertEquals([first("run.finished", last).text, done], ["Done.", ["a"]]);
    assertEquals(
      [...events, ...rest, ...last].map(({ id }) => id),
      Array.from({ length: last.at(-1)?.id ?? 0 }, (_, i) => i + 1),
    );
  });
}

Deno.test("serve() resumes a run from a resume token in another process", async () => {
  const { session, resumeToken } = await paused(scene().app);
  const { done, ...other } = scene();
  await eventsOf(post(other.app, "/runs", { prompt: "Go" })); // the first answer of the model
  assertEquals(first("tool.finished", await eventsOf(answer(other.app, session, resumeToken))).result.status, "ok");
  assertEquals(done, ["a"]);
});

Deno.test("serve() rejects a resume token that was changed or forged, and runs nothing", async () => {
  using time = new FakeTime();
  const { app, done } = scene({ maxBody: 10_000_000 });
  const { session, resumeToken } = await paused(app);
  const unlike = resumeToken.replace(/.$/, (last) => last === "A" ? "B" : "A");
  const [, content = ""] = resumeToken.split(".");
  const foreign = resumeTokens({ keys: [{ id: "k1", secret: "another secret of thirty-two bytes!" }] });
  const theirs = await paused(scene({ resumeTokens: foreign }).app);
  const cases: readonly (readonly [session: string, resumeToken: string | undefined, status: number, code: string])[] =
    [
      [session, undefined, 400, "invalid"],
      [session, "", 400, "forged"],
      [session, "nonsense", 400, "forged"],
      [session, unlike, 400, "forged"],
      [session, `k1.${content}x`, 400, "forged"],
      [session, `k1.${content}.${content}`, 400, "forged"],
      [session, `k2.${content}`, 400, "unknown-key"],
      [theirs.session, theirs.resumeToken, 400, "forged"],
      ["s2", resumeToken, 403, "other-session"],
      [session, "x".repeat(262_145), 413, "too-large"],
    ];
  for (const [session, resumeToken, status, code] of cases) {
    const [reported, error] = await refusalOf(answer(app, session, resumeToken));
    assertEquals([reported, error && typeof error === "object" && "code" in error && error.code], [status, code]);
  }
  await time.tickAsync(86_400_000);
  const expired = { code: "expired", message: "Cannot open the resume token: it has expired" };
  assertEquals(await refusalOf(answer(app, session, resumeToken)), [410, expired]);
  assertEquals(done, []);
});

Deno.test("serve() with a store accepts one answer for a resume token, and repeats its events for the same answer", async () => {
  const { app, done } = scene({ store: memory() });
  const { session, resumeToken, run } = await paused(app);
  const wrong = {
    code: "unasked",
    message: "Cannot answer call call_9: it is not asked, or was answered before; expected an answer to call call_1",
  };
  assertEquals(await refusalOf(answer(app, session, resumeToken, [{ callId: "call_9", type: "approve" }])), [
    409,
    wrong,
  ]);
  const both = await Promise.all([answer(app, session, resumeToken), answer(app, session, resumeToken)].map(eventsOf));
  assertEquals(both[0], both[1]);
  const reused = { code: "key-reused", message: "Cannot handle the request: another request has its idempotency key" };
  assertEquals(await refusalOf(answer(app, session, resumeToken, [{ callId: "call_1", type: "deny" }])), [409, reused]);
  assertEquals(await eventsOf(answer(app, session, resumeToken)), both[0]);
  assertEquals(done, ["a"]);
  const all = await eventsOf(app.request(`/runs/${run}`));
  assertEquals(all.slice(-(both[0]?.length ?? 0)), both[0]);
});

Deno.test("serve() with a store sends the resume token of a pause to each client that follows the run", async () => {
  for (const store of [memory(), durable(memory().journal)]) {
    const { app, done } = scene({ store });
    const { events, session, run, resumeToken } = await paused(app);
    const followed = await eventsOf(app.request(`/runs/${run}`));
    assertEquals(followed, events);
    await eventsOf(answer(app, session, resumeToken));
    assertEquals(done, ["a"]);
  }
});

Deno.test("serve() without a store accepts a resume token twice, but not at the same time", async () => {
  const held = Promise.withResolvers<void>();
  const { app, done } = scene({}, held.promise);
  const { session, resumeToken } = await paused(app);
  const both = await Promise.all([answer(app, session, resumeToken), answer(app, session, resumeToken)]);
  held.resolve();
  assertEquals(both.map(({ status }) => status).sort(), [200, 409]);
  for (const response of both) await response.text();
  assertEquals(done, ["a"]);
});

Deno.test("serve() without a store does not know the sessions of earlier runs", async () => {
  const { app } = scene();
  const { session } = await paused(app);
  const message = `Cannot run session "${session}": there is none`;
  assertEquals(await refusalOf(post(app, "/runs", { prompt: "Hi", session })), [404, { code: "unknown", message }]);
  assertEquals((await app.request(`/sessions/${session}`)).status, 404);
});

Deno.test("serve() without a store refuses a request with an idempotency key again for the same reason", async () => {
  const { app } = scene({});
  const ask = () => post(app, "/runs", { prompt: "Hi", session: "s" }, { "idempotency-key": "k" });
  const message = 'Cannot run session "s": there is none';
  for (let request = 0; request < 2; request++) {
    assertEquals(await refusalOf(ask()), [404, { code: "unknown", message }]);
  }
});

Deno.test("a run fails where it would pause if its session does not fit into a resume token", async () => {
  const reported: unknown[] = [];
  const { app, done } = scene({
    resumeTokens: resumeTokens({ keys, maxBytes: 100 }),
    onError: (error, { id }) => reported.push([id, error instanceof Error && error.message]),
  });
  const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const { session } = first("run.started", events);
  const { code, error } = first("warning", events);
  assertEquals(code, "session.unsaved");
  assertEquals(reported, [[error, `Cannot seal session "${session}": the token has more than 100 bytes`]]);
  const { id: _, ...last } = events.at(-1) ?? {};
  const message = "The run cannot pause: its session does not fit into a resume token.";
  assertEquals(last, { type: "run.failed", error, message, code: "internal", usage: { input: 1, output: 1 } });
  assertEquals(done, []);
});

Deno.test("Prefer: respond-async is refused if the server keeps neither sessions nor events", async () => {
  const model = scripted("Hello.");
  const app = serve(agent({ model }), { resumeTokens: resumeTokens({ keys }) });
  const error = await refusalOf(post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" }));
  const message = "Cannot run in the background: the server keeps neither sessions nor events; expected a `store`";
  assertEquals(error, [400, { code: "invalid", message, field: "prefer" }]);
  assertEquals(model.requests.length, 0);
});
