import { ModelError, type ModelEvent } from "@jizai/jizai";
import type { ModelErrorOptions } from "@jizai/jizai/engine";
import { openai } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { jsonSchemaOf, type Schema } from "../../src/core/agent/schema.ts";
import { deltaCache } from "../../src/model/delta_cache.ts";
import { strictSchema } from "../../src/model/strict_schema.ts";
import { wholeCharacters } from "../../src/model/whole_characters.ts";
import { chatStream } from "../support/providers/openai.ts";
import { readAll, respond, sse } from "../support/providers/sse.ts";
import { seeded } from "../support/seeded.ts";

/** Returns the matches of frames after the cache learned `first`, whose text is `text`. */
function matchesAfter(first: string, text: string, ...frames: readonly string[]) {
  const { match, learn } = deltaCache();
  learn(first, [{ type: "text", text }]);
  return frames.map((frame) => match(frame));
}

Deno.test("deltaCache() matches a frame that differs only in its text, in any JSON spelling", () => {
  const texts = [" more", "a\nb", 'say "it"', "\\", "鉤 \u{1fa9d}", "\ud800"];
  const written = [...texts.map((text) => JSON.stringify(text)), String.raw`"\u9264\/"`];
  assertEquals(
    matchesAfter('{"n":1,"text":"So"}', "So", ...written.map((text) => `{"n":1,"text":${text}}`)),
    [...texts, "鉤/"].map((text) => ({ type: "text", text })),
  );
});

Deno.test("deltaCache() does not match a frame that differs in anything else", () => {
  const others = [
    '{"n":2,"text":"So"}',
    '{"n":1,"text":""}',
    '{"n":1,"text":null}',
    '{"n":1,"text":["So"]}',
    '{"n":1,"text":"So","text":"What"}',
    '{"n":1,"text":"So"',
    '{"n":1,"text":}',
    '"text":"So"}',
    "[DONE]",
    "",
  ];
  assertEquals(matchesAfter('{"n":1,"text":"So"}', "So", ...others), others.map(() => undefined));
});

Deno.test("deltaCache() learns no frame whose text is ambiguous, and none with several events", () => {
  const { match, learn } = deltaCache();
  const frame = '{"text":"text","path":"/","a":"b"}';
  for (const text of ["text", "/", "missing", ""]) {
    learn(frame, [{ type: "text", text }]);
    assertEquals(match(frame), undefined);
  }
  learn(frame, [{ type: "text", text: "b" }, { type: "text", text: "c" }]);
  assertEquals(match(frame), undefined);
  learn(frame, [{ type: "call.delta", id: "a", text: "b" }]);
  assertEquals(match(frame), undefined);
  learn(frame, [{ type: "text", text: "b" }]);
  assertEquals(match(frame), { type: "text", text: "b" });
  learn(frame, []);
  assertEquals(match(frame), undefined);
});

Deno.test("a response parses to the same events with and without cache hits", async () => {
  const texts = [
    "a",
    " word",
    "content",
    "",
    '"',
    "\n",
    "鉤",
    "stop",
    "gpt-5",
    "0",
    "reasoning",
    "{}",
    "\\u0041",
  ] as const;
  for (let seed = 0; seed < 200; seed++) {
    const { one } = seeded(seed);
    const deltas = Array.from({ length: 40 }, () => {
      return { [one(["content", "content", "reasoning_content"])]: one(texts) };
    });
    const eventsOf = async (stream: string) => (await readAll(openai({ model: "m", fetch: respond(stream) }))).flat();
    const numbered = deltas.map((delta, index) => ({ id: index, choices: [{ index: 0, delta }] }));
    const other = sse([...numbered, { choices: [{ delta: {}, finish_reason: "stop" }] }]);
    assertEquals(await eventsOf(chatStream(...deltas, "stop")), await eventsOf(other));
  }
});

Deno.test("deltaCache() stops learning frames that never match, and continues while some do", () => {
  const text = (text: string) => [{ type: "text", text } as const];
  const numbered = deltaCache();
  const repeated = deltaCache();
  for (let index = 0; index < 100; index++) {
    numbered.learn(`{"text":"So","n":${index}}`, text("So"));
    repeated.learn('{"text":"So","n":1}', text("So"));
    repeated.match('{"text":"more","n":1}');
  }
  assertEquals([numbered.isLearning(), numbered.match('{"text":"So","n":99}')], [false, undefined]);
  assertEquals([repeated.isLearning(), repeated.match('{"text":"more","n":1}')], [true, {
    type: "text",
    text: "more",
  }]);
});

const finish: ModelEvent = { type: "finish", reason: "stop" };

function text(text: string): ModelEvent {
  return { type: "text", text };
}

/** Returns the events after each read. */
function joined(...reads: readonly (readonly ModelEvent[])[]) {
  return reads.map(wholeCharacters());
}

Deno.test("wholeCharacters() returns events with whole characters unchanged", () => {
  const events = [text("自在\u{1fa9d}"), finish];
  assertEquals(joined(events)[0] === events, true);
});

Deno.test("wholeCharacters() joins a character that is split between deltas or reads", () => {
  const half = "\u{1fa9d}"[0]!, rest = "\u{1fa9d}"[1]!;
  assertEquals(joined([text(`a${half}`), text(`${rest}b`), finish]), [[text("a"), text("\u{1fa9d}b"), finish]]);
  assertEquals(joined([text(half)], [text(rest)], [finish]), [[], [text("\u{1fa9d}")], [finish]]);
  const delta = (id: string, text: string): ModelEvent => ({ type: "call.delta", id, text });
  assertEquals(joined([delta("a", half), delta("a", rest)]), [[delta("a", "\u{1fa9d}")]]);
});

Deno.test("wholeCharacters() replaces a half that stays alone", () => {
  const half = "\u{1fa9d}"[0]!, rest = "\u{1fa9d}"[1]!;
  const replaced = text("\ufffd");
  assertEquals(joined([text(half), finish]), [[replaced, finish]]);
  assertEquals(joined([text(rest), text(`${half}${half}`), text("a")]), [[replaced, replaced, text("\ufffda")]]);
  const reasoning: ModelEvent = { type: "reasoning", text: half, meta: 1 };
  assertEquals(joined([reasoning, text(rest)]), [[{ ...reasoning, text: "\ufffd" }, replaced]]);
  const delta = (id: string, text: string): ModelEvent => ({ type: "call.delta", id, text });
  assertEquals(joined([delta("a", half), delta("b", rest)]), [[delta("a", "\ufffd"), delta("b", "\ufffd")]]);
});

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

Deno.test("ModelError derives its code from the other options unless it is given", () => {
  const codes: readonly (readonly [ModelErrorOptions, ModelError["code"]])[] = [
    [{}, "internal"],
    [{ status: 400 }, "internal"],
    [{ status: 401 }, "unauthorized"],
    [{ status: 403 }, "unauthorized"],
    [{ status: 429, recoverable: true }, "rate_limited"],
    [{ status: 503, recoverable: true }, "overloaded"],
    [{ status: 529 }, "overloaded"],
    [{ status: 500 }, "unavailable"],
    [{ recoverable: true }, "unavailable"],
    [{ status: 413, overflow: true }, "context"],
    [{ status: 429, code: "unavailable" }, "unavailable"],
  ];
  for (const [options, code] of codes) assertEquals(new ModelError("No.", options).code, code);
});

Deno.test("instanceof recognizes a ModelError of another copy of the package, and nothing else", async () => {
  const copy: { readonly ModelError: typeof ModelError } = await import(
    new URL("../../src/model/model.ts?copy", import.meta.url).href
  );
  class Mine extends ModelError {}
  const foreign = new copy.ModelError("No.");
  assertEquals(copy.ModelError === ModelError, false);
  assertEquals([foreign instanceof ModelError, new Mine("No.") instanceof copy.ModelError], [true, true]);
  assertEquals([foreign instanceof Mine, new ModelError("No.") instanceof Mine, new Mine("No.") instanceof Mine], [
    false,
    false,
    true,
  ]);
  const others: readonly unknown[] = [null, undefined, "ModelError", new Error("No."), { name: "ModelError" }];
  assertEquals(others.filter((value) => value instanceof ModelError), []);
});
