/**
 * Schemas of zod/mini, and of the core of Zod, in place of those of Zod.
 */
import { agent, textOf, tool } from "@jizai/jizai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted } from "@jizai/jizai/model/scripted";
import { streamed } from "@jizai/jizai/output";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import * as core from "zod/v4/core";
import * as mini from "zod/mini";
import { eventsOfRun } from "../support/run_events.ts";
import { recordRequests } from "../support/providers/sse.ts";

const named = (input: z.core.$ZodType) => tool({ name: "work", description: "Works", input, execute: () => "Done." });

type Tree = { readonly name: string; readonly children?: Tree[] | undefined };
const tree: z.ZodType<Tree> = z.object({ name: z.string(), children: z.optional(z.array(z.lazy(() => tree))) });
const miniTree: mini.ZodMiniType<Tree> = mini.object({
  name: mini.string(),
  children: mini.optional(mini.array(mini.lazy(() => miniTree))),
});
const described = mini.string();
mini.globalRegistry.add(described, { title: "City", description: "The name of a city" });

/** Schemas of Zod, each with the same one of zod/mini. */
const pairs: readonly (readonly [z.core.$ZodType, z.core.$ZodType])[] = [
  [
    z.object({ a: z.string().min(2).max(9) }),
    mini.object({ a: mini.string().check(mini.minLength(2), mini.maxLength(9)) }),
  ],
  [z.strictObject({ a: z.email() }), mini.strictObject({ a: mini.email() })],
  [z.looseObject({ a: z.int().min(1) }), mini.looseObject({ a: mini.int().check(mini.gte(1)) })],
  [z.object({ a: z.number().optional() }), mini.object({ a: mini.optional(mini.number()) })],
  [z.object({ a: z.boolean().nullable() }), mini.object({ a: mini.nullable(mini.boolean()) })],
  [z.object({ a: z.string().default("x") }), mini.object({ a: mini._default(mini.string(), "x") })],
  [z.object({ a: z.string().prefault("x") }), mini.object({ a: mini.prefault(mini.string(), "x") })],
  [z.object({ a: z.string().catch("x") }), mini.object({ a: mini.catch(mini.string(), "x") })],
  [z.object({ a: z.array(z.enum(["x", "y"])) }), mini.object({ a: mini.array(mini.enum(["x", "y"])) })],
  [z.object({ a: z.literal(["x", 1]) }), mini.object({ a: mini.literal(["x", 1]) })],
  [z.object({ a: z.record(z.string(), z.number()) }), mini.object({ a: mini.record(mini.string(), mini.number()) })],
  [z.object({ a: z.tuple([z.string(), z.null()]) }), mini.object({ a: mini.tuple([mini.string(), mini.null()]) })],
  [
    z.discriminatedUnion("t", [z.object({ t: z.literal("x") }), z.object({ t: z.literal("y"), n: z.number() })]),
    mini.discriminatedUnion("t", [
      mini.object({ t: mini.literal("x") }),
      mini.object({ t: mini.literal("y"), n: mini.number() }),
    ]),
  ],
  [
    z.intersection(z.object({ a: z.string() }), z.object({ b: z.union([z.string(), z.number()]) })),
    mini.intersection(
      mini.object({ a: mini.string() }),
      mini.object({ b: mini.union([mini.string(), mini.number()]) }),
    ),
  ],
  [z.object({ a: z.iso.datetime() }), mini.object({ a: mini.iso.datetime() })],
  [
    z.object({ a: z.templateLiteral(["v", z.number()]) }),
    mini.object({ a: mini.templateLiteral(["v", mini.number()]) }),
  ],
  [
    z.object({ a: z.string().transform(Number) }),
    mini.object({ a: mini.pipe(mini.string(), mini.transform((text: string) => Number(text))) }),
  ],
  [
    z.object({ a: z.unknown(), b: z.never().optional() }),
    mini.object({ a: mini.unknown(), b: mini.optional(mini.never()) }),
  ],
  [
    z.readonly(z.object({ a: z.string().describe("The name of a city").meta({ title: "City" }) })),
    mini.readonly(mini.object({ a: described })),
  ],
  [tree, miniTree],
  [z.object({}).partial(), mini.object({})],
];

Deno.test("the model receives the same JSON Schema of a tool with zod/mini as with Zod", () => {
  for (const [whole, small] of pairs) assertEquals(named(small).definition.schema, named(whole).definition.schema);
  const city = new core.$ZodObject({ type: "object", shape: { city: new core.$ZodString({ type: "string" }) } });
  assertEquals(named(city).definition.schema, named(z.object({ city: z.string() })).definition.schema);
});

Deno.test("tool() and agent() reject schemas of zod/mini that JSON Schema cannot express, and say why", () => {
  const date = mini.object({ at: mini.date() });
  const reason = "Date cannot be represented in JSON Schema; expected types that JSON has";
  assertThrows(() => named(date), TypeError, `Cannot describe tool "work": ${reason}`);
  assertThrows(() => agent({ model: scripted(), output: date }), TypeError, `Cannot describe output: ${reason}`);
  const { version, vendor, validate } = mini.string()["~standard"];
  assertThrows(
    () =>
      tool({ name: "a", description: "", input: { "~standard": { version, vendor, validate } }, execute: () => "" }),
    TypeError,
    "its zod schema does not convert to JSON Schema; expected a Standard Schema that converts, such as one of Zod 4 or zod/mini",
  );
});

const trip = mini.object({
  to: mini.object({ city: mini.string(), zip: mini.optional(mini.string()) }),
  days: mini._default(mini.number(), 1),
});

Deno.test("a tool with zod/mini receives its parsed input, which is repaired, and the model reads the errors", async () => {
  const inputs: { to: { city: string; zip?: string | undefined }; days: number }[] = [];
  const plan = tool({
    name: "plan",
    description: "Plans",
    input: trip,
    execute: (input) => (inputs.push(input), "Done."),
  });
  const given = [{ to: { city: "Kyoto" } }, { to: '{"city":"Nara","zip":null}', days: 2 }, { to: {}, days: "2" }];
  const model = scripted({ calls: given.map((input) => ["plan", input] as const) }, "Done.");
  const { messages } = await agent({ model, tools: [plan] }).run("Go").result;
  assertEquals(inputs, [{ to: { city: "Kyoto" }, days: 1 }, { to: { city: "Nara" }, days: 2 }]);
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map((result) => [result.status, textOf(result)]).slice(2), [
    [
      "error",
      "The input of plan is not valid: to.city: Invalid input: expected string, received undefined; " +
      "days: Invalid input: expected number, received string",
    ],
  ]);
});

Deno.test("an output of zod/mini is sent as a strict schema, parsed, and requested again if it does not fit", async () => {
  const { sent, fetch } = recordRequests("");
  const output = mini.object({ city: mini.string(), degrees: mini.nullable(mini.number()) });
  await agent({ model: openaiResponses({ model: "m", fetch }), output }).run("Where?").result;
  assertEquals(sent[0]?.body.text.format, {
    type: "json_schema",
    name: "output",
    strict: true,
    schema: {
      type: "object",
      properties: { city: { type: "string" }, degrees: { anyOf: [{ type: "number" }, { type: "null" }] } },
      required: ["city", "degrees"],
      additionalProperties: false,
    },
  });
  const model = scripted('{"city":1}', '{"city":"Kyoto","degrees":null}');
  const { output: value } = await agent({ model, output }).run("Where?").result;
  const city: string | undefined = value?.city;
  assertEquals([city, value], ["Kyoto", { city: "Kyoto", degrees: null }]);
});

Deno.test("streamed() emits the partial values of an output of zod/mini", async () => {
  const model = scripted({ text: ['{"to":{"city":"Kyo', 'to"}}'] });
  const run = agent({ model, output: streamed(trip) }).run("Where?");
  const changes = (await eventsOfRun(run)).flatMap((event) => event.type === "output.delta" ? event.changes : []);
  assertEquals(changes, [
    { path: [], value: { to: { city: "Kyo" } } },
    { path: ["to", "city"], text: "to" },
  ]);
  assertEquals((await run.result).output, { to: { city: "Kyoto" }, days: 1 });
});
