/**
 * Runs 500 streams at the same time, without a network, once it has read a line. Prints a line before, when it is idle, and one after.
 *
 * @module
 */
import { streamerOf, streamOf } from "../kit/crowd.ts";
import { macrotask } from "../kit/floor.ts";

const run = await streamOf(streamerOf(Deno.args[0]), macrotask);

/** Runs `streams` at the same time. */
const crowd = (streams: number) => Promise.all(Array.from({ length: streams }, run));

await crowd(20);
console.log("idle");
await Deno.stdin.read(new Uint8Array(16));
await crowd(500);
console.log("done");
await Deno.stdin.read(new Uint8Array(16)); // stays until it is killed, so that its memory can be read
