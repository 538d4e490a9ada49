/**
 * Entries of sessions: the transcripts and the history that they make, compared with plain lists.
 */
import { type Message, user } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import {
  changeTo,
  emptyTranscript,
  type Entry,
  historyOf,
  type StoredTranscript,
  transcriptOf,
} from "../../src/core/entries.ts";
import type { NumberedJournalEntry } from "../../src/core/journal.ts";
import { seeded, seeds, withSeed } from "../support/seeded.ts";

/** A session as a store keeps it. */
class Stored {
  readonly entries: NumberedJournalEntry[] = [];
  transcript: StoredTranscript = emptyTranscript;

  save(messages: readonly Message[], isCompaction = false): readonly Entry[] {
    const { entries, stored } = changeTo(messages, this.transcript, isCompaction);
    for (const entry of entries) this.entries.push([this.entries.length + 1, entry]);
    assertEquals(stored.last, this.entries.length);
    this.transcript = stored;
    const read = this.entries.filter(([number]) => number >= stored.base);
    assertEquals(transcriptOf(read), { messages, numbers: stored.numbers });
    return entries;
  }

  /** The texts of the history. */
  get history(): readonly string[] {
    return historyOf(this.entries).map(([, { role, ...rest }]) => "parts" in rest ? JSON.stringify(rest.parts) : role);
  }
}

const text = (message: Message) => "parts" in message ? JSON.stringify(message.parts) : message.role;

Deno.test("a longer transcript adds its new messages, and a shorter one adds a cut", () => {
  const stored = new Stored();
  const [a, b, c, d] = ["a", "b", "c", "d"].map((each) => user(each)) as [Message, Message, Message, Message];
  assertEquals(stored.save([a, b]).map(({ type }) => type), ["message", "message"]);
  assertEquals(stored.save([a, b]), []);
  assertEquals(stored.save(structuredClone([a, b, c])), [{ type: "message", message: c }]);
  assertEquals(stored.save([a, d]), [{ type: "back", to: 1 }, { type: "message", message: d }]);
  assertEquals(stored.save([]), [{ type: "back", to: 0 }]);
  assertEquals(stored.history, []);
});

Deno.test("a compaction begins a base, and the history keeps the messages from before it once", () => {
  const stored = new Stored();
  const all = ["a", "b", "c", "d"].map((each) => user(each));
  stored.save(all);
  const compacted = [user("summary"), ...all.slice(2)];
  assertEquals(stored.save(compacted, true)[0], { type: "base", count: 3, same: 0, kept: 2 });
  stored.save([...compacted, user("e")]);
  assertEquals(stored.history, ["a", "b", "summary", "c", "d", "e"].map((each) => text(user(each))));
});

Deno.test("a rollback of a run that has compacted returns to the entries from before the base", () => {
  const stored = new Stored();
  const all = Array.from({ length: 40 }, (_, index) => user(`${index}`));
  stored.save(all);
  stored.save([...all, user("prompt")]);
  stored.save([user("summary"), user("prompt")], true);
  stored.save([user("another summary"), user("prompt")], true);
  assertEquals(stored.save(all), [{ type: "back", to: 40 }]);
  assertEquals(stored.history, all.map(text));
  assertEquals(stored.transcript.base, 1);
});

Deno.test("entries make each transcript that was saved, and the history without what was cut", async () => {
  for (const seed of seeds(300)) {
    await withSeed(seed, () => {
      const chance = seeded(seed);
      const stored = new Stored();
      let messages: readonly Message[] = [];
      let history: readonly Message[] = [];
      for (let step = 0; step < 40; step++) {
        const added = Array.from({ length: chance.below(4) }, (_, index) => user(`${step}.${index}`));
        const action = chance.below(8);
        if (action === 0 && messages.length > 0) { // a rollback or a regenerated answer
          const keep = messages.slice(0, chance.below(messages.length + 1));
          const gone = new Set(messages.slice(keep.length));
          history = [...history.filter((message) => !gone.has(message)), ...added];
          messages = [...keep, ...added];
          stored.save(messages);
        } else if (action === 1) { // a compaction
          const kept = messages.slice(chance.below(messages.length + 1));
          const summary = user(`summary ${step}`);
          history = [...history.filter((message) => !kept.includes(message)), summary, ...kept];
          messages = [summary, ...kept];
          stored.save(messages, true);
        } else {
          messages = [...messages, ...added];
          history = [...history, ...added];
          stored.save(chance.below(4) === 0 ? structuredClone(messages) : messages);
        }
        assertEquals(stored.history, history.map(text));
        const { base, last } = stored.transcript;
        assertEquals(last - base <= 4 * messages.length + 60, true);
      }
      return Promise.resolve();
    });
  }
});
