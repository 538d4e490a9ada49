import { agent, type Event, type Middleware, rewrite, serve, tool, tryAgain, windowed } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { type OutputChange, PartialOutput, streamed } from "@jizai/jizai/output";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { eventsOfRun } from "../support/run_events.ts";

const schema = z.object({ city: z.string(), days: z.array(z.object({ sunny: z.boolean(), degrees: z.number() })) });
const kyoto = { city: "Kyoto", days: [{ sunny: true, degrees: -21.5e0 }, { sunny: false, degrees: 3 }] };
const output = streamed(schema);

type OutputDelta = Extract<Event, { readonly type: "output.delta" }>;

const deltasOf = (events: readonly Event[]) =>
  events.filter((event): event is OutputDelta => event.type === "output.delta");

/** Returns the changes of an agent that writes these texts. */
async function changesOf(...texts: readonly string[]): Promise<readonly (readonly OutputChange[])[]> {
  const run = agent({ model: scripted({ text: texts }), output: streamed(z.unknown()), limits: { outputs: 0 } }).run(
    "Go",
  );
  return deltasOf(await eventsOfRun(run)).map(({ changes }) => changes);
}

function folded(changes: readonly (readonly OutputChange[])[]): unknown {
  const partial = new PartialOutput();
  for (const each of changes) partial.add(each);
  return partial.value;
}

Deno.test("streamed() emits the changes of the partial value after the text that has them", async () => {
  const run = agent({
    model: scripted({ text: ['{"city":"Kyo', 'to","days":[', '{"sunny":tr', 'ue,"degrees":2', "1}]}"] }),
    output,
  })
    .run("Where?");
  const events = await eventsOfRun(run);
  const from = events.findIndex(({ type }) => type === "text.delta");
  const shown = events.slice(from, -3).map((event) => event.type === "output.delta" ? event.changes : event.type);
  assertEquals(shown, [
    "text.delta",
    [{ path: [], value: { city: "Kyo" } }],
    "text.delta",
    [{ path: ["city"], text: "to" }, { path: ["days"], value: [] }],
    "text.delta",
    [{ path: ["days", 0], value: {} }],
    "text.delta",
    [{ path: ["days", 0, "sunny"], value: true }],
    "text.delta",
    [{ path: ["days", 0, "degrees"], value: 21 }],
    "model.finished",
  ]);
});

Deno.test("run.output iterates over partial values, and the last one is the whole answer", async () => {
  const barrier = Promise.withResolvers<void>();
  const run = agent({
    model: scripted({
      reads: [
        [{ type: "text", text: '{"city":"Kyo' }],
        barrier.promise.then(() => [{ type: "text", text: 'to","days":[]}' }]),
        [{ type: "finish", reason: "stop" }],
      ],
    }),
    output,
  }).run("Where?");
  const seen: unknown[] = [];
  for await (const partial of run.output) {
    const city: string | undefined = partial.city;
    seen.push([city, partial]);
    barrier.resolve();
  }
  assertEquals(seen, [["Kyo", { city: "Kyo" }], ["Kyoto", { city: "Kyoto", days: [] }]]);
  assertEquals((await run.result).output, { city: "Kyoto", days: [] });
});

Deno.test("run.output gives each reader the newest value, also after the run", async () => {
  const run = agent({ model: scripted(JSON.stringify(kyoto)), output }).run("Where?");
  await run.result;
  for (let reader = 0; reader < 2; reader++) {
    assertEquals(await Array.fromAsync(run.output), [kyoto]);
  }
});

Deno.test("run.output throws for an agent without streamed()", () => {
  const run = agent({ model: scripted("Hi") }).run("Hi");
  assertThrows(() => run.output, TypeError, "expected `output: streamed(schema)`");
});

Deno.test("a partial value that was read does not change later", () => {
  const partial = new PartialOutput();
  partial.add([{ path: [], value: { a: [{ b: "" }], c: {} } }]);
  const first = partial.value;
  partial.add([{ path: ["a", 0, "b"], text: "x" }, { path: ["a", 1], value: 2 }]);
  partial.add([{ path: ["a", 0, "b"], text: "y" }]);
  assertEquals(first, { a: [{ b: "" }], c: {} });
  assertEquals(partial.value, { a: [{ b: "xy" }, 2], c: {} });
  assertThrows(() => partial.add([{ path: ["a", 1, "z"], value: 1 }]), TypeError, "expected an object or an array");
});

const values = [
  kyoto,
  [],
  {},
  [[], [[]], {}, { a: {} }],
  'a \\ "quoted" \u0000 \ud83d\ude00 text\n',
  { 'ke"y': { "\ud83d\ude00": null }, "": [true, false, null, -0.5, 1e21, 0] },
  JSON.parse('{"__proto__":{"polluted":true},"a":{"__proto__":"x"}}'),
];
const whole = values.flatMap((value) => [JSON.stringify(value), JSON.stringify(value, null, 2)]);
const escaped = [
  '{"a":"\\u0041\\ud83d\\ude00\\/\\b\\f","\\u006bey":"\\uD83D\\uDE00"}',
  '"lone \\ud83d and \\ude00 x"',
  '"\\ud83dxxxxxxxxxxxx"',
];

Deno.test("partial values fold to the whole value, however the text is split", async () => {
  for (const json of [...whole, ...escaped]) {
    for (const size of [1, 2, 3, 7, json.length]) {
      const pieces = Array.from(
        { length: Math.ceil(json.length / size) },
        (_, at) => json.slice(at * size, (at + 1) * size),
      );
      assertEquals([json, size, folded(await changesOf(...pieces))], [json, size, JSON.parse(json)]);
    }
  }
  assertEquals(Reflect.get({}, "polluted"), undefined);
});

Deno.test("an answer in a fenced code block is streamed", async () => {
  assertEquals(folded(await changesOf("``", '`json\n{"a":', "1}\n`", "``")), { a: 1 });
});

Deno.test("a text that is not JSON has no changes from the first wrong character on", async () => {
  const texts: readonly (readonly [text: string, value: unknown])[] = [
    ["Hello", undefined],
    ["{a:1}", {}],
    ['{"a" 1}', {}],
    ["[1 2]", [1]],
    ["]", undefined],
    ["{]", {}],
    ["[tru3]", []],
    ["[01]", []],
    ['["\\uXXXX"]', []],
    ["", undefined],
  ];
  for (const [text, value] of texts) {
    assertEquals([text, folded(await changesOf(text, ' and {"b":2}'))], [text, value]);
  }
});

Deno.test("text before a call is not part of the answer, and another turn begins a new value", async () => {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Sun." });
  const model = scripted({ text: "I will look.", calls: [["look", {}]] }, '{"city":1}', JSON.stringify(kyoto));
  const run = agent({ model, tools: [look], output }).run("Where?");
  const deltas = deltasOf(await eventsOfRun(run));
  assertEquals(deltas.map(({ turn, changes }) => [turn, changes]), [
    [2, [{ path: [], value: { city: 1 } }]],
    [3, [{ path: [], value: kyoto }]],
  ]);
});

Deno.test("a failed attempt is replaced by the next one", async () => {
  const broken: ScriptedAnswer = { text: '{"city":"Os', error: new Error("cut") };
  const again: Middleware = { name: "again", error: () => Promise.resolve(tryAgain()) };
  const run = agent({ model: scripted(broken, JSON.stringify(kyoto)), use: [again], output }).run("Where?");
  assertEquals(folded(deltasOf(await eventsOfRun(run)).map(({ changes }) => changes)), kyoto);
});

Deno.test("the partial value contains the text as hooks have rewritten it", async () => {
  const mask = { name: "mask", model: rewrite({ text: windowed(6, (text) => text.replaceAll("secret", "[hidden]")) }) };
  const answers = {
    name: "answers",
    async model(ctx, next) {
      const response = await next();
      return ctx.turn === 1 ? { ...response, parts: [{ type: "text", text: '{"city":"Nara","days":[]}' }] } : response;
    },
  } satisfies Middleware;
  const text = ['{"city":"sec', 'ret"', ',"days":[]}'];
  for (const [use, city] of [[[mask], "[hidden]"], [[answers], "Nara"]] as const) {
    const run = agent({ model: scripted({ text }), use, output }).run("Where?");
    assertEquals(folded(deltasOf(await eventsOfRun(run)).map(({ changes }) => changes)), { city, days: [] });
  }
});

Deno.test("a served agent sends the changes", async () => {
  const app = serve(agent({ model: scripted(JSON.stringify(kyoto)), output }));
  const response = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Where?" }),
  });
  const frames = (await response.text()).split("\n").filter((line) => line.includes('"output.delta"'));
  assertEquals(frames.map((frame) => JSON.parse(frame.slice("data:".length))), [
    { type: "output.delta", turn: 1, changes: [{ path: [], value: kyoto }] },
  ]);
});
