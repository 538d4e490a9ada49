/**
 * The cost of streamed structured output, relative to parsing the complete JSON once.
 *
 * @module
 */
import { streamed } from "@jizai/jizai/output";
import * as z from "zod";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const sentence =
  "The forecast for this afternoon says that the sky clears, the wind turns to the north and it stays cold. ";
const object = {
  items: Array.from({ length: 150 }, (_, id) => ({
    id,
    title: `Report number ${id}`,
    tags: ["weather", "kyoto"],
    text: sentence.repeat(1 + id % 10),
    sunny: id % 2 === 0,
  })),
};
const json = JSON.stringify(object);

/** Parses an object of about 100 KB while it arrives in pieces of 64 characters, as one network read brings them. */
export async function outputMeasures(): Promise<readonly Measure[]> {
  const pieces = json.match(/[^]{1,64}/g) ?? [];
  const events = pieces.map((text) => ({ type: "text.delta", turn: 1, part: 0, text }) as const);
  const stream = streamed(z.unknown())["~stream"];
  let last: unknown;
  const time = await medians({
    async whole() {
      last = await JSON.parse(json);
    },
    async streamed() {
      const derive = stream.derive();
      for (const event of events) last = derive(event) ?? last;
      await last;
    },
  }, { rounds: 200, warmUp: 50 });
  const size = Math.round(json.length / 1_024);
  return [{
    what: `output.delta over ${size} KB, of one JSON.parse`,
    figure: time.streamed / time.whole,
    atMost: 3,
    unit: "x",
  }];
}
