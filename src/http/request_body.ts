/**
 * The body of a request: its content type, and how large it may be (`maxBody`). A larger one is refused with 413.
 *
 * @module
 */
import type { Context } from "hono";
import { RequestError } from "./error_response.ts";
import { invalid, type Shape } from "../protocol/shape.ts";

/** Parses the JSON body of a request, of at most `max` bytes. */
export async function readJson<T>(c: Context, shape: Shape<T>, max: number): Promise<T> {
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(c.req.header("content-type") ?? "")) {
    throw new RequestError(415, "not-json", "Cannot read the body: expected content-type application/json");
  }
  const text = new TextDecoder().decode(await readBytes(c, max));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("", "JSON");
  }
  return shape(value, "");
}

/** Reads the body of a request, of at most `max` bytes. Later calls of `c.req.json()` and the like return the same body. */
export async function readBytes({ req }: Context, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const { raw } = req;
  if (Number(raw.headers.get("content-length")) > max) throw tooLarge(max);
  // bytes, since a text would not keep a byte order mark and invalid UTF-8, which the signature of a forwarded request covers
  if (raw.body && !raw.bodyUsed) Object.assign(req.bodyCache, { arrayBuffer: readBounded(raw.body, max) });
  const body = new Uint8Array(await req.arrayBuffer());
  if (body.length > max) throw tooLarge(max);
  return body;
}

/** Reads with a reader that keeps its lock: `for await` releases it, for which the platform creates an error. */
async function readBounded(body: ReadableStream<Uint8Array>, max: number): Promise<ArrayBuffer> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.byteLength;
    if (size > max) {
      await reader.cancel().catch(() => {}); // the request is refused in any case
      throw tooLarge(max);
    }
    chunks.push(read.value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes.buffer;
}

function tooLarge(max: number): RequestError {
  const fix = "the session has the history, so send the newest message only, with newestMessageOnly of " +
    '"@jizai/jizai/client" in useChat, or raise `maxBody` of serve()';
  return new RequestError(413, "too-large", `Cannot read the body: it has more than ${max} bytes; ${fix}`);
}
