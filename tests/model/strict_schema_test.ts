import { assertEquals } from "@std/assert";
import * as z from "zod";
import { jsonSchemaOf, type Schema } from "../../src/core/tool.ts";
import { strictSchema } from "../../src/model/request.ts";

const of = (schema: Schema) => strictSchema(jsonSchemaOf(schema, "it"));

Deno.test("strictSchema() closes objects at every depth", () => {
  assertEquals(of(z.object({ a: z.string(), b: z.array(z.object({ c: z.number() })) })), {
    type: "object",
    properties: {
      a: { type: "string" },
      b: {
        type: "array",
        items: { type: "object", properties: { c: { type: "number" } }, required: ["c"], additionalProperties: false },
      },
    },
    required: ["a", "b"],
    additionalProperties: false,
  });
  assertEquals(of(z.object({})), { type: "object", properties: {}, required: [], additionalProperties: false });
});

Deno.test("strictSchema() drops keywords that only narrow and keeps descriptions", () => {
  assertEquals(of(z.int().min(1).describe("How many")), { description: "How many", type: "integer" });
  assertEquals(of(z.email().max(9)), { type: "string" });
});

Deno.test("strictSchema() converts enums, constants, unions and nullable values", () => {
  assertEquals(of(z.enum(["a", "b"])), { type: "string", enum: ["a", "b"] });
  assertEquals(of(z.literal(1)), { type: "number", const: 1 });
  assertEquals(
    strictSchema({ type: ["object", "null"], properties: {} }),
    { anyOf: [{ type: "object", properties: {}, required: [], additionalProperties: false }, { type: "null" }] },
  );
  assertEquals(of(z.string().nullable()), { anyOf: [{ type: "string" }, { type: "null" }] });
  assertEquals(
    of(z.discriminatedUnion("t", [z.object({ t: z.literal("a") }), z.object({ t: z.literal("b") })])),
    {
      anyOf: ["a", "b"].map((t) => ({
        type: "object",
        properties: { t: { type: "string", const: t } },
        required: ["t"],
        additionalProperties: false,
      })),
    },
  );
});

Deno.test("strictSchema() returns undefined if the conversion would change the schema", () => {
  const tree: z.core.$ZodType = z.object({ children: z.array(z.lazy(() => tree)) });
  const others = [
    z.object({ a: z.string().optional() }),
    z.record(z.string(), z.number()),
    z.looseObject({ a: z.string() }),
    z.tuple([z.string(), z.number()]),
    z.array(z.unknown()),
    z.union([z.string(), z.unknown()]),
    tree,
  ];
  assertEquals(others.map(of), others.map(() => undefined));
  const foreign = [true, null, [], { allOf: [{ type: "string" }] }, { type: "object", required: 1 }];
  assertEquals(foreign.map(strictSchema), foreign.map(() => undefined));
});
