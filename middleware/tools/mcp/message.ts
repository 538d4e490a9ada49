/**
 * Mends JSON-RPC messages of MCP servers. The client drops a message that is not exactly of its form, and would wait for the response until the time is over.
 *
 * @module
 */
import { isObject, type JsonObject } from "./tool.ts";

/** The code of JSON-RPC for an error within the server. */
const internalError = -32_603;

/** Returns a response without members that are null or unknown, with an error of the form of the protocol, and with an object as its result. */
export function mendMessage(message: unknown): unknown {
  if (!isObject(message) || message.method !== undefined || message.id === undefined) return message;
  const { id, result, error } = message;
  const isFailure = error !== undefined && error !== null;
  return { jsonrpc: "2.0", id, ...(isFailure ? { error: errorOf(error) } : { result: resultOf(result) }) };
}

function errorOf(error: unknown): JsonObject {
  const { code, message = error, data }: JsonObject = isObject(error) ? error : {};
  return {
    code: Number.isSafeInteger(Number(code)) ? Number(code) : internalError,
    message: typeof message === "string" ? message : JSON.stringify(message),
    ...(data !== undefined && { data }),
  };
}

function resultOf(result: unknown): JsonObject {
  if (!isObject(result)) return Array.isArray(result) && result.length === 0 ? {} : { content: result };
  const { _meta, ...members } = result;
  return isObject(_meta) ? result : members;
}

/** Mends the messages of a response in JSON: one, or a list. */
export function mendJson(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return JSON.stringify(Array.isArray(parsed) ? parsed.map(mendMessage) : mendMessage(parsed));
  } catch {
    return text; // the client reports it
  }
}

/** Mends the messages of a stream of events, each in a line. */
export function mendEvents(): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let pieces: string[] = [];
  const mendLine = (line: string) =>
    line.replace(/^(data: ?)(\{.*\})(\r?)$/s, (_, name, text, end) => name + mendJson(text) + end);
  return new TransformStream({
    transform(bytes, controller) {
      const lines = decoder.decode(bytes, { stream: true }).split("\n");
      const last = lines.pop() ?? "";
      for (const line of lines) {
        controller.enqueue(encoder.encode(`${mendLine([...pieces, line].join(""))}\n`));
        pieces = [];
      }
      pieces.push(last);
    },
    flush: (controller) => controller.enqueue(encoder.encode(mendLine(pieces.join("") + decoder.decode()))),
  });
}
