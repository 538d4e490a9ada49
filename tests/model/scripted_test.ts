import { agent, ModelError, type ModelEvent, textOf } from "@jizai/jizai";
import { collect, outline, scripted } from "@jizai/jizai/testing";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";

const finish: ModelEvent = { type: "finish", reason: "stop", usage: { input: 1, output: 1 } };

async function readsOf(model: ReturnType<typeof scripted>, signal = new AbortController().signal) {
  const reads: (readonly ModelEvent[])[] = [];
  const request = { model, instructions: "", messages: [], tools: [], options: {} };
  for await (const read of model.stream(request, { signal })) reads.push(read);
  return reads;
}

Deno.test("scripted() streams reasoning, text and calls, one read per string", async () => {
  const model = scripted({ reasoning: "Hm.", text: ["It is ", "sunny."], calls: [["weather", { city: "Kyoto" }]] });
  assertEquals(await readsOf(model), [
    [{ type: "reasoning", text: "Hm." }],
    [{ type: "text", text: "It is " }],
    [{ type: "text", text: "sunny." }],
    [
      { type: "call.start", id: "call_1", name: "weather" },
      { type: "call.delta", id: "call_1", text: `{"city":"Kyoto"}` },
      { type: "call.end", id: "call_1" },
    ],
    [{ type: "finish", reason: "calls", usage: { input: 1, output: 1 } }],
  ]);
});

Deno.test("scripted() numbers calls over the whole script and keeps given ids", async () => {
  const model = scripted({ calls: [["a", {}], { name: "b", input: {}, id: "mine" }] }, { calls: [["c", {}]] });
  const ids = [...await readsOf(model), ...await readsOf(model)].flat()
    .flatMap((event) => event.type === "call.end" ? [event.id] : []);
  assertEquals(ids, ["call_1", "mine", "call_3"]);
});

Deno.test("scripted() reports the given usage and finish reason", async () => {
  const usage = { input: 20, output: 10, cached: 5 };
  assertEquals(await readsOf(scripted({ text: "So", finish: "length", usage })), [
    [{ type: "text", text: "So" }],
    [{ type: "finish", reason: "length", usage }],
  ]);
});

Deno.test("scripted() streams exactly the given reads and awaits promises among them", async () => {
  const gate = Promise.withResolvers<readonly ModelEvent[]>();
  const model = scripted({
    reads: [[{ type: "text", text: "a" }, { type: "text", text: "b" }], gate.promise, [finish]],
  });
  const handle = agent({ model }).run("Hi");
  const reader = handle.events.getReader();
  const seen: string[] = [];
  while (seen.at(-1) !== "text.delta b") seen.push(...outline([(await reader.read()).value!]));
  assertEquals(seen.slice(-2), ["text.delta a", "text.delta b"]);
  gate.resolve([{ type: "text", text: "c" }]);
  reader.releaseLock();
  assertEquals((await handle.result).text, "abc");
});

Deno.test("scripted() throws the given error after the text", async () => {
  const error = new ModelError("Overloaded", { recoverable: true, status: 529 });
  const { events, result } = await collect(agent({ model: scripted({ text: "So far", error }) }).run("Hi"));
  assertEquals(outline(events).slice(4), [
    "model.started scripted",
    "text.delta So far",
    "session.closed",
    "run.failed",
  ]);
  assertEquals(result.error, error);
});

Deno.test("scripted() without a finish event is a cut stream", async () => {
  const model = scripted({ reads: [[{ type: "text", text: "So" }]] });
  const { result } = await collect(agent({ model }).run("Hi"));
  assertEquals([result.status, String(result.error)], [
    "failed",
    "ModelError: Cannot complete turn 1: the stream of scripted was cut",
  ]);
});

Deno.test("scripted() sends a string input as JSON text, malformed or not", async () => {
  const model = scripted({ calls: [["weather", "{"], ["weather", "{}"]] });
  const deltas = (await readsOf(model)).flat().flatMap((event) => event.type === "call.delta" ? [event.text] : []);
  assertEquals(deltas, ["{", "{}"]);
});

Deno.test("scripted() calls a function with the request and records every request", async () => {
  const model = scripted(({ messages }) =>
    `You said ${messages.map((message) => "parts" in message && textOf(message))}`
  );
  const { text } = await agent({ model, instructions: "Be kind." }).run("Hi").result;
  assertEquals(text, "You said Hi");
  assertEquals(model.requests.map(({ instructions }) => instructions), ["Be kind."]);
});

Deno.test("scripted() passes the request and the signal to before() and awaits it", async () => {
  const order: string[] = [];
  const model = scripted({
    text: "Hello!",
    async before(request, signal) {
      await Promise.resolve();
      order.push(`${request.model.id} ${signal.aborted}`);
    },
  });
  await readsOf(model);
  assertEquals(order, ["scripted false"]);
});

Deno.test("scripted() stops when its signal aborts", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const model = scripted({ text: ["a", "b"], before: () => controller.abort(reason) });
  assertEquals(await assertRejects(() => readsOf(model, controller.signal)), reason);
});

Deno.test("scripted() throws for a request beyond the script", async () => {
  const model = scripted("One");
  await readsOf(model);
  await assertRejects(() => readsOf(model), ModelError, "Cannot answer request 2: the script has 1 steps");
  assertThrows(() => model.done(), Error, "Cannot end the script: it has 1 steps, and 2 were asked for");
});

Deno.test("scripted().done() throws until every step was requested", async () => {
  const model = scripted("One", "Two");
  await readsOf(model);
  assertEquals(model.left, 1);
  assertThrows(() => model.done(), Error, "Cannot end the script: 1 of its 2 steps were not asked for");
  await readsOf(model);
  assertEquals(model.left, 0);
  model.done();
});
