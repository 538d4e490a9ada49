import { type Message, user } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { estimateTokens, tokenMeter } from "../../../src/core/lib/text.ts";

/** A tool message whose result has these parts. */
function result(...parts: Extract<Message, { role: "user" }>["parts"]): Message {
  return { role: "tool", results: [{ callId: "a", name: "look", status: "ok", parts }] };
}

Deno.test("an estimate counts bytes, so texts in every script are estimated well", () => {
  const tokens = (text: string) => estimateTokens([user(text)]) - estimateTokens([user("")]);
  assertEquals(tokens("word".repeat(100)), 100);
  assertEquals(tokens("слово".repeat(100)), 250);
  assertEquals(tokens("自在鉤".repeat(100)), 225);
  assertEquals(tokens("🔥".repeat(100)), 100);
});

Deno.test("an estimate counts all that a model reads: reasoning, calls and results", () => {
  const long = "x".repeat(4_000);
  const messages: readonly Message[] = [
    user(long),
    { role: "assistant", parts: [{ type: "text", text: long }] },
    { role: "assistant", parts: [{ type: "reasoning", text: long }] },
    { role: "assistant", parts: [{ type: "call", id: "a", name: "look", input: { at: long } }] },
    result({ type: "text", text: long }),
  ];
  for (const message of messages) assert(Math.abs(estimateTokens([message]) - 1_010) < 20, message.role);
  assertEquals(estimateTokens([]), 0);
});

Deno.test("an image or a file counts the same, whatever its size", () => {
  const tokens = (data: string) => estimateTokens([result({ type: "media", mediaType: "image/png", data })]);
  assertEquals([tokens("A".repeat(4)), tokens("A".repeat(4_000_000))], [1_607, 1_607]);
});

Deno.test("a meter estimates a transcript that grows, that is replaced, and that shrinks", () => {
  const texts = ["one", "two".repeat(100), "three", "слово"].map((text) => user(text));
  const transcripts = [
    texts.slice(0, 1),
    texts.slice(0, 3),
    texts,
    [user("summary"), ...texts.slice(2)],
    texts.slice(1),
  ];
  const measure = tokenMeter();
  assertEquals(transcripts.map(measure), transcripts.map(estimateTokens));
});
