/**
 * Requests of MCP clients, as they are sent.
 *
 * @module
 */

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: unknown;
}

/** An app that answers requests, such as one of `serve()`. */
interface App {
  request(path: string, init: RequestInit): Response | Promise<Response>;
}

/** Options of a request. */
export interface RequestOptions {
  /** The capabilities of the client. Default: it shows forms. */
  readonly capabilities?: JsonObject;
  /** Headers to add or to replace. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The members of `_meta` to add. */
  readonly meta?: JsonObject;
  readonly signal?: AbortSignal;
}

const version = "2026-07-28";

/** Returns the request of a client of 2026. */
export function requestOf(
  method: string,
  params: JsonObject = {},
  { capabilities = { elicitation: {} }, headers, meta, signal }: RequestOptions = {},
): RequestInit {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...meta,
  };
  return {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": method,
      ...(typeof params.name === "string" && { "mcp-name": params.name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: { ...params, _meta } }),
    ...(signal && { signal }),
  };
}

/** Returns the messages of a response. */
export async function messagesOf(response: Response): Promise<readonly JsonObject[]> {
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return text === "" ? [] : [JSON.parse(text)];
  }
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
}

/** Sends a request. Returns the status, and the messages of the response. */
export async function ask(
  app: App,
  method: string,
  params?: JsonObject,
  options?: RequestOptions,
): Promise<readonly [status: number, ...messages: readonly JsonObject[]]> {
  const response = await app.request("/mcp", requestOf(method, params, options));
  return [response.status, ...await messagesOf(response)];
}

/** Calls a tool. Returns the result, or the error. */
export async function call(
  app: App,
  name: string,
  params: JsonObject = {},
  options?: RequestOptions,
): Promise<JsonObject> {
  const [, ...messages] = await ask(app, "tools/call", { name, ...params }, options);
  const { result, error }: JsonObject = Object(messages.at(-1));
  return Object(result ?? { error });
}

/** Returns the responses of a person to each form, which `content` fills in. */
export function accept({ inputRequests }: JsonObject, content?: JsonObject): JsonObject {
  const names = Object.keys(Object(inputRequests));
  return Object.fromEntries(names.map((name) => [name, { action: "accept", ...(content && { content }) }]));
}
