/**
 * One run that goes on for long, in a session that is kept elsewhere, while its conversation is compacted again and again.
 *
 * @module
 */
import { agent, type Model, type NumberedEvent, type Sink, type Store, tool } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import * as z from "zod";
import { used } from "./crowd.ts";
import type { Measure } from "./measure.ts";

const turns = 400;

/** What the run holds at its end, beside what it holds at turn 50. Each turn adds forty kilobytes, and the transcript may have eight hundred. */
export async function longMeasure(): Promise<Measure> {
  const heaps = new Map<number, number>();
  const read = tool({
    name: "read",
    description: "Reads a page",
    input: z.object({ page: z.number() }),
    execute({ page }) {
      if (page === 50 || page === turns) heaps.set(page, used().heap);
      return `${page} words. `.repeat(40_000 / 8).slice(0, 40_000);
    },
  });
  const summarize = () => Promise.resolve("They read page after page.");
  const reader = agent({ model: reading(), tools: [read], use: [compaction({ at: 200_000, summarize })] });
  const limits = { turns: turns + 1, calls: turns };
  await reader.start({ prompt: "Read.", session: "long", store: elsewhere, limits }, nobody).result;
  return {
    what: `a run of ${turns} turns, compacted: heap beside turn 50`,
    figure: (heaps.get(turns) ?? NaN) / (heaps.get(50) ?? NaN),
    budget: 1.2,
    unit: "x",
  };
}

/** A model that reads one page in each turn. */
function reading(): Model {
  let page = 0;
  return {
    id: "reading",
    async *stream() {
      if (page++ === turns) return yield [{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }];
      const id = `call_${page}`;
      yield [
        { type: "call.start", id, name: "read" },
        { type: "call.end", id, input: { page } },
        { type: "finish", reason: "calls" },
      ];
    },
  };
}

/** Keeps sessions where they take no memory. */
const elsewhere: Store = {
  load: () => Promise.resolve(undefined),
  save(session) {
    JSON.stringify(session); // which is sent away
    return Promise.resolve(session.version + 1);
  },
  delete: () => Promise.resolve(),
  list: () => Promise.resolve([]),
};

const nobody: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };
