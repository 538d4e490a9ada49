import { openai } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import { deltaCache } from "../../src/model/provider.ts";
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
    const numbered = deltas.map((delta, index) => ({ id: "chatcmpl-1", n: index, choices: [{ index: 0, delta }] }));
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
