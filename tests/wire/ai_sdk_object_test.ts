import { agent, ask, cancelled, type Middleware, type Model, ModelError, serve, tool, tryAgain } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { streamed } from "@jizai/jizai/output";
import { aiSdkObject } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { experimental_useObject as useObject } from "npm:@ai-sdk/react@4.0.177";
import { renderToString } from "npm:react-dom@19.3.1/server";
import { createElement } from "npm:react@19.3.1";
import * as z from "zod";
import { reaching } from "../support/chat.ts";
import { type App, post, refusalOf } from "../support/requests.ts";

const schema = z.object({ city: z.string(), days: z.array(z.number()) });

/** Submits an input with `useObject` of a rendered page. Returns what `onFinish` or `onError` receives, and the pieces of the response. */
async function submitted(app: App, input: unknown) {
  const pieces: string[] = [];
  const fetching: typeof fetch = async (url, init) => {
    const { body, status, headers } = await reaching(app)(url, init);
    const text = body!.pipeThrough(new TextDecoderStream()).pipeThrough(
      new TransformStream<string, string>({
        transform(piece, controller) {
          pieces.push(piece);
          controller.enqueue(piece);
        },
      }),
    );
    return new Response(text.pipeThrough(new TextEncoderStream()), { status, headers });
  };
  const { promise, resolve } = Promise.withResolvers<unknown>();
  function Page() {
    const { submit } = useObject({
      api: "/object",
      schema,
      fetch: fetching,
      onFinish: ({ object, error }) => resolve(error ? "invalid" : object),
      onError: ({ message }) => resolve(message),
    });
    submits.push(submit);
    return null;
  }
  const submits: ((input: unknown) => void)[] = [];
  renderToString(createElement(Page));
  submits[0]?.(input);
  return { end: await promise, pieces };
}

function served(
  model: ReturnType<typeof scripted>,
  output: typeof schema | ReturnType<typeof streamed> = schema,
) {
  return serve(agent({ model, output: output as typeof schema }), { wires: [aiSdkObject()] }); // of the same values
}

Deno.test("useObject receives the structured output while the model writes it", async () => {
  for (const output of [schema, streamed(schema)]) {
    const second = Promise.withResolvers<void>();
    const model = scripted({
      reads: [
        [{ type: "text", text: '{"city":"Kyo' }],
        second.promise.then(() => [{ type: "text", text: 'to","days":[1,2]}' }] as const),
        [{ type: "finish", reason: "stop" }],
      ],
    });
    const app = served(model, output);
    const response = await post(app, "/object", "Where?");
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    assertEquals((await reader.read()).value, '{"city":"Kyo');
    second.resolve();
    assertEquals((await reader.read()).value, 'to","days":[1,2]}');
    assertEquals((await reader.read()).done, true);
    assertEquals(response.headers.get("content-type"), "text/plain; charset=utf-8");
  }
  const model = scripted({ text: ['{"city":"Kyo', 'to","days":[1,', "2]}"] });
  const { end, pieces } = await submitted(served(model), "Where?");
  assertEquals([end, pieces.join("")], [{ city: "Kyoto", days: [1, 2] }, '{"city":"Kyoto","days":[1,2]}']);
});

Deno.test("useObject receives a character whose halves are streamed apart", async () => {
  const second = Promise.withResolvers<void>();
  const model = scripted({
    reads: [
      [{ type: "text", text: '{"city":"\ud83c' }],
      second.promise.then(() => [{ type: "text", text: '\udf38\ud83c\udf38","days":[]}' }] as const),
      [{ type: "finish", reason: "stop" }],
    ],
  });
  const response = await post(served(model), "/object", "Where?");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  assertEquals((await reader.read()).value, '{"city":"');
  second.resolve();
  assertEquals((await reader.read()).value, '🌸🌸","days":[]}');
  assertEquals((await reader.read()).done, true);
});

Deno.test("useObject may submit a text or any JSON, which becomes the prompt", async () => {
  const json = '{"city":"Oslo","days":[]}';
  const model = scripted(json, json);
  const app = served(model);
  assertEquals((await submitted(app, "Where?")).end, { city: "Oslo", days: [] });
  assertEquals((await submitted(app, { place: ["a", 1] })).end, { city: "Oslo", days: [] });
  assertEquals(model.requests.map(({ messages }) => messages), [
    [{ role: "user", parts: [{ type: "text", text: "Where?" }] }],
    [{ role: "user", parts: [{ type: "text", text: '{"place":["a",1]}' }] }],
  ]);
});

Deno.test("useObject receives an answer that stands in a code fence", async () => {
  const model = scripted({ text: '```json\n{"city":"Oslo","days":[3]}\n```' });
  assertEquals((await submitted(served(model), "Where?")).end, { city: "Oslo", days: [3] });
});

Deno.test("useObject has an error if the run fails, with the status if no text was sent before", async () => {
  const failed = (model: Model) =>
    serve(agent({ model, output: schema }), { wires: [aiSdkObject()], onError: () => {} });
  const begun = scripted({ text: '{"city":"Os', error: new Error("down") });
  assertEquals(await submitted(failed(begun), "Where?"), { end: "The run failed.", pieces: ['{"city":"Os'] });
  const error = new ModelError("busy", { code: "rate_limited", retryAfter: 1_500 });
  const { end } = await submitted(failed(scripted({ error })), "Where?");
  assertEquals(JSON.parse(String(end)).error.code, "rate_limited");
  const response = await post(failed(scripted({ text: "Hm. ", error })), "/object", "Where?");
  assertEquals([response.status, response.headers.get("retry-after")], [429, "2"]);
  const { error: { id, ...body } } = await response.json();
  assertEquals([typeof id, body], ["string", { code: "rate_limited", message: "The run failed." }]);
});

Deno.test("useObject has the last answer if the model begins it again, wherever the first one breaks off", async () => {
  const first = '{"city":"\\u00d6\\"","days":[1,[true,{"a":null}],-1.5e3]}';
  const last = { city: "Oslo", days: [3] };
  for (let length = 1; length <= first.length; length++) {
    const text = first.slice(0, length);
    const models = [scripted({ text }, JSON.stringify(last)), scripted({ text, error: new ModelError("cut") }, "{}")];
    for (const [index, model] of models.entries()) {
      const again: Middleware = { error: (ctx, next) => ctx.attempt === 1 ? Promise.resolve(tryAgain()) : next() };
      const output = index === 0
        ? schema
        : z.object({ city: z.string().default("Oslo"), days: z.array(z.any()).default([3]) });
      const app = serve(agent({ model, output, use: [again] }), { wires: [aiSdkObject()], onError: () => {} });
      assertEquals((await submitted(app, "Where?")).end, last, text);
    }
  }
});

Deno.test("useObject has an error if a part of a failed answer cannot be replaced, or the answer is refused, or waits for a person", async () => {
  const again = scripted({ text: ['{"town":', "1}"] }, '{"city":"Oslo","days":[]}');
  const message = "Cannot stream the JSON answer: the model began it again, and a part that was sent is not in it";
  assertEquals((await submitted(served(again), "Where?")).end, message);

  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Sun." });
  const ends: readonly (readonly [Middleware, string, string])[] = [
    [{ prompt: () => Promise.resolve(cancelled("Not today.")) }, "cancelled", "Not today."],
    [{ approval: () => Promise.resolve(ask("Really?")) }, "paused", "The run waits for an answer of a person."],
  ];
  for (const [guard, code, message] of ends) {
    const model = scripted({ calls: [["look", {}]] });
    const app = serve(agent({ model, tools: [look], output: schema, use: [guard] }), { wires: [aiSdkObject()] });
    const { end } = await submitted(app, "Where?");
    assertEquals(JSON.parse(String(end)), { error: { code, message } });
  }
});

Deno.test("a page of useObject that leaves before the first text stops the run", async () => {
  const asked = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const model: Model = {
    id: "slow",
    async *stream(_, { signal }) {
      signal.addEventListener("abort", () => stopped.resolve());
      asked.resolve();
      await stopped.promise;
      yield [];
    },
  };
  const app = serve(agent({ model, output: schema }), { wires: [aiSdkObject()], onClientGone: "stop" });
  const page = new AbortController();
  const response = app.request("/object", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '"Where?"',
    signal: page.signal,
  });
  await asked.promise;
  page.abort();
  await stopped.promise;
  await (await response).body?.cancel();
});

Deno.test("the route of useObject refuses a body that is not JSON", async () => {
  const response = served(scripted()).request("/object", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{",
  });
  const [status] = await refusalOf(response);
  assertEquals(status, 400);
});
