/**
 * Long conversations.
 *
 * @module
 */
import { type AnyTool, type CallPart, type Message, tool, user } from "@jizai/jizai";
import * as z from "zod";
import { seeded } from "./seeded.ts";
import { lines } from "./transcript_lines.ts";

/** About a hundred tokens. */
const long = "x".repeat(400);

/** Two questions and two answers, of a hundred tokens each. */
export const history: readonly Message[] = [
  user(`First ${long}`),
  { role: "assistant", parts: [{ type: "text", text: `One ${long}` }] },
  user(`Second ${long}`),
  { role: "assistant", parts: [{ type: "text", text: `Two ${long}` }] },
];

/** A tool whose results have fifty tokens. */
export const look: AnyTool = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Seen ${at} ${"x".repeat(200)}`,
});

/** Returns lines of a transcript, without long texts. */
export function short(messages: readonly Message[]): string[] {
  return lines(messages).map((line) => line.replace(/ ?x+$/, ""));
}

/** Returns a random valid transcript: messages of the person, of hooks and of the model, with calls. */
export function someTranscript(seed: number): Message[] {
  const chance = seeded(seed);
  let calls = 0;
  const words = () => "word ".repeat(1 + chance.below(60));
  const call = (): CallPart => ({ type: "call", id: `c${++calls}`, name: "look", input: { at: words() } });
  return Array.from({ length: chance.below(40) }, (): Message[] => {
    switch (chance.below(5)) {
      case 0:
        return [user(words())];
      case 1:
        return [user(words(), chance.one(["stop", "context", "prompt", "compaction"]))];
      case 2:
        return [{ role: "assistant", parts: [{ type: "text", text: words() }] }];
      default: {
        const parts = Array.from({ length: 1 + chance.below(4) }, call);
        const results = parts.map(({ id, name }) => {
          return { callId: id, name, status: "ok" as const, parts: [{ type: "text" as const, text: words() }] };
        });
        return [{ role: "assistant", parts }, { role: "tool", results }];
      }
    }
  }).flat();
}
