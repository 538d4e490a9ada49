/**
 * Streams of 200 deltas: of the floor, of a run without HTTP, and of a served agent.
 *
 * @module
 */
import { count, deltas, drain, floor } from "./floor.ts";

/** The code that streams. */
export const streamers = ["floor", "run", "served"] as const;

/** Returns the streamer of that name. */
export function streamerOf(name: string | undefined): typeof streamers[number] {
  const streamer = streamers.find((streamer) => streamer === name);
  if (!streamer) throw new TypeError(`Cannot stream: expected ${streamers.join(", ")}, got "${name}"`);
  return streamer;
}

/** Returns a case that reads one stream to its end. The model awaits `between` before each delta. */
export async function streamOf(
  streamer: typeof streamers[number],
  between: () => Promise<void>,
): Promise<() => Promise<unknown>> {
  if (streamer === "floor") return () => drain(floor(deltas(count, between)));
  // The floor does not import agents, since imports change the garbage collection of a program.
  const { ran, served, streaming } = await import("./load.ts");
  const model = streaming(count, { between });
  return streamer === "run" ? ran(model) : served(model);
}
