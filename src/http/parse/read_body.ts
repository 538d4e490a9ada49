/**
 * Reading request bodies within a bound.
 *
 * @module
 */
import type { Context } from "hono";
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
export async function readText({ req }: Context, max: number): Promise<string> {
  if (Number(req.header("content-length")) > max) throw tooLarge(max);
  const { body, bodyUsed } = req.raw;
  if (body && !bodyUsed) Object.assign(req.bodyCache, { text: readBounded(body, max) });
  return await req.text();
}

async function readBounded(body: ReadableStream<Uint8Array>, max: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > max) throw tooLarge(max);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function tooLarge(max: number): RequestError {
  return new RequestError(413, "too-large", `Cannot read the body: it has more than ${max} bytes`);
}
