import { openai } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import { alike } from "../../src/model/alike.ts";
import { seeded } from "../support/seeded.ts";
import { answering, chunks, frames, reads } from "../support/wires.ts";

/** What is heard of frames, after the first of them was parsed and said `text`. */
function after(first: string, text: string, ...frames: readonly string[]) {
  const { hear, learn } = alike();
  learn(first, [{ type: "text", text }]);
  return frames.map((frame) => hear(frame));
}

Deno.test("alike() hears what differs in its text alone, however that is written", () => {
  const texts = [" more", "a\nb", 'say "it"', "\\", "鉤 \u{1fa9d}", "\ud800"];
  const written = [...texts.map((text) => JSON.stringify(text)), String.raw`"\u9264\/"`];
  assertEquals(
    after('{"n":1,"text":"So"}', "So", ...written.map((text) => `{"n":1,"text":${text}}`)),
    [...texts, "鉤/"].map((text) => ({ type: "text", text })),
  );
});

Deno.test("alike() hears nothing in what differs in more, or in something else", () => {
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
  assertEquals(after('{"n":1,"text":"So"}', "So", ...others), others.map(() => undefined));
});

Deno.test("alike() learns nothing where the text might stand elsewhere, or where more was said", () => {
  const { hear, learn } = alike();
  const frame = '{"text":"text","path":"/","a":"b"}';
  for (const text of ["text", "/", "missing", ""]) {
    learn(frame, [{ type: "text", text }]);
    assertEquals(hear(frame), undefined);
  }
  learn(frame, [{ type: "text", text: "b" }, { type: "text", text: "c" }]);
  assertEquals(hear(frame), undefined);
  learn(frame, [{ type: "call.delta", id: "a", text: "b" }]);
  assertEquals(hear(frame), undefined);
  learn(frame, [{ type: "text", text: "b" }]);
  assertEquals(hear(frame), { type: "text", text: "b" });
  learn(frame, []);
  assertEquals(hear(frame), undefined);
});

Deno.test("a model hears the same of frames that are alike and of frames that are not", async () => {
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
    const heard = async (stream: string) => (await reads(openai({ model: "m", fetch: answering(stream) }))).flat();
    const numbered = deltas.map((delta, index) => ({ id: index, choices: [{ index: 0, delta }] }));
    const other = frames([...numbered, { choices: [{ delta: {}, finish_reason: "stop" }] }]);
    assertEquals(await heard(chunks(...deltas, "stop")), await heard(other));
  }
});
