import type { ModelEvent } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { wholeCharacters } from "../../src/model/response.ts";

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
