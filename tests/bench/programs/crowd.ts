/**
 * Runs 500 streams at the same time, without a network, once it has read a line: of the floor, or of a served agent. Prints a line before, when it is idle,
 * and one after.
 *
 * @module
 */
import { count, deltas, drain, floor, macrotask } from "../kit/floor.ts";

const run = Deno.args[0] === "floor" ? () => drain(floor(deltas(count, macrotask))) : await servedRun();

/** Runs `streams` at the same time. */
const crowd = (streams: number) => Promise.all(Array.from({ length: streams }, run));

await crowd(20);
console.log("idle");
await Deno.stdin.read(new Uint8Array(16));
await crowd(500);
console.log("done");
await Deno.stdin.read(new Uint8Array(16)); // stays until it is killed, so that its memory can be read

/** Serves an agent. The floor does not import it, since imports change the garbage collection of a program. */
async function servedRun(): Promise<() => Promise<unknown>> {
  const { served, streaming } = await import("../kit/load.ts");
  return served(streaming(count, { between: macrotask }));
}
