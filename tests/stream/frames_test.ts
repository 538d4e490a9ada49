import { assertEquals } from "@std/assert";
import { frames } from "../../src/stream/frames.ts";

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

Deno.test("frames() parses both line endings, also if one is split", async () => {
  assertEquals(await framesOf("data: a\r\n\r\ndata: b\r", "\n\r", "\ndata: c\n\r\n"), [["a"], [], ["b", "c"], []]);
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
