/**
 * Opens 500 streams, each of which has read 20 deltas and waits for the next one. Prints the bytes that one of them holds by constructor, as JSON.
 *
 * @module
 */
import { streamerOf, streamOf } from "../kit/crowd.ts";
import { macrotask } from "../kit/floor.ts";
import { heapByConstructor } from "../profiles/heap.ts";

const streams = 500;
const never = new Promise<void>(() => {}); // keeps the streams that wait for it from being collected
const allWait = Promise.withResolvers<void>();
let waiting = 0;
let left = Infinity;

const run = await streamOf(streamerOf(Deno.args[0]), () => {
  if (left-- > 0) return macrotask();
  if (++waiting === streams) allWait.resolve();
  return never;
});
const open = () => Array.from({ length: streams }, run);

await Promise.all(open()); // to their ends, as a warm-up
await heapByConstructor(); // because reading a snapshot leaves code behind
await macrotask();
const before = await heapByConstructor();
left = streams * 20;
const opened = open();
await allWait.promise;
for (let task = 0; task < 10; task++) await macrotask(); // until the last deltas have been read
const after = await heapByConstructor();
console.log(
  JSON.stringify([...after].map(([name, bytes]) => [name, (bytes - (before.get(name) ?? 0)) / opened.length])),
);
Deno.exit(); // the streams never end
