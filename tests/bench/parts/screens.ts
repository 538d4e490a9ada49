/**
 * The delay that a moderation guard adds to a streamed answer.
 *
 * @module
 */
import { agent, type Middleware, type ModelEvent } from "@jizai/jizai";
import { moderation } from "@jizai/jizai/middleware/moderation";
import { scripted } from "@jizai/jizai/model/scripted";
import type { Measure } from "../kit/measure.ts";
import { median } from "../kit/stopwatch.ts";

const latency = 50;
const window = 100;
const piece = "0123456789";
const pieces = 100;

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const moderator = { moderate: () => wait(latency).then(() => ({ flagged: false, categories: [] })) };

/** Times of one stream, in milliseconds: when its first window was full, when the first text was shown, and how long it took. */
interface Streamed {
  readonly full: number;
  readonly shown: number;
  readonly end: number;
}

/** Streams 100 deltas, one each 4 ms, with a guard of 50 ms and without. */
export async function screenMeasures(): Promise<readonly Measure[]> {
  const guard = moderation({ moderator, window, input: false });
  const guarded: Streamed[] = [];
  const plain: Streamed[] = [];
  for (let round = 0; round < 5; round++) {
    plain.push(await streamed([]));
    guarded.push(await streamed([guard]));
  }
  const total = (runs: readonly Streamed[]) => median(runs.map(({ end }) => end));
  return [
    {
      what: `a ${latency} ms guard, from the first full window to visible text`,
      figure: median(guarded.map(({ shown, full }) => shown - full)),
      atMost: 80,
      unit: "ms",
    },
    { what: "... added to the whole stream", figure: total(guarded) - total(plain), atMost: 80, unit: "ms" },
  ];
}

async function streamed(use: readonly Middleware[]): Promise<Streamed> {
  const start = performance.now();
  let full = 0;
  let shown = 0;
  function* reads(): Iterable<Promise<readonly ModelEvent[]>> {
    for (let index = 1; index <= pieces; index++) {
      yield wait(4).then(() => {
        if (index * piece.length === window) full = performance.now();
        return [{ type: "text", text: piece }];
      });
    }
    yield Promise.resolve([{ type: "finish", reason: "stop" }]);
  }
  const run = agent({ model: scripted({ reads: reads() }), use }).run("Hi");
  for await (const event of run.events) {
    if (event.type === "text.delta") shown ||= performance.now();
  }
  return { full, shown, end: performance.now() - start };
}
