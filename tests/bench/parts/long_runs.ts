/**
 * The memory of a long run whose session is stored elsewhere, while its transcript is compacted again and again.
 *
 * @module
 */
import { agent, type Model, type Store, tool } from "@jizai/jizai";
import type { NumberedEvent, Sink } from "@jizai/jizai/engine";
import { durable } from "@jizai/jizai/session/durable";
import { compaction } from "@jizai/jizai/middleware/compaction";
import * as z from "zod";
import type { Measure } from "../kit/measure.ts";
import { usedHeap } from "../kit/stopwatch.ts";

const turns = 400;

/** Compares the heap at the last turn with that at turn 50. Each turn adds forty kilobytes, and compaction begins at eight hundred. */
export async function longRunMeasures(): Promise<readonly Measure[]> {
  const heaps = new Map<number, number>();
  const read = tool({
    name: "read",
    description: "Reads a page",
    input: z.object({ page: z.number() }),
    execute({ page }) {
      if (page === 50 || page === turns) heaps.set(page, usedHeap());
      return `${page} words. `.repeat(40_000 / 8).slice(0, 40_000);
    },
  });
  const summarize = () => Promise.resolve("They read page after page.");
  const reader = agent({ model: reading(), tools: [read], use: [compaction({ at: 200_000, summarize })] });
  const limits = { turns: turns + 1, calls: turns };
  await reader.start({ prompt: "Read.", session: "long", store: discarding, limits }, ignoring).result;
  return [{
    what: `heap of a run at turn ${turns}, compacted, of turn 50`,
    figure: (heaps.get(turns) ?? NaN) / (heaps.get(50) ?? NaN),
    atMost: 1.2,
    unit: "x",
  }];
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

/** A store that serializes sessions and keeps none. */
const discarding: Store = durable({
  head: () => Promise.resolve(undefined),
  open: () => Promise.resolve(undefined),
  entries: () => Promise.resolve([]),
  append(_, { change: { last, entries } = { last: 0, entries: [] } }) {
    JSON.stringify(entries);
    return Promise.resolve({ stored: true, last: last + entries.length });
  },
  post: () => Promise.resolve({ status: "over" }),
  read: () => Promise.resolve(undefined),
  watch: () => () => {},
  pending: () => Promise.resolve([]),
  list: () => Promise.resolve([]),
  trim: () => Promise.resolve(),
  sweep: () => Promise.resolve(0),
  delete: () => Promise.resolve(),
});

/** A sink that discards events. */
const ignoring: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };
