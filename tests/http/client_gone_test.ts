import {
  agent,
  type ClientGone,
  type Event,
  memory,
  type Model,
  serve,
  type ServeOptions,
  type Store,
  tool,
} from "../../mod.ts";
import { scripted, type ScriptedModel } from "../../src/model/scripted.ts";
import { resumeTokens } from "../../src/session/resume_token/mod.ts";
import { assertEquals, assertLess } from "@std/assert";
import * as z from "zod";
import { type App, piecesOf, post } from "../support/requests.ts";

/** A run whose tool waits until it is released. `reported.progress` counts how often its progress is encoded. */
function scene(options: ServeOptions, store: Store | null = memory()) {
  const gate = Promise.withResolvers<void>();
  const working = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Event>();
  const events: string[] = [];
  const reported = { aborted: false, progress: 0 };
  const work = tool({
    name: "work",
    description: "Works until it is told to go on",
    input: z.object({}),
    async execute(_input, { signal, progress }) {
      signal.addEventListener("abort", () => {
        reported.aborted = true;
        gate.resolve();
      });
      working.resolve();
      await gate.promise;
      progress({ toJSON: () => ++reported.progress });
      return "worked";
    },
  });
  const model = scripted({ text: "Working.", calls: [["work", {}]] }, "Done.", "Again.");
  const observe = (event: Event) => {
    events.push(event.type);
    if (/^run\.(finished|aborted|failed)$/.test(event.type)) ended.resolve(event);
  };
  const app = serve(agent({ model, tools: [work], observe }), { ...(store && { store }), ...options });

  /** Begins a run, and disconnects during the tool's work. Returns its session. */
  async function leave(from: App = app): Promise<string> {
    const pieces = piecesOf(await post(from, "/runs", { prompt: "Work" }));
    const text = await pieces.until("approval.decided");
    await working.promise;
    await pieces.cancel();
    return text.match(/"session":"([^"]+)"/)?.[1] ?? "";
  }

  return { app, model, store, events, reported, leave, ended: ended.promise, release: gate.resolve };
}

const stopped: readonly ServeOptions[] = [{}, { onClientGone: "stop" }];
for (const options of stopped) {
  const how = options.onClientGone ? `told to ${options.onClientGone}` : "not told otherwise";
  Deno.test(`serve(), ${how}, stops a run whose client has gone`, async () => {
    const { model, reported, leave, ended } = scene(options);
    await leave();
    const { type, ...rest } = await ended;
    assertEquals([type, "reason" in rest && rest.reason], ["run.aborted", "client-gone"]);
    assertEquals([reported.aborted, reported.progress, model.left], [true, 1, 2]); // for the record of the run
  });
}

Deno.test('onClientGone: "drain" ends a run after its turn if its client disconnects', async () => {
  const { model, store, events, reported, leave, ended, release } = scene({ onClientGone: "drain" });
  const session = await leave();
  release();
  const last = await ended;
  assertEquals(last, {
    type: "run.finished",
    finish: "calls",
    status: "limit",
    reason: "client-gone",
    text: "Working.",
    usage: { input: 1, output: 1 },
  });
  assertEquals(events.slice(events.indexOf("approval.decided") + 1), [
    "tool.progress",
    "tool.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
  assertEquals([reported.aborted, reported.progress, model.left], [false, 1, 2]);
  const kept = await store?.load(session);
  assertEquals([kept?.run, kept?.messages.map(({ role }) => role)], [undefined, ["user", "assistant", "tool"]]);
});

Deno.test('onClientGone: "drain" lets the last turn of a run answer', async () => {
  const { app, ended, release, model } = scene({ onClientGone: "drain" });
  release();
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Work" }));
  await pieces.until(`"type":"turn.started","turn":2`);
  await pieces.cancel();
  const last = await ended;
  assertEquals("status" in last && last.status, "done");
  assertEquals(model.left, 1);
});

Deno.test('onClientGone: "detach" continues the run without encoding its events', async () => {
  const { model, store, reported, leave, ended, release } = scene({ onClientGone: "detach" });
  const session = await leave();
  release();
  const last = await ended;
  assertEquals("text" in last && last.text, "Done.");
  assertEquals([reported.aborted, reported.progress, model.left], [false, 1, 1]);
  const kept = await store?.load(session);
  assertEquals(kept?.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
});

Deno.test('onClientGone: "detach" continues a run that has no record without encoding its events', async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const options = { onClientGone: "detach", resumeTokens: resumeTokens({ keys }) } as const;
  const { model, reported, leave, ended, release } = scene(options, null);
  await leave();
  release();
  const last = await ended;
  assertEquals("text" in last && last.text, "Done.");
  assertEquals([reported.aborted, reported.progress, model.left], [false, 0, 1]);
});

Deno.test("onClientGone is called for each request", async () => {
  const { model, leave, ended, release } = scene({
    onClientGone: (c) => Promise.resolve(c.req.header("content-type") ? "detach" : "stop"),
  });
  await leave();
  release();
  const last = await ended;
  assertEquals(["text" in last && last.text, model.left], ["Done.", 1]);
});

Deno.test("onClientGone is called only for requests that launch a run", async () => {
  const asked: string[] = [];
  const app = serve(agent({ model: scripted("Hello!") }), {
    onClientGone(c) {
      asked.push(`${c.req.method} ${c.req.path}`);
      return "detach";
    },
  });
  const text = await (await post(app, "/runs", { prompt: "Hi" })).text();
  await (await app.request(`/runs/${text.match(/"run":"([^"]+)"/)?.[1]}`)).text();
  await (await app.request(`/sessions/${text.match(/"session":"([^"]+)"/)?.[1]}`)).text();
  assertEquals(asked, ["POST /runs"]);
});

Deno.test("serve() passes every run to waitUntil, whatever happens to it when its client has gone", async () => {
  for (const onClientGone of ["stop", "drain", "detach"] as const) {
    const { app, leave, ended, release } = scene({ onClientGone });
    const waited: Promise<unknown>[] = [];
    const platform = {
      waitUntil: (work: Promise<unknown>) => void waited.push(work),
      passThroughOnException() {},
      props: {},
    };
    await leave({ request: (path, init) => app.fetch(new Request(`http://localhost${path}`, init), {}, platform) });
    release();
    await ended;
    await Promise.all(waited);
    assertEquals(waited.length, 1);
  }
});

Deno.test("serve() continues a model that waited for a client that disconnected", async () => {
  const ended = Promise.withResolvers<Event>();
  const text = "x".repeat(8_192);
  let asked = 0;
  const model: Model = {
    id: "eager",
    async *stream() {
      for (; asked < 50; asked++) yield [{ type: "text", text }];
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  const observe = (event: Event) => {
    if (event.type === "run.finished") ended.resolve(event);
  };
  const pieces = piecesOf(
    await post(serve(agent({ model, observe }), { onClientGone: "detach" }), "/runs", { prompt: "Go" }),
  );
  await pieces.next();
  await new Promise((resolve) => setTimeout(resolve)); // until the model waits
  assertLess(asked, 50);
  await pieces.cancel();
  const last = await ended.promise;
  assertEquals("text" in last && last.text.length, 50 * text.length);
});

Deno.test("serve() can stop a detached run", async () => {
  const { app, ended } = scene({ onClientGone: "detach" });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Work" }));
  const run = (await pieces.until("approval.decided")).match(/"run":"([^"]+)"/)?.[1];
  await pieces.cancel();
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  const last = await ended;
  assertEquals([last.type, "reason" in last && last.reason], ["run.aborted", "stop"]);
});

/** Returns the result of a run whose client disconnects over the network. */
async function gone(onClientGone: ClientGone): Promise<readonly [Event, ScriptedModel]> {
  const { app, model, leave, ended, release } = scene({ onClientGone });
  const left = Promise.withResolvers<void>();
  const serving = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(serving, (request, info) => {
    info.completed.then(left.resolve, left.resolve);
    return app.fetch(request);
  });
  await leave({ request: (path, init) => fetch(`http://127.0.0.1:${server.addr.port}${path}`, init) });
  await left.promise;
  release();
  return [await ended, model];
}

Deno.test("serve() over the network stops a run whose client has gone", async () => {
  const [{ type, ...rest }, model] = await gone("stop");
  assertEquals([type, "reason" in rest && rest.reason, model.left], ["run.aborted", "client-gone", 2]);
});

Deno.test("serve() over the network drains a run whose client has gone", async () => {
  const [{ type, ...rest }, model] = await gone("drain");
  assertEquals([type, "reason" in rest && rest.reason, model.left], ["run.finished", "client-gone", 2]);
});

Deno.test("serve() over the network detaches a run whose client has gone", async () => {
  const [{ type, ...rest }, model] = await gone("detach");
  assertEquals([type, "text" in rest && rest.text, model.left], ["run.finished", "Done.", 1]);
});

Deno.test("serve() over the network stops a run whose client left before the response", async () => {
  const gate = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Event>();
  const model = scripted({
    before: (_request, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  const observe = (event: Event) => {
    if (event.type === "run.aborted") ended.resolve(event);
  };
  const app = serve(agent({ model, observe }), {
    async vars() {
      entered.resolve();
      await gate.promise;
    },
  });
  const leaving = new AbortController();
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
  const response = fetch(`http://127.0.0.1:${server.addr.port}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Hi" }),
    signal: leaving.signal,
  }).catch(() => "left");
  await entered.promise;
  leaving.abort();
  assertEquals(await response, "left");
  gate.resolve();
  const last = await ended.promise;
  assertEquals("reason" in last && last.reason, "client-gone");
});

Deno.test("serve() does not read the signal of a request that cannot wait for a session, because Deno warns about it", async () => {
  const request = new Request("http://localhost/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Hi" }),
  });
  let asked = 0;
  Object.defineProperty(request, "signal", { get: () => void asked++ });
  const response = await serve(agent({ model: scripted("Hello!") }), {}).fetch(request);
  await response.text();
  assertEquals([response.status, asked], [200, 0]);
});
