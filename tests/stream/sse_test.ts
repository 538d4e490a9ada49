/**
 * `frames()`, the parser of server-sent events (src/stream/sse.ts), and `sse()`, the encoder (src/stream/sse.ts).
 */
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { eventFrames, frame, frames, lineOf, sse, type SseOptions } from "../../src/stream/sse.ts";

/** Returns the frames of a body that arrives in these pieces, read by read. */
async function framesOf(...pieces: readonly (string | Uint8Array<ArrayBuffer>)[]) {
  const encoder = new TextEncoder();
  const bytes = pieces.map((piece) => typeof piece === "string" ? encoder.encode(piece) : piece);
  return await Array.fromAsync(frames(ReadableStream.from(bytes)));
}

Deno.test("frames() returns the frames that one read completes together", async () => {
  assertEquals(await framesOf("data: a\n\ndata: b\n\nda", "ta: c\n", "\n"), [["a", "b"], [], ["c"], []]);
});

Deno.test("frames() drops names, ids, comments and frames without data", async () => {
  assertEquals(await framesOf(":\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\nevent: y\n\n"), [["a"], []]);
});

Deno.test("frames() parses data with and without a space, of one line, several lines and none", async () => {
  assertEquals(await framesOf("data:a\ndata:  b\n\ndata:\n\n"), [["a\n b", ""], []]);
});

Deno.test("frames() parses all three line endings, also if one is split", async () => {
  assertEquals(await framesOf("data: a\r\n\r\ndata: b\r", "\n\r", "\ndata: c\n\r\n"), [["a"], ["b"], ["c"], []]);
  assertEquals(await framesOf("data: a\r\rdata: b\r", "\rdata: c\r", "", "\n\ndata: d\r\n\rdata: e"), [
    ["a"],
    ["b"],
    [],
    ["c", "d"],
    ["e"],
  ]);
});

Deno.test("frames() marks the data of an event that is named error", async () => {
  assertEquals(
    await framesOf("event:error\ndata: a\n\ndata: b\n\nevent: errors\ndata: c\n\ndata: d\nevent: error\n\n"),
    [
      [{ error: "a" }, "b", "c", { error: "d" }],
      [],
    ],
  );
  assertEquals(await framesOf("event: error\n\n"), [[{ error: "" }], []]);
});

Deno.test("frames() joins a line that arrives in thousands of pieces once", async () => {
  const pieces = Array.from({ length: 5_000 }, (_, index) => `${index},`.padStart(2_000, "x"));
  const read = await framesOf("data: ", ...pieces, "\n\n");
  assertEquals(read.flat(), [pieces.join("")]);
});

Deno.test("frames() joins a character that was split", async () => {
  const [one, two] = [new Uint8Array([100, 97, 116, 97, 58, 233, 137]), new Uint8Array([164, 10, 10])];
  assertEquals(await framesOf(one, two), [[], ["鉤"], []]);
});

Deno.test("frames() returns an incomplete frame at the end", async () => {
  assertEquals(await framesOf("data: a\n\ndata: b"), [["a"], ["b"]]);
  assertEquals(await framesOf("data: b\n"), [[], ["b"]]);
  assertEquals(await framesOf(), [[]]);
});

Deno.test("frames() cancels the body when its reader stops", async () => {
  const left: unknown[] = [];
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: a\n\n")),
    cancel: () => void left.push("left"),
  });
  for await (const _ of frames(body)) break;
  assertEquals(left, ["left"]);
});

/** A stream of frames that are already written. */
function written(options?: Omit<SseOptions<string>, "frame">) {
  return sse<string>({ ...options, frame: (text) => text });
}

function texts(options?: Parameters<typeof written>[0]) {
  const { sink, stream } = written(options);
  return { sink, reader: stream.pipeThrough(new TextDecoderStream()).getReader() };
}

Deno.test("a frame has an id, one line of data, and an empty line", () => {
  assertEquals(
    frame(1, JSON.stringify({ type: "text.delta", text: "a\nb\r\u2028" })),
    'id: 1\ndata: {"type":"text.delta","text":"a\\nb\\r\u2028"}\n\n',
  );
  assertEquals(frame(12, "自在鉤"), "id: 12\ndata: 自在鉤\n\n");
});

Deno.test("a delta is encoded as JSON.stringify() encodes it, whatever characters it has", () => {
  const encode = eventFrames();
  const units = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));
  const lengths = [0, 1, 63, 64, 65, 200].flatMap((length) => ["a".repeat(length), "鉤".repeat(length)]);
  const surrogates = ["🪝", "\ud83e", "\udf9d", "\udf9d\ud83e", "a🪝b", "a\ud83eb", "\ud83e🪝"];
  const texts = [
    ...units,
    ...units.map((unit) => `a${unit}b`),
    ...lengths,
    ...lengths.map((text) => `${text}"`),
    ...surrogates,
  ];
  for (const [index, text] of texts.entries()) {
    const event = { type: "text.delta", turn: 1 + index % 2, part: index % 3, text } as const;
    const line = JSON.stringify(event);
    if (lineOf(event) !== line) assertEquals(lineOf(event), line);
    if (encode(event, index) !== frame(index, line)) assertEquals(encode(event, index), frame(index, line));
  }
});

Deno.test("frames that wait together leave as one chunk, encoded", async () => {
  const { sink, stream } = written();
  sink.write(frame(1, "自"));
  sink.write(frame(2, "在"));
  sink.close();
  const chunks = await Array.fromAsync(stream);
  assertEquals(chunks.map((chunk) => new TextDecoder().decode(chunk)), [frame(1, "自") + frame(2, "在")]);
  assertEquals(chunks[0] instanceof Uint8Array, true);
});

Deno.test("a comment is sent after a time of silence", async () => {
  using time = new FakeTime();
  const { sink, reader } = texts({ heartbeat: 15_000 });
  sink.write("a");
  assertEquals((await reader.read()).value, "a");
  let received = "";
  const receive = (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      received += `${next.value}@${Date.now() - time.start} `;
    }
  })();
  await time.tickAsync(14_999);
  await time.runMicrotasks();
  assertEquals(received, "");
  await time.tickAsync(1);
  await time.runMicrotasks();
  assertEquals(received, ":\n\n@15000 ");
  await time.tickAsync(8_000);
  sink.write("b");
  await time.runMicrotasks();
  await time.tickAsync(14_499);
  await time.runMicrotasks();
  assertEquals(received, ":\n\n@15000 b@23000 ");
  await time.tickAsync(1);
  await time.runMicrotasks();
  assertEquals(received, ":\n\n@15000 b@23000 :\n\n@37500 ");
  sink.close();
  await receive;
  assertEquals(time.next(), false, "no timer is left");
});

Deno.test("no comment is sent while frames are sent", async () => {
  using time = new FakeTime();
  const { sink, reader } = texts({ heartbeat: 1_000 });
  for (let n = 0; n < 20; n++) {
    sink.write(`${n} `);
    await time.tickAsync(499);
  }
  sink.close();
  let all = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) all += next.value;
  assertEquals(all, Array.from({ length: 20 }, (_, n) => `${n} `).join(""));
});

Deno.test("a client that disconnects stops the heartbeat timer", async () => {
  using time = new FakeTime();
  const reasons: unknown[] = [];
  const { sink, stream } = written({ onCancel: (reason) => reasons.push(reason) });
  await stream.cancel("gone");
  assertEquals([reasons, time.next()], [["gone"], false]);
  sink.write("late");
  sink.close();
});

Deno.test("a heartbeat of Infinity sends no comments", () => {
  using time = new FakeTime();
  const { sink } = written({ heartbeat: Infinity });
  assertEquals(time.next(), false);
  sink.close();
});

Deno.test("a slow reader makes the writer wait, measured in characters", async () => {
  const { sink, stream } = written({ highWater: 10 });
  const reader = stream.getReader();
  sink.write("a");
  await reader.read();
  sink.write("b");
  sink.write("c".repeat(9));
  assertEquals(sink.full, undefined);
  sink.cork();
  sink.write("d");
  sink.uncork();
  const { full } = sink;
  assertEquals(full instanceof Promise, true);
  await reader.read();
  assertEquals(new TextDecoder().decode((await reader.read()).value), `${"c".repeat(9)}d`);
  await full;
  sink.close();
});
