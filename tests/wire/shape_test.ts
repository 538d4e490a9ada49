import type { Json } from "@jizai/jizai";
import {
  array,
  boolean,
  count,
  invalid,
  json,
  jsonObject,
  lazy,
  object,
  oneOf,
  optional,
  type Shape,
  ShapeError,
  string,
  variant,
} from "@jizai/jizai/wire";
import { assertEquals, assertThrows } from "@std/assert";

interface Order {
  readonly id: string;
  readonly items: readonly { readonly name: string; readonly amount?: number }[];
  readonly express: boolean;
  readonly note?: Json;
}

const order: Shape<Order> = lazy(() =>
  object<Order>({
    id: string,
    items: array(object<Order["items"][number]>({ name: string, amount: optional(count) })),
    express: boolean,
    note: optional(json),
  })
);

Deno.test("a shape returns the fields that it names, and no other", () => {
  const value = {
    id: "1",
    items: [{ name: "ink", color: "blue" }, { name: "pen", amount: 2 }],
    express: true,
    more: 1,
  };
  assertEquals(order(value, ""), {
    id: "1",
    items: [{ name: "ink" }, { name: "pen", amount: 2 }],
    express: true,
  });
});

/** The message and the field of the error that a shape throws. */
function refusal(shape: Shape<unknown>, value: unknown): readonly [message: string, field: string | undefined] {
  const { message, field } = assertThrows(() => shape(value, ""), ShapeError);
  return [message, field];
}

Deno.test("a shape names the field that is wrong and the expected value", () => {
  const valid = { id: "1", items: [], express: true };
  assertEquals(
    [
      null,
      [],
      "order",
      { ...valid, id: 1 },
      { ...valid, items: {} },
      { ...valid, items: [{ name: "ink" }, {}] },
      { ...valid, items: [{ name: "ink", amount: -1 }] },
      { ...valid, items: [{ name: "ink", amount: 1.5 }] },
      { ...valid, express: "yes" },
    ].map((value) => refusal(order, value)),
    [
      ["Cannot read the body: expected an object", undefined],
      ["Cannot read the body: expected an object", undefined],
      ["Cannot read the body: expected an object", undefined],
      ["Cannot read id: expected a string", "id"],
      ["Cannot read items: expected an array", "items"],
      ["Cannot read items.1.name: expected a string", "items.1.name"],
      ["Cannot read items.0.amount: expected an integer of 0 or more", "items.0.amount"],
      ["Cannot read items.0.amount: expected an integer of 0 or more", "items.0.amount"],
      ["Cannot read express: expected true or false", "express"],
    ],
  );
});

type Pet =
  | { readonly kind: "cat"; readonly lives: number }
  | { readonly kind: "dog"; readonly name?: string };

Deno.test("variant() parses the variant that the field selects", () => {
  const pet: Shape<Pet> = variant("kind", { cat: { lives: count }, dog: { name: optional(string) } });
  assertEquals(pet({ kind: "cat", lives: 9, name: "Tama" }, ""), { kind: "cat", lives: 9 });
  assertEquals(pet({ kind: "dog" }, ""), { kind: "dog" });
  assertEquals(refusal(pet, { kind: "cat" }), ["Cannot read lives: expected an integer of 0 or more", "lives"]);
  for (const kind of ["bird", "constructor", "__proto__", 1, undefined]) {
    assertEquals(refusal(pet, { kind }), [`Cannot read kind: expected one of "cat", "dog"`, "kind"]);
  }
});

/** `levels` nested arrays. */
function nested(levels: number): Json {
  return JSON.parse("[".repeat(levels) + "]".repeat(levels));
}

Deno.test("json and jsonObject reject values that are nested more than 100 levels deep", () => {
  assertEquals(json(nested(100), ""), nested(100));
  assertEquals(jsonObject({ value: nested(99) }, ""), { value: nested(99) });
  for (const levels of [101, 5_000, 100_000]) {
    assertEquals(refusal(json, nested(levels)), [
      "Cannot read the body: expected at most 100 levels of nesting",
      undefined,
    ]);
    assertEquals(refusal(object({ meta: jsonObject }), { meta: { value: nested(levels) } }), [
      "Cannot read meta: expected at most 100 levels of nesting",
      "meta",
    ]);
  }
});

Deno.test("json rejects a missing value, and jsonObject everything but an object", () => {
  assertEquals([null, false, 0, ""].map((value) => json(value, "")), [null, false, 0, ""]);
  assertEquals(refusal(object({ value: json }), {}), ["Cannot read value: expected a value", "value"]);
  for (const value of [null, [], "x", 1, undefined]) {
    assertEquals(refusal(jsonObject, value), ["Cannot read the body: expected an object", undefined]);
  }
});

Deno.test("a wire author can write a shape", () => {
  const even: Shape<number> = (value, path) => {
    const parsed = count(value, path);
    if (parsed % 2 > 0) throw invalid(path, "an even number");
    return parsed;
  };
  assertEquals(array(even)([0, 2], "list"), [0, 2]);
  assertEquals(refusal(object({ list: array(even) }), { list: [0, 1] }), [
    "Cannot read list.1: expected an even number",
    "list.1",
  ]);
  assertEquals(oneOf("a", "b")("b", ""), "b");
});
