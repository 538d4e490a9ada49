/**
 * Reading request bodies within a bound.
 *
 * @module
 */
import type { Context, HonoRequest } from "hono";
import { invalid, type Shape } from "../../protocol/shape.ts";
import { RequestError } from "../respond/error_response.ts";

/** Parses the JSON body of a request, of at most `max` bytes. */
export async function readJson<T>(c: Context, shape: Shape<T>, max: number): Promise<T> {
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(c.req.header("content-type") ?? "")) {
    throw new RequestError(415, "not-json", "Cannot read the body: expected content-type application/json");
  }
  const text = await readText(c, max);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid("", "JSON");
    throw error;
  }
  return shape(value, "");
}

/** Reads the body of a request, of at most `max` bytes, as text. Later calls of `c.req.json()` and the like return the same body. */
async function readText({ req }: Context, max: number): Promise<string> {
  const bytes = boundedBody(req, max);
  if (bytes) Object.assign(req.bodyCache, { text: bytes.then((bytes) => new TextDecoder().decode(bytes)) });
  return await req.text();
}

/** Reads the body of a request, of at most `max` bytes. Later calls of `c.req.json()` and the like return the same body. */
export async function readBytes({ req }: Context, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = boundedBody(req, max);
  if (bytes) Object.assign(req.bodyCache, { arrayBuffer: bytes.then(({ buffer }) => buffer) });
  const body = new Uint8Array(await req.arrayBuffer());
  if (body.length > max) throw tooLarge(max);
  return body;
}

/** Begins to read the body; returns nothing if there is none, or if it was read before. */
function boundedBody({ raw }: HonoRequest, max: number): Promise<Uint8Array<ArrayBuffer>> | undefined {
  if (Number(raw.headers.get("content-length")) > max) throw tooLarge(max);
  return raw.body && !raw.bodyUsed ? readBounded(raw.body, max) : undefined;
}

/** Reads with a reader that keeps its lock: `for await` releases it, for which the platform creates an error. */
async function readBounded(body: ReadableStream<Uint8Array>, max: number): Promise<Uint8Array<ArrayBuffer>> {
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
  return bytes;
}

function tooLarge(max: number): RequestError {
  return new RequestError(413, "too-large", `Cannot read the body: it has more than ${max} bytes`);
}
