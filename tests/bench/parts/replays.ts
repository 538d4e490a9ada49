/**
 * The time that 1,000 recorded runs take to replay.
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { compare, readRecording, recordable, rerun, writeRecording } from "@jizai/jizai/replay";
import * as z from "zod";
import type { Measure } from "../kit/measure.ts";

const runs = 1_000;

const lookUp = tool({
  name: "look_up",
  description: "Looks something up",
  input: z.object({ word: z.string() }),
  execute: ({ word }, { progress }) => {
    progress(word);
    return `About ${word}`;
  },
});

/** Replays and compares runs of three turns with four calls and 200 deltas. */
export async function replayMeasures(): Promise<readonly Measure[]> {
  const calls = ["a", "b"].map((word) => ["look_up", { word }] as const);
  const text = Array.from({ length: 200 }, (_, index) => `word ${index} `);
  const assistant = recordable(agent({ model: scripted({ calls }, { calls }, { text }), tools: [lookUp] }));
  const recorded = await assistant.run({ prompt: "Go", record: true }).recording;
  if (!recorded) throw new Error("Cannot measure: expected a recording");
  const file = await writeRecording(recorded);
  return [
    { what: `${runs} recorded runs replayed`, figure: await milliseconds(rerun), atMost: 5_000, unit: "ms" },
    { what: `${runs} recorded runs compared`, figure: await milliseconds(compare), atMost: 5_000, unit: "ms" },
  ];

  async function milliseconds(replay: typeof rerun | typeof compare): Promise<number> {
    const start = performance.now();
    for (let count = 0; count < runs; count++) await replay(await readRecording(file), assistant);
    return performance.now() - start;
  }
}
