/**
 * Loads a server: 100 keep-alive connections send a request each and read its stream to the end, round after round. Prints the streams per second, and the
 * median of the milliseconds until the first byte of a body.
 *
 * @module
 */
import { body } from "../kit/floor.ts";
import { median } from "../kit/stopwatch.ts";

const connections = 100;
const rounds = { warmUp: 3, measured: 10 };
const port = Number(Deno.args[0]);

const encoder = new TextEncoder();
const request = encoder.encode(
  `POST /runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
);
const decoder = new TextDecoder();
const headEnd = "\r\n\r\n";
const bodyEnd = "\r\n0\r\n\r\n";

const open = await Promise.all(
  Array.from({ length: connections }, () => Deno.connect({ hostname: "127.0.0.1", port })),
);
const firstBytes: number[] = [];
let time = 0;
for (let round = -rounds.warmUp; round < rounds.measured; round++) {
  const start = performance.now();
  const waits = await Promise.all(open.map(stream));
  if (round < 0) continue;
  time += performance.now() - start;
  firstBytes.push(...waits);
}
console.log(JSON.stringify({
  streamsPerSecond: connections * rounds.measured / (time / 1_000),
  firstByte: median(firstBytes),
}));

/** Sends a request, reads the response to its end, and returns the milliseconds until the first byte of its body. */
async function stream(connection: Deno.Conn): Promise<number> {
  const buffer = new Uint8Array(65_536);
  const start = performance.now();
  await connection.write(request);
  let firstByte: number | undefined;
  let head = "";
  let tail = "";
  while (tail !== bodyEnd) {
    const length = await connection.read(buffer);
    if (length === null) throw new Error("Cannot measure: the server closed a connection");
    if (firstByte === undefined) {
      head += decoder.decode(buffer.subarray(0, length));
      const end = head.indexOf(headEnd);
      if (end >= 0 && head.length > end + headEnd.length) firstByte = performance.now() - start;
    }
    tail = (tail + decoder.decode(buffer.subarray(Math.max(0, length - bodyEnd.length), length))).slice(
      -bodyEnd.length,
    );
  }
  return firstByte ?? NaN;
}
