import { client, ClientError, fold, noRun, type RunState } from "@jizai/jizai/client";
import { assertEquals, assertRejects } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { logServer, type LogServerOptions } from "../support/log_server.ts";
import { answers, recorded } from "../support/recorded.ts";
import type { Fate } from "../support/faulty_network.ts";

const legs = await recorded();
const [first = [], second = []] = legs;
const whole = legs.flat().reduce(fold, noRun);
const { run, session } = whole;

/** A server that answers each request with the next fault, and then without faults. */
function faultyNetwork(fates: readonly Fate[], options: LogServerOptions = {}) {
  return logServer(legs, { ...options, fate: (request) => fates[request] ?? { type: "well" } });
}

/** Does `work` in fake time, which advances from timer to timer. */
async function soon<T>(work: () => Promise<T>): Promise<T> {
  using time = new FakeTime();
  let settled = false;
  const over = work().finally(() => settled = true);
  over.catch(() => {}); // the caller that awaits the work receives the error
  while (!settled) await time.tickAsync(1_000);
  return await over;
}

const lost: Fate = { type: "lost" };
const unanswered: Fate = { type: "unanswered" };

Deno.test("client() returns each event of a run, and the state after it", async () => {
  const server = logServer(legs);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go", session: "s1" });
  assertEquals(leg.state, noRun);
  let state: RunState = noRun;
  let index = 0;
  for await (const event of leg.events) {
    const frame = first[index++];
    assertEquals(event, frame?.event);
    if (frame) state = fold(state, frame);
    assertEquals(leg.state, state);
  }
  assertEquals(index, first.length);
  assertEquals(server.requests, ["POST /runs"]);
  assertEquals(server.sent, [{ prompt: "Go", session: "s1" }]);
});

Deno.test("client() sends no request before the first event is read", async () => {
  const server = logServer(legs);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  await Promise.resolve();
  assertEquals(server.requests, []);
  assertEquals((await leg.result()).status, "paused");
  assertEquals(server.requests, ["POST /runs"]);
});

Deno.test("client() sends messages, the given headers, and a new idempotency key for each run", async () => {
  const seen: Headers[] = [];
  const bodies: unknown[] = [];
  const assistant = client("http://host/base", {
    headers: { authorization: "Bearer t" },
    fetch: async (url, init) => {
      const request = new Request(url, init);
      assertEquals([request.method, request.url], ["POST", "http://host/base/runs"]);
      seen.push(request.headers);
      bodies.push(await request.json());
      return Response.json({}, { status: 400 });
    },
  });
  const messages = [{ role: "user", parts: [{ type: "text", text: "Hi" }] }] as const;
  for (const _ of [1, 2]) await assertRejects(() => assistant.run({ messages }).result(), ClientError);
  assertEquals(bodies, [{ messages }, { messages }]);
  assertEquals(seen.map((headers) => headers.get("authorization")), ["Bearer t", "Bearer t"]);
  assertEquals(seen.map((headers) => headers.get("content-type")), ["application/json", "application/json"]);
  assertEquals(new Set(seen.map((headers) => headers.get("idempotency-key"))).size, 2);
});

Deno.test("client() waits without a limit if `silence` is Infinity", async () => {
  for (const silence of [Infinity, 2 ** 31]) {
    const server = logServer(legs);
    const slow = async (url: string, init: RequestInit) => {
      await new Promise((resolve) => setTimeout(resolve, 20)); // a timer that has run over fires before
      init.signal?.throwIfAborted();
      return await server.fetch(url, init);
    };
    const leg = client("", { fetch: slow, silence, attempts: 1 }).run({ prompt: "Go" });
    assertEquals((await leg.result()).status, "paused");
  }
});

Deno.test("client() requests no other route for a run whose id is a path", async () => {
  const paths: string[] = [];
  const fetch = (url: string) => {
    paths.push(url);
    return Response.json({}, { status: 404 });
  };
  const followed = client("", { fetch }).follow({ ...noRun, run: "../sessions/s1?a#b" });
  await assertRejects(() => followed.result(), ClientError);
  await assertRejects(() => followed.stop(), ClientError);
  assertEquals(paths, ["/runs/..%2Fsessions%2Fs1%3Fa%23b", "/runs/..%2Fsessions%2Fs1%3Fa%23b/stop"]);
});

Deno.test("client() sends answers with the position of the run", async () => {
  const server = logServer(legs);
  let leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  const asked = [await leg.result()];
  for (const given of answers) asked.push(await (leg = leg.answer(given)).result());
  assertEquals(asked.map(({ questions }) => questions.map(({ callId }) => callId)), [["drop_1"], ["drop_2"], []]);
  assertEquals(asked.map(({ at }) => at), [first.length, first.length + second.length, legs.flat().length]);
  assertEquals(leg.state, whole);
  assertEquals(server.requests, ["POST /runs", ...answers.map(() => `POST /sessions/${session}/answers`)]);
  assertEquals(
    server.sent.slice(1),
    answers.map((given, index) => ({ answers: given, run: asked[index]?.run, at: asked[index]?.at })),
  );
});

Deno.test("client() reads a run with its pauses in one loop", async () => {
  const given = [...answers];
  const seen: unknown[] = [];
  let leg = client("", { fetch: logServer(legs).fetch }).run({ prompt: "Go" });
  for (;;) {
    for await (const event of leg.events) seen.push(event);
    const next = given.shift();
    if (!next) break;
    leg = leg.answer(next);
  }
  assertEquals(seen, legs.flat().map(({ event }) => event));
});

Deno.test("client() requests the rest of a stream that is cut or ends too early", async () => {
  for (const type of ["cut", "ended"] as const) {
    const server = faultyNetwork([{ type, after: 700 }, { type, after: 0 }, { type, after: 300 }]);
    assertEquals(
      await soon(() => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result()),
      first.reduce(fold, noRun),
    );
    const asked = server.requests.map((request) => request.split(" after ")[0]);
    assertEquals(asked, ["POST /runs", `GET /runs/${run}`, `GET /runs/${run}`, `GET /runs/${run}`]);
    assertEquals(server.sent.length, 1);
  }
});

Deno.test("client() checks for later events if the connection is lost during a pause", async () => {
  const server = faultyNetwork([{ type: "cut", after: Infinity }]);
  assertEquals((await soon(() => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result())).status, "paused");
  assertEquals(server.requests, ["POST /runs", `GET /runs/${run} after ${first.length}`]);
});

Deno.test("client() requests nothing if the connection is lost after the end", async () => {
  const server = faultyNetwork([{ type: "well" }, { type: "well" }, { type: "cut", after: Infinity }]);
  let leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  await leg.result();
  for (const given of answers) await (leg = leg.answer(given)).result();
  assertEquals([leg.state, server.requests.length], [whole, 3]);
});

Deno.test("client() sends an unanswered request again, and the run begins once", async () => {
  for (
    const fates of [[lost], [unanswered], [{ type: "cut", after: 0 }], [lost, unanswered, lost], [{
      type: "cut",
      after: 9,
    }]]
  ) {
    const server = faultyNetwork(fates as readonly Fate[]); // a list of one of these kinds
    assertEquals(
      (await soon(() => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result())).at,
      first.length,
    );
    assertEquals(server.requests, Array.from({ length: fates.length + 1 }, () => "POST /runs"));
    assertEquals(server.sent, [{ prompt: "Go" }]);
  }
});

Deno.test("client() checks whether answers arrived before it sends them again", async () => {
  const answering = `POST /sessions/${session}/answers`;
  const looking = `GET /runs/${run} after ${first.length}`;
  const cases: readonly (readonly [Fate[], string[]])[] = [
    [[unanswered], [answering, looking]],
    [[lost], [answering, looking, answering]],
    [[lost, lost, lost], [answering, looking, looking, looking, answering]],
    [[{ type: "ended", after: 0 }], [answering, looking]],
    [[lost, { type: "well" }, unanswered], [answering, looking, answering, looking]],
  ];
  for (const keyed of [true, false]) {
    for (const [fates, asked] of cases) {
      const server = faultyNetwork([{ type: "well" }, ...fates], { keyed });
      const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
      await leg.result();
      assertEquals(await soon(() => leg.answer(answers[0] ?? []).result()), [...first, ...second].reduce(fold, noRun));
      assertEquals(server.requests, ["POST /runs", ...asked]);
      assertEquals(server.sent.length, 2);
    }
  }
});

Deno.test("client() treats answers as delivered if their repetition is refused", async () => {
  const server = logServer(legs);
  let late: (() => Promise<Response>) | undefined;
  const leg = client("", {
    async fetch(url, init) {
      if (!url.endsWith("/answers")) return await server.fetch(url, init);
      const headers = { ...init.headers, "idempotency-key": crypto.randomUUID() }; // to a server that does not support keys
      const send = () => server.fetch(url, { ...init, headers });
      if (!late) {
        late = send;
        throw new TypeError("The network is down");
      }
      await late(); // the lost request arrives now
      return await send();
    },
  }).run({ prompt: "Go" });
  await leg.result();
  const state = await soon(() => leg.answer(answers[0] ?? []).result());
  assertEquals(state.at, first.length + second.length);
  assertEquals(server.sent.length, 2);
});

Deno.test("client() throws the reason of a refusal at once", async () => {
  const refused = async (status: number, code: string) => {
    const server = faultyNetwork([{ type: "refused", status }]);
    const error = await assertRejects(
      () => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result(),
      ClientError,
    );
    assertEquals([error.status, error.code, error.message], [status, code, `It is ${code}.`]);
    assertEquals(server.requests.length, 1);
  };
  for (const status of [400, 401, 404, 409, 413]) await refused(status, "elsewhere");
  const error = await assertRejects(
    () =>
      client("", { fetch: () => new Response("<h1>Forbidden</h1>", { status: 403 }) }).run({ prompt: "Go" }).result(),
    ClientError,
  );
  assertEquals([error.status, error.code, error.message], [
    403,
    "lost",
    "Cannot reach the server: it answered with status 403",
  ]);
});

Deno.test("client() distinguishes its refused answers from those of a run that was resumed by others", async () => {
  const server = logServer(legs);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  await leg.result();
  await leg.answer(answers[0] ?? []).result();
  const error = await assertRejects(() => leg.answer(answers[0] ?? []).result(), ClientError);
  assertEquals([error.status, error.code, server.sent.length], [409, "unasked", 2]);
});

Deno.test("client() retries if the server is busy or down", async () => {
  for (const status of [429, 500, 502, 503]) {
    const server = faultyNetwork([{ type: "refused", status }, { type: "refused", status }]);
    assertEquals(
      (await soon(() => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result())).status,
      "paused",
    );
    assertEquals(server.requests.length, 3);
  }
});

Deno.test("client() waits longer before each attempt, with jitter, and then gives up", async () => {
  const { random } = Math;
  try {
    for (const [chance, factor] of [[0, 1], [0.5, 1.5]] as const) {
      Math.random = () => chance;
      using time = new FakeTime();
      const at: number[] = [];
      const down = () => {
        at.push(time.now - time.start);
        throw new TypeError("The network is down");
      };
      const over = assertRejects(() => client("", { fetch: down }).run({ prompt: "Go" }).result(), ClientError);
      while (at.length < 8) await time.nextAsync();
      const error = await over;
      assertEquals([error.message, error.code, error.status], [
        "Cannot read the run: 8 attempts failed",
        "lost",
        0,
      ]);
      assertEquals(error.cause instanceof TypeError && error.cause.message, "The network is down");
      const waits = at.slice(1).map((each, index) => each - (at[index] ?? 0));
      assertEquals(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000].map((ms) => ms * factor));
    }
  } finally {
    Math.random = random;
  }
});

Deno.test("client() gives up at once without an attempt, also if the number of attempts is not a number", async () => {
  for (const attempts of [0, -1, NaN]) {
    const fetch = () => Promise.reject(new Error("The server is never asked."));
    const reading = client("", { attempts, fetch }).run({ prompt: "Go" }).result();
    await assertRejects(() => reading, ClientError, `Cannot read the run: ${attempts} attempts failed`);
  }
});

Deno.test("client() gives up after the configured number of attempts, and an event resets the count", async () => {
  const three = (fates: readonly Fate[]) => {
    const server = faultyNetwork(fates);
    return {
      server,
      over: soon(() => client("", { fetch: server.fetch, attempts: 3 }).run({ prompt: "Go" }).result()),
    };
  };
  const received = three([lost, { type: "cut", after: 500 }, lost, { type: "cut", after: 500 }, lost]);
  assertEquals((await received.over).status, "paused");
  const silent = three([lost, lost, lost]);
  await assertRejects(() => silent.over, ClientError, "Cannot read the run: 3 attempts failed");
  assertEquals(silent.server.requests.length, 3);
  const nothingNew = three([{ type: "cut", after: 500 }, { type: "cut", after: 3 }, { type: "cut", after: 3 }]);
  await assertRejects(() => nothingNew.over, ClientError, "Cannot read the run: 3 attempts failed");
});

Deno.test("client() gives up on a run that never ends", async () => {
  const server = logServer([first.slice(0, -1)]);
  const error = await assertRejects(
    () => soon(() => client("", { fetch: server.fetch }).run({ prompt: "Go" }).result()),
    ClientError,
  );
  assertEquals(error.cause instanceof ClientError && error.cause.status, 204);
});

Deno.test("client() gives up on a run with a missing event, and never shows later events", async () => {
  const server = logServer([[...first.slice(0, 5), ...first.slice(6)]]);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  await assertRejects(() => soon(() => leg.result()), ClientError, "Cannot read the run");
  assertEquals(leg.state, first.slice(0, 5).reduce(fold, noRun));
});

Deno.test("client() returns the events before a failure, and then throws", async () => {
  const server = faultyNetwork([{ type: "cut", after: 700 }, { type: "refused", status: 404 }]);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  const seen: unknown[] = [];
  const reading = async () => {
    for await (const event of leg.events) seen.push(event);
  };
  await assertRejects(() => soon(reading), ClientError, "It is elsewhere.");
  assertEquals(seen, first.slice(0, seen.length).map(({ event }) => event));
  assertEquals(leg.state.at, seen.length);
});

Deno.test("client().follow() continues from a state, or from an id alone", async () => {
  const server = logServer(legs);
  const assistant = client("", { fetch: server.fetch });
  await assistant.run({ prompt: "Go" }).result();
  const half = first.slice(0, 7).reduce(fold, noRun);
  const kept: RunState = JSON.parse(JSON.stringify(half));
  const paused = first.reduce(fold, noRun);
  assertEquals(await assistant.follow(kept).result(), paused);
  const begun = assistant.follow({ ...noRun, run: run ?? "" });
  assertEquals(await begun.result(), paused);
  const next = begun.answer(answers[0] ?? []);
  assertEquals((await next.result()).at, first.length + second.length);
  assertEquals(await next.answer(answers[1] ?? []).result(), whole);
  assertEquals(server.requests.slice(1, 3), [`GET /runs/${run} after 7`, `GET /runs/${run} after 0`]);
});

Deno.test("client().follow() rejects without a request if the state has no run", async () => {
  const server = logServer(legs);
  const { code } = await assertRejects(
    () => client("", { fetch: server.fetch }).follow(noRun).result(),
    ClientError,
    "it has not begun",
  );
  assertEquals([code, server.requests], ["unknown", []]);
});

Deno.test("client().follow() returns no events of a run that is over, and the rest of one that continued", async () => {
  const server = logServer(legs);
  const assistant = client("", { fetch: server.fetch });
  const begun = assistant.run({ prompt: "Go" });
  const paused = await begun.result();
  assertEquals(await assistant.follow(paused).result(), paused);
  const next = begun.answer(answers[0] ?? []);
  await next.result();
  await next.answer(answers[1] ?? []).result();
  assertEquals(await assistant.follow(paused).result(), whole);
  assertEquals(await assistant.follow(whole).result(), whole);
  const gone = AbortSignal.abort(new Error("leaving"));
  await assertRejects(() => assistant.follow(whole, gone).result(), Error, "leaving");
  const asked = await assertRejects(() => assistant.follow({ ...noRun, run: "elsewhere" }).result(), ClientError);
  assertEquals(asked.code, "unknown");
});

Deno.test("client() disconnects when the loop over the events is left", async () => {
  const left = Promise.withResolvers<unknown>();
  const [frame] = first;
  const fetch = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode(`id: 1\ndata: ${JSON.stringify(frame?.event)}\n\n`));
        },
        cancel: left.resolve,
      }),
    );
  const leg = client("", { fetch }).run({ prompt: "Go" });
  for await (const _ of leg.events) break;
  await left.promise;
  assertEquals(await leg.result(), first.slice(0, 1).reduce(fold, noRun));
});

Deno.test("client() disconnects when the loop is left after the connection was lost", async () => {
  let asked = 0;
  const [frame] = first;
  const broken = Promise.withResolvers<void>();
  const fetch = () => {
    asked++;
    return new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(`id: 1\ndata: ${JSON.stringify(frame?.event)}\n\n`));
          broken.promise.then(() => controller.error(new TypeError("The connection was reset")));
        },
      }),
    );
  };
  for await (const _ of client("", { fetch }).run({ prompt: "Go" }).events) {
    broken.resolve();
    await new Promise((resolve) => setTimeout(resolve)); // until every layer has seen it
    break;
  }
  assertEquals(asked, 1);
});

Deno.test("client() disconnects when its signal aborts: before the run, during it, and between attempts", async () => {
  const reason = new Error("leaving");
  let asked = 0;
  const never = (_url: string, { signal }: RequestInit) => {
    asked++;
    return new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  };
  const early = client("", { fetch: never }).run({ prompt: "Go", signal: AbortSignal.abort(reason) });
  assertEquals([await early.result().catch((error) => error), asked], [reason, 0]);

  const leaving = new AbortController();
  const middle = client("", { fetch: never }).run({ prompt: "Go", signal: leaving.signal }).result();
  leaving.abort(reason);
  assertEquals([await middle.catch((error) => error), asked], [reason, 1]);

  using time = new FakeTime();
  const waiting = new AbortController();
  const down = (_url: string, { signal }: RequestInit) => {
    signal?.throwIfAborted();
    throw new TypeError("The network is down");
  };
  const late = client("", { fetch: down }).run({ prompt: "Go", signal: waiting.signal }).result();
  await time.runMicrotasks();
  waiting.abort(reason);
  assertEquals([await late.catch((error) => error), time.next()], [reason, false]);
});

Deno.test("client() uses the signal of a run for its resumed rest, too", async () => {
  const leaving = new AbortController();
  const leg = client("", { fetch: logServer(legs).fetch }).run({ prompt: "Go", signal: leaving.signal });
  await leg.result();
  leaving.abort(new Error("leaving"));
  await assertRejects(() => leg.answer(answers[0] ?? []).result(), Error, "leaving");
});

Deno.test("client() removes its abort listener after each request and each wait", async () => {
  const { signal } = new AbortController();
  using added = spy(signal, "addEventListener");
  using removed = spy(signal, "removeEventListener");
  const fetch = () => {
    const before = added.calls.slice(0, -1); // the last is that of this request
    assertEquals(removed.calls.map(({ args }) => args), before.map(({ args }) => args));
    throw new TypeError("The network is down");
  };
  const leg = client("", { fetch }).run({ prompt: "Go", signal });
  await assertRejects(() => soon(() => leg.result()), ClientError, "Cannot read the run");
  assertEquals([added.calls.length, removed.calls.length], [15, 15]);
});

Deno.test("client() treats a connection as lost if no response arrives in the configured time", async () => {
  using time = new FakeTime();
  const server = logServer(legs);
  const at: number[] = [];
  const leg = client("", {
    silence: 5_000,
    async fetch(url, init) {
      at.push(time.now - time.start);
      if (at.length > 1) return await server.fetch(url, init);
      return await new Promise((_, reject) =>
        init.signal?.addEventListener("abort", () => reject(init.signal?.reason))
      );
    },
  });
  const over = leg.run({ prompt: "Go" }).result();
  await time.tickAsync(4_999);
  await time.runMicrotasks();
  assertEquals(time.next(), true); // the timer of the silence, and none before it
  assertEquals(time.now - time.start, 5_000);
  await time.tickAsync(0);
  await time.nextAsync();
  assertEquals([(await over).status, at.length], ["paused", 2]);
});

Deno.test("client() treats a connection as lost after 45 seconds without data", async () => {
  using time = new FakeTime();
  const server = logServer(legs);
  const encoder = new TextEncoder();
  const aborted: unknown[] = [];
  const { promise: beat, resolve: begin } = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>();
  let asked = 0;
  const leg = client("", {
    async fetch(url, init) {
      if (asked++ > 0) return await server.fetch(url, init);
      const { text } = await server.fetch(url, init).then(async (response) => ({ text: await response.text() }));
      return new Response(
        new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(encoder.encode(text.slice(0, text.indexOf("\n\n") + 2)));
            init.signal?.addEventListener("abort", () => {
              aborted.push(time.now - time.start);
              controller.error(init.signal?.reason);
            });
            begin(controller);
          },
        }),
      );
    },
  }).run({ prompt: "Go" });
  const over = leg.result();
  const controller = await beat;
  for (let beats = 0; beats < 4; beats++) {
    await time.tickAsync(44_000);
    await time.runMicrotasks();
    controller.enqueue(encoder.encode(":\n\n"));
    await time.runMicrotasks();
  }
  assertEquals(aborted, []);
  await time.tickAsync(45_000);
  await time.runMicrotasks();
  assertEquals(aborted, [4 * 44_000 + 45_000]);
  await time.tickAsync(1_000);
  assertEquals((await over).status, "paused");
  assertEquals(time.next(), false);
});

Deno.test("client() does not count the time of a slow reader as silence", async () => {
  using time = new FakeTime();
  const leg = client("", { fetch: logServer(legs).fetch }).run({ prompt: "Go" });
  for await (const _ of leg.events) await time.tickAsync(60_000);
  assertEquals(leg.state.status, "paused");
});

Deno.test("client() encodes session ids in paths", async () => {
  const [opening, ...rest] = first;
  if (opening?.event.type !== "run.started") throw new Error("It does not begin");
  const strange = "a/b?c#d é";
  const server = logServer([[{ ...opening, event: { ...opening.event, session: strange } }, ...rest], second]);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" });
  await leg.result();
  assertEquals((await leg.answer(answers[0] ?? []).result()).at, first.length + second.length);
});

Deno.test("client() reads frames that are split anywhere, with both line endings, and with comments", async () => {
  const some = [...first.slice(0, 3), ...first.slice(-1)].map(({ event }, index) => ({ id: index + 1, event }));
  const expected = some.reduce(fold, noRun);
  for (const end of ["\n", "\r\n"]) {
    const dress = (text: string) =>
      new TextEncoder().encode(
        `\uFEFF:\n\n${text.replaceAll("\n\n", "\n\n:\n\n: data: 自\n\n").replaceAll(": ", ":")}`.replaceAll("\n", end),
      );
    const { length } = dress(some.map(({ id, event }) => `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
    for (let cut = 0; cut <= length; cut++) {
      const pieces = (text: string) =>
        [dress(text).slice(0, cut), dress(text).slice(cut)].filter(({ length }) => length > 0);
      assertEquals(
        await client("", { fetch: logServer([some], { pieces }).fetch }).run({ prompt: "Go" }).result(),
        expected,
      );
    }
    const pieces = (text: string) => Array.from(dress(text), (byte) => new Uint8Array([byte]));
    assertEquals(
      await client("", { fetch: logServer([some], { pieces }).fetch }).run({ prompt: "Go" }).result(),
      expected,
    );
  }
});

Deno.test("client() stops its run, and rejects if there is none to stop", async () => {
  const asked: unknown[] = [];
  const server = logServer(legs);
  const leg = client("", {
    fetch: async (url, init) => {
      if (!url.includes("/stop")) return await server.fetch(url, init);
      asked.push([init.method, url]);
      return url === `/runs/${run}/stop?session=${session}`
        ? new Response(null, { status: 204 })
        : Response.json({}, { status: 404 });
    },
  }).run({ prompt: "Go" });
  await assertRejects(() => leg.stop(), ClientError, "Cannot reach the run: it has not begun");
  assertEquals(asked, []);
  await leg.result();
  await leg.stop();
  assertEquals(asked, [["POST", `/runs/${run}/stop?session=${session}`]]);
});

Deno.test("client() rejects at once if the response is no event stream, and names its content type", async () => {
  let requests = 0;
  const login = () => {
    requests++;
    return new Response("<h1>Log in</h1>", { headers: { "content-type": "text/html" } });
  };
  const error = await assertRejects(() => client("", { fetch: login }).run({ prompt: "Go" }).result(), ClientError);
  assertEquals([error.status, error.code, error.message, requests], [
    200,
    "lost",
    "Cannot reach the server: it answered with status 200 and type text/html",
    1,
  ]);
});

Deno.test("client() rejects at once if its address has no scheme", async () => {
  for (const base of ["localhost:8000", "127.0.0.1:8000/agent", "example.com", ""]) {
    const error = await assertRejects(() => client(base).run({ prompt: "Go" }).result(), ClientError);
    assertEquals([error.status, error.code, error.message], [
      0,
      "lost",
      `Cannot reach the server: "${base}" has no scheme`,
    ]);
  }
});

Deno.test("client() keeps the status, the code and the cause of the last refusal when it gives up", async () => {
  for (const status of [429, 503]) {
    const server = faultyNetwork([lost, { type: "refused", status }]);
    const error = await assertRejects(
      () => soon(() => client("", { fetch: server.fetch, attempts: 2 }).run({ prompt: "Go" }).result()),
      ClientError,
      "Cannot read the run: 2 attempts failed",
    );
    assertEquals([error.status, error.code, (error.cause as Error).message], [
      status,
      "elsewhere",
      "It is elsewhere.",
    ]);
  }
});

Deno.test("client() rejects answers to a run that has not begun, without a request", async () => {
  const server = logServer(legs);
  const leg = client("", { fetch: server.fetch }).run({ prompt: "Go" }).answer(answers[0] ?? []);
  await assertRejects(() => leg.result(), ClientError, "Cannot reach the run: it has not begun");
  assertEquals(server.requests, []);
});

Deno.test("client() uses a global fetch that resolves paths, and reads on after it lost a connection", async () => {
  const server = faultyNetwork([{ type: "cut", after: 1_000 }]);
  using _ = stub(globalThis, "fetch", (input, init) => server.fetch(String(input), init));
  const { status, at } = await soon(() => client("").run({ prompt: "Go" }).result());
  assertEquals([status, at, server.requests.length], ["paused", first.length, 2]);
});

Deno.test("client() rejects an address without a scheme with the error of the global fetch as its cause", async () => {
  const error = await assertRejects(() => client("localhost:8000").run({ prompt: "Go" }).result(), ClientError);
  assertEquals(error.cause instanceof TypeError, true);
});

Deno.test("client() reads an event stream whatever the case of its content type", async () => {
  const server = logServer(legs);
  const fetch = async (url: string, init: RequestInit) => {
    const { body } = await server.fetch(url, init);
    return new Response(body, { headers: { "content-type": "Text/Event-Stream; charset=UTF-8" } });
  };
  assertEquals((await client("", { fetch }).run({ prompt: "Go" }).result()).status, "paused");
});

Deno.test("client() sends a request again after a response without content, whatever its status and type", async () => {
  for (const headers of [{}, { "content-type": "text/html" }]) {
    const server = logServer(legs);
    const keys: unknown[] = [];
    const fetch = async (url: string, init: RequestInit) => {
      keys.push(new Headers(init.headers).get("idempotency-key"));
      return keys.length === 1 ? new Response(null, { headers }) : await server.fetch(url, init);
    };
    assertEquals((await soon(() => client("", { fetch }).run({ prompt: "Go" }).result())).status, "paused");
    assertEquals([keys.length, keys[0] === keys[1], server.requests], [2, true, ["POST /runs"]]);
  }
});
