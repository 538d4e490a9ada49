/**
 * Mends JSON-RPC messages of MCP servers. The client drops a message that is not exactly of its form, and would wait for the response until the time is over.
 *
 * @module
 */
import { isObject, type JsonObject } from "./tool.ts";

/** The code of JSON-RPC for an error within the server. */
const internalError = -32_603;

/**
 * Returns a message without members that are null. A response gets the form of the protocol: an error with a code and a text, or an object as its result.
 * `request` is the id of the request, for a response without one.
 */
export function mendMessage(message: unknown, request?: unknown): unknown {
  if (!isObject(message)) return message;
  const { id, method, result, error } = message;
  const isFailure = error !== undefined && error !== null;
  const isAnswer = !method && ("result" in message || (id ?? undefined) !== undefined);
  const isResponse = isFailure || isAnswer || (result ?? undefined) !== undefined;
  if (!isResponse) return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
  return {
    jsonrpc: "2.0",
    id: id ?? request,
    ...(isFailure ? { error: errorOf(error) } : { result: resultOf(result) }),
  };
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
  const isGreeting = "protocolVersion" in result || "supportedVersions" in result;
  return { ...(isGreeting ? greetingOf(members) : members), ...(isObject(_meta) && { _meta }) };
}

/** Returns the first result of a server with the members that are used. Servers write null, lists and texts for the others. */
function greetingOf({ capabilities, serverInfo, instructions: _, ...greeting }: JsonObject): JsonObject {
  const { tools }: JsonObject = Object(capabilities);
  const { name, version }: JsonObject = Object(serverInfo);
  return {
    ...Object.fromEntries(Object.entries(greeting).filter(([, value]) => value !== null)),
    capabilities: tools === undefined || tools === null || tools === false ? {} : { tools: {} },
    serverInfo: { name: String(name), version: String(version) },
  };
}

/** Mends the messages of a response in JSON: one, or a list. */
export function mendJson(text: string, request: unknown): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return JSON.stringify(
      Array.isArray(parsed) ? parsed.map((message) => mendMessage(message, request)) : mendMessage(parsed, request),
    );
  } catch {
    return text; // the client reports it
  }
}

/** Mends the messages of a stream of events, each in a line. */
export function mendEvents(request: unknown): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let pieces: string[] = [];
  const mendLine = (line: string) =>
    line.replace(/^(data: ?)(\{.*\})(\r?)$/s, (_, name, text, end) => name + mendJson(text, request) + end);
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
