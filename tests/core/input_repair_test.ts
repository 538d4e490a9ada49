/**
 * Repairs of inputs: JSON strings in place of nested values, and null in place of optional fields.
 */
import { agent, type Middleware, type Schema, textOf, tool } from "@jizai/jizai";
import { schemaOf } from "@jizai/jizai/kit";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { type Chance, seeded } from "../support/seeded.ts";

/** Calls a tool with an input. Returns the parsed input that it received, or the error that the model reads. */
async function received(schema: Schema, given: unknown, { repair, use = [] }: Setting = {}): Promise<unknown> {
  const inputs: unknown[] = [];
  const work = tool({
    name: "work",
    description: "Works",
    input: schema,
    ...(repair !== undefined && { repair }),
    execute: (input) => (inputs.push(input), "Done."),
  });
  const run = agent({ model: scripted({ calls: [["work", given]] }, "Done."), tools: [work], use }).run("Go");
  const { messages } = await run.result;
  const [result] = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return inputs.length > 0 ? inputs[0] : result && textOf(result);
}

interface Setting {
  readonly repair?: boolean;
  readonly use?: readonly Middleware[];
}

const place = z.object({ city: z.string(), zip: z.string().optional(), tags: z.array(z.string()).optional() });
const trip = z.object({ to: place, via: z.array(place).optional(), note: z.string().optional() });

Deno.test("a nested value in a JSON string, and null for an optional field, are repaired", async () => {
  const kyoto = { city: "Kyoto" };
  const repairs: readonly (readonly [given: unknown, expected: unknown])[] = [
    [{ to: JSON.stringify(kyoto) }, { to: kyoto }],
    [{ to: kyoto, via: JSON.stringify([kyoto]) }, { to: kyoto, via: [kyoto] }],
    [{ to: kyoto, via: [JSON.stringify(kyoto), kyoto] }, { to: kyoto, via: [kyoto, kyoto] }],
    [{ to: { city: "Kyoto", zip: null, tags: null }, note: null }, { to: kyoto }],
    [{ to: JSON.stringify({ city: "Kyoto", tags: '["a"]', zip: null }) }, { to: { city: "Kyoto", tags: ["a"] } }],
    [JSON.stringify(JSON.stringify({ to: JSON.stringify(kyoto) })), { to: kyoto }],
    [{ to: ` ${JSON.stringify(kyoto)}\n` }, { to: kyoto }],
  ];
  for (const [given, expected] of repairs) {
    assertEquals(await received(trip, given), expected);
    const checked = trip.refine(() => Promise.resolve(true)); // an asynchronous schema
    assertEquals(await received(checked, given), expected);
  }
});

Deno.test("an input that no repair makes fit is rejected as the model wrote it", async () => {
  const invalid = "The input of work is not valid: ";
  for (
    const [given, error] of [
      [{ to: "Kyoto" }, "to: Invalid input: expected object, received string"],
      [{ to: '{"city":1}' }, "to: Invalid input: expected object, received string"],
      [{ to: '{"city":"Kyoto"' }, "to: Invalid input: expected object, received string"],
      [{ to: null }, "to: Invalid input: expected object, received null"],
      [{ to: { city: null } }, "to.city: Invalid input: expected string, received null"],
      [{ to: { city: "Kyoto", tags: [null] } }, "to.tags.0: Invalid input: expected string, received null"],
      [{ to: { city: { a: 1 } } }, "to.city: Invalid input: expected string, received object"],
    ] as const
  ) {
    assertEquals(await received(trip, given), invalid + error);
  }
});

Deno.test("a value that fits is never changed, also beside one that is repaired", async () => {
  const schema = z.object({ text: z.string(), kept: z.string().nullable(), any: z.unknown(), to: place.optional() });
  const given = { text: '{"city":"Oslo"}', kept: null, any: '["a"]' };
  assertEquals(await received(schema, given), given);
  assertEquals(await received(schema, { ...given, to: '{"city":"Kyoto"}' }), { ...given, to: { city: "Kyoto" } });
  assertEquals(await received(schema, { ...given, to: null }), given);
  assertEquals(await received(z.string(), JSON.stringify("[1]")), "[1]"); // the script has texts as JSON
});

Deno.test("`repair: false` rejects an input that does not fit", async () => {
  const given = { to: '{"city":"Kyoto"}' };
  const error = "The input of work is not valid: to: Invalid input: expected object, received string";
  assertEquals(await received(trip, given, { repair: false }), error);
});

Deno.test("guards and hooks see the repaired input", async () => {
  const seen: unknown[] = [];
  const watch: Middleware = {
    tool(ctx, next) {
      seen.push(ctx.input);
      return next();
    },
    approval(ctx, next) {
      seen.push(ctx.input);
      return next();
    },
  };
  const given = { to: '{"city":"Kyoto"}', note: null };
  assertEquals(await received(trip, given, { use: [watch] }), { to: { city: "Kyoto" } });
  assertEquals(seen, [{ to: { city: "Kyoto" } }, { to: { city: "Kyoto" } }]);
  const denied = await received(trip, given, { use: [permissions({ deny: ["work"] })] });
  assertEquals(denied, "work is not permitted here.");
});

Deno.test("a schema that throws, and one without paths, change no input", async () => {
  const throws = schemaOf({ type: "object" }, () => {
    throw new Error("broken");
  });
  assertEquals(await received(throws, { a: null }), "The input of work could not be checked.");
  const pathless = schemaOf({ type: "object" }, () => ({ issues: [{ message: "no" }] }));
  assertEquals(await received(pathless, { a: null }), "The input of work is not valid: no");
  assertEquals(
    await received(pathless, JSON.stringify('{"__proto__":{"a":null}}')),
    "The input of work is not valid: no",
  );
});

Deno.test("tool() accepts `repair`, and keeps it in a variant", () => {
  const first = tool({ name: "a", description: "", input: trip, repair: false, execute: () => "" });
  assertEquals(tool({ ...first, name: "b" } as never).repair, false);
  assertThrows(() => tool({ name: "a", description: "", input: trip, repairs: false, execute: () => "" } as never));
});

/** A schema, a value that fits it, and the value as a model may write it. */
type Sample = readonly [schema: z.ZodType, fits: unknown, written: unknown];

/** Returns a random sample. Below an object, the model may write a JSON string in place of a value, and null in place of a missing field. */
function sample(chance: Chance, depth: number): Sample {
  const { below, one } = chance;
  const kind = depth === 0 ? below(4) : below(7);
  switch (kind) {
    case 0:
    case 1: {
      const text = one(["", "x", "{}", "[1]", '{"a":null}', "null", "{"]);
      return [z.string(), text, text];
    }
    case 2:
      return [z.number(), 7, 7];
    case 3:
      return [z.string().nullable(), null, null];
    case 4: {
      const items = Array.from({ length: below(3) }, () => written(sample(chance, 0), chance));
      const [schema = z.number()] = items.map(([schema]) => schema);
      const same = items.filter(([each]) => each === schema);
      return [z.array(schema), same.map(([, fits]) => fits), same.map(([, , written]) => written)];
    }
    default: {
      const fields = Array.from({ length: 1 + below(3) }, () => sample(chance, depth - 1));
      const shape: Record<string, z.ZodType> = {};
      const [fits, given]: Record<string, unknown>[] = [{}, {}];
      for (const [index, field] of fields.entries()) {
        const key = `f${index}`;
        const isOptional = below(2) === 0;
        const [schema, value, written_] = written(field, chance);
        shape[key] = isOptional ? schema.optional() : schema;
        const acceptsNull = schema.safeParse(null).success;
        if (isOptional && !acceptsNull && below(2) === 0) given![key] = null;
        else [fits![key], given![key]] = [value, written_];
      }
      return [z.object(shape), fits, given];
    }
  }
}

/** Writes a nested value as a JSON string, at times. */
function written([schema, fits, given]: Sample, { below }: Chance): Sample {
  const isNested = typeof fits === "object" && fits !== null;
  return isNested && below(2) === 0 ? [schema, fits, JSON.stringify(given)] : [schema, fits, given];
}

Deno.test("random inputs: a value that fits is never changed, and a repaired one is the value that was meant", async () => {
  for (let seed = 1; seed <= 400; seed++) {
    const chance = seeded(seed);
    const [schema, fits, given] = sample(chance, 3);
    const object = z.object({ value: schema });
    assertEquals(await received(object, { value: fits }), { value: fits }, `seed ${seed}`);
    assertEquals(await received(object, { value: given }), { value: fits }, `seed ${seed}: ${JSON.stringify(given)}`);
  }
});
