import { agent, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { streamed } from "@jizai/jizai/output";
import { aiSdkObject } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { experimental_useObject as useObject } from "npm:@ai-sdk/react@4.0.177";
import { createElement } from "npm:react@19.3.1";
import { renderToString } from "npm:react-dom@19.3.1/server";
import * as z from "zod";
import { reaching } from "../support/chat.ts";
import { type App, post, refusalOf } from "../support/requests.ts";

const schema = z.object({ city: z.string(), days: z.array(z.number()) });

/** Submits an input with `useObject` of a rendered page. Returns what `onFinish` or `onError` receives, and the pieces of the response. */
async function submitted(app: App, input: unknown) {
  const pieces: string[] = [];
  const fetching: typeof fetch = async (url, init) => {
    const { body, ...response } = await reaching(app)(url, init);
    const text = body!.pipeThrough(new TextDecoderStream()).pipeThrough(
      new TransformStream<string, string>({
        transform(piece, controller) {
          pieces.push(piece);
          controller.enqueue(piece);
        },
      }),
    );
    return new Response(text.pipeThrough(new TextEncoderStream()), response);
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

function served(model: ReturnType<typeof scripted>, output: typeof schema | ReturnType<typeof streamed> = schema) {
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

Deno.test("useObject finishes with an error if the run fails or its answer stays invalid", async () => {
  const failing = scripted({ text: '{"city":"Os', error: new Error("down") });
  const app = serve(agent({ model: failing, output: schema }), { wires: [aiSdkObject()], onError: () => {} });
  assertEquals(await submitted(app, "Where?"), { end: "invalid", pieces: ['{"city":"Os'] });
  const again = scripted('{"city":1}', '{"city":"Oslo","days":[]}');
  assertEquals((await submitted(served(again), "Where?")).end, "invalid");
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
