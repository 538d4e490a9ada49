import { agent, memory, type Model, type ModelEvent, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, type Journal } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { CapacityError } from "../../src/core/bounded_cache.ts";
import { drop } from "../support/asking.ts";
import { entriesOf, listedStore } from "../support/leftovers.ts";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

let keys = 0;

/** Sends a request with a new idempotency key. */
async function keyed(app: Parameters<typeof post>[0], path: string, body: object): Promise<Response> {
  return await post(app, path, body, { "idempotency-key": `key ${keys++}` });
}

Deno.test("a request that is refused leaves no key, no session and no report behind", async () => {
  const { store, keys: journals } = listedStore(durable(memory().journal));
  const model = scripted({ calls: [["drop", { table: "a" }]] });
  const app = serve(agent({ model, tools: [drop] }), { store, onEnd() {} });
  const { session, run } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  await app.settled();
  const before = [await entriesOf(store), [...journals]];
  const callId = "call_1";
  const refusals: readonly (readonly [number, string, object])[] = [
    [404, "/runs", { prompt: "Hi", session: "none" }],
    [404, "/sessions/none/answers", { answers: [] }],
    [404, "/sessions/none/compact", {}],
    [400, `/sessions/${session}/compact`, {}],
    [409, `/sessions/${session}/answers`, { answers: [{ callId: "call_9", type: "approve" }] }],
    [400, `/sessions/${session}/answers`, { answers: [{ callId, type: "approve", input: { table: 1 } }] }],
    [409, `/sessions/${session}/answers`, { answers: [{ callId, type: "approve" }], run: "another" }],
    [409, `/sessions/${session}/answers`, { answers: [{ callId, type: "approve" }], run, at: 1 }],
  ];
  for (const [status, path, body] of refusals) {
    const response = await keyed(app, path, body);
    assertEquals([path, body, response.status], [path, body, status]);
    assertEquals([await entriesOf(store), [...journals]], before);
  }
});

Deno.test("requests that are refused take no room of memory() from the runs of others", async () => {
  const app = serve(agent({ model: scripted("Hello!") }), { store: memory({ maxBytes: 30_000 }) });
  for (let sent = 0; sent < 300; sent++) {
    const [status] = await refusalOf(keyed(app, "/runs", { prompt: "Hi", session: "s".repeat(400) }));
    assertEquals(status, 404);
  }
  assertEquals((await eventsOf(keyed(app, "/runs", { prompt: "Hi" }))).at(-1)?.type, "run.finished");
});

Deno.test("idempotency keys that fill their own room take none from runs without a key, and begin no second run", async () => {
  const model = scripted(...Array.from({ length: 100 }, () => "Hello!"));
  const app = serve(agent({ model }), { store: memory({ maxBytes: 60_000 }) });
  const send = () => post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "the first" });
  await eventsOf(send());
  let refused: Response | undefined;
  for (let sent = 0; sent < 60 && !refused; sent++) {
    const response = await keyed(app, "/runs", { prompt: "Hi" });
    if (response.status === 200) await response.text();
    else refused = response;
  }
  assertEquals(await refusalOf(refused ?? send()), [503, {
    code: "full",
    message: "Cannot store more in memory: it is full; try again later",
  }]);
  for (let sent = 0; sent < 30; sent++) { // they take the place of the earlier runs
    assertEquals((await eventsOf(post(app, "/runs", { prompt: "Hi" }))).at(-1)?.type, "run.finished");
  }
  const asked = model.requests.length;
  const message = "Cannot repeat the request: the record of its run has been deleted";
  assertEquals(await refusalOf(send()), [410, { code: "forgotten", message }]); // its session has made room
  assertEquals(model.requests.length, asked);
});

/** A model that streams `count` texts of `length` characters. */
function long(count: number, length: number): Model {
  return {
    id: "long",
    async *stream() {
      await Promise.resolve();
      for (let at = 0; at < count; at++) {
        const text: ModelEvent = { type: "text", text: `${at} `.padEnd(length, "x") };
        yield [text];
      }
      yield [{ type: "finish", reason: "stop" }];
    },
  };
}

for (const make of [memory, () => durable(memory().journal)]) {
  const named = make === memory ? "in memory" : "that is durable";
  Deno.test(`a prompt for which there is no room leaves nothing in a store ${named}`, async () => {
    const { store, keys } = listedStore(make());
    const full = new CapacityError("Cannot store more in memory: it is full; try again later");
    const append: Journal["append"] = (key, append) =>
      append.created?.session === undefined ? store.journal.append(key, append) : Promise.reject(full);
    const app = serve(agent({ model: scripted() }), {
      store: { ...store, journal: { ...store.journal, append } },
      onEnd() {},
      onError() {},
    });
    const { code, message } = full;
    assertEquals(await refusalOf(keyed(app, "/runs", { prompt: "Hi" })), [503, { code, message }]);
    assertEquals([await entriesOf(store), [...keys]], [[], []]);
  });
}

Deno.test("a store in memory that is full cuts no stream: the run loses its first events", async () => {
  const app = serve(agent({ model: long(200, 1_000) }), { store: memory({ maxBytes: 1_500_000 }) });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  let text = await pieces.until("100 x");
  const { run, session } = first("run.started", framesOf(text));
  text += await pieces.rest();
  const events = framesOf(text);
  const { text: answer } = first("run.finished", events);
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  assertEquals(answer.length, 200_000);
  const { messages } = await (await app.request(`/sessions/${session}`)).json();
  assertEquals(messages[1].parts[0].text, answer);
  assertEquals(await refusalOf(app.request(`/runs/${run}?after=3`)), [410, {
    code: "forgotten",
    message: `Cannot follow run "${run}" after event 3: the next events have been deleted`,
  }]);
  const late = events.length - 20;
  assertEquals(await eventsOf(app.request(`/runs/${run}?after=${late}`)), events.slice(late));
});
