/**
 * Requests of MCP clients: JSON-RPC messages of the protocol of 2026, and of the versions before it, each of which is answered without a session.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ParsedRequest, WireError, WireRequest } from "../wire.ts";

/** The version of 2026: each request tells all about its client. */
const modern = "2026-07-28";
/** The versions before it, the newest first: their clients begin with `initialize`. */
const legacy: readonly unknown[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** A member of `_meta` of the protocol. */
const protocol = (name: string) => `io.modelcontextprotocol/${name}`;

/** Codes of JSON-RPC and of MCP. */
const codes = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  header: -32_020,
  version: -32_022,
} as const;

/** A request, after its envelope was checked. */
export interface McpRequest {
  /** The id of the request, which its response repeats. */
  readonly id: string | number;
  readonly method: string;
  readonly params: UnknownObject;
  /** Whether the client speaks the protocol of 2026. */
  readonly isModern: boolean;
  /** Whether the client can show a form to a person, and sends the answers with a further request. */
  readonly canAsk: boolean;
  /** The token of the progress that the client wants. Default: it wants none. */
  readonly progressToken: string | number | undefined;
}

// Responses: results and errors.

/** The name and the version with which a server identifies itself. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** Returns the message with the result of a request. */
export function resultMessage({ id, isModern }: McpRequest, result: UnknownObject, server: ServerInfo): object {
  const identified = { resultType: "complete", ...result, _meta: { [protocol("serverInfo")]: server } };
  return { jsonrpc: "2.0", id, result: isModern ? identified : result };
}

/** Options of `rpcError()`. */
interface RpcErrorOptions {
  readonly status?: 200 | 400 | 403 | 404;
  readonly data?: object;
}

/** Returns the response with an error. `id` is that of the request, if it has one. */
function rpcError(
  id: unknown,
  code: keyof typeof codes,
  message: string,
  { status = 400, data }: RpcErrorOptions = {},
): ParsedRequest {
  return { type: "json", status, body: errorMessage(id, { code: codes[code], message, ...(data && { data }) }) };
}

function errorMessage(id: unknown, error: object): object {
  return { jsonrpc: "2.0", ...(isId(id) && { id }), error };
}

function isId(id: unknown): id is string | number {
  return typeof id === "string" || Number.isSafeInteger(id);
}

/** Returns the response to parameters that are wrong. */
export function wrongParams(request: McpRequest, message: string): ParsedRequest {
  return { type: "json", status: 400, body: paramsError(request, message) };
}

/** Returns the message about parameters that are wrong. */
export function paramsError({ id }: McpRequest, message: string): object {
  return errorMessage(id, { code: codes.params, message });
}

/** Returns the response to a method that does not exist. Clients of before 2026 take a status 404 for the end of a session. */
export function unknownMethod({ id, method, isModern }: McpRequest): ParsedRequest {
  return rpcError(id, "method", `Method not found: ${method}`, { status: isModern ? 404 : 200 });
}

/** Returns the body of an error response of the server. A code that JSON-RPC does not have is the status. */
export function encodeError({ status, code, message, field, id }: WireError, body: unknown): object {
  const isOfParams = status === 400 || code === "unknown";
  const name = status >= 500 ? "internal" : !isOfParams ? undefined : body === undefined ? "parse" : "params";
  return errorMessage(Object(body).id, { code: name ? codes[name] : status, message, data: { code, field, id } });
}

// The envelope: JSON-RPC, the origin, and the headers that repeat members of the body.

/** Returns the request in a body, or the response to one that is refused, or that is only a notification. */
export function readRequest({ body, header }: WireRequest, origins: readonly string[]): McpRequest | ParsedRequest {
  const { jsonrpc, id, method, params = {} }: UnknownObject = Object(body);
  const origin = header("origin");
  if (origin !== undefined && !isAllowed(origin, origins)) {
    const fix = "expected it in `origins` of mcpWire(), or a client that is no page";
    return rpcError(id, "request", `Cannot serve the origin ${origin}: ${fix}`, { status: 403 });
  }
  if (jsonrpc !== "2.0" || typeof method !== "string" || !isObject(params)) {
    return rpcError(id, "request", "Cannot read the body: expected one request of JSON-RPC 2.0");
  }
  if (id === undefined) return { type: "json", status: 202 };
  if (!isId(id)) return rpcError(id, "request", "Cannot read the body: expected a text or a whole number as its id");
  const meta: UnknownObject = Object(params._meta);
  const version = header("mcp-protocol-version");
  const claimed = meta[protocol("protocolVersion")];
  const isModern = claimed !== undefined || method === "server/discover" ||
    (version !== undefined && !legacy.includes(version));
  const { elicitation }: UnknownObject = Object(meta[protocol("clientCapabilities")]);
  const { form, url }: UnknownObject = Object(elicitation);
  const { progressToken } = meta;
  const request = {
    id,
    method,
    params,
    isModern,
    canAsk: isModern && elicitation !== undefined && (form !== undefined || url === undefined),
    progressToken: isId(progressToken) ? progressToken : undefined,
  };
  return (isModern ? envelopeError(request, meta, header) : undefined) ?? request;
}

/** Whether a page of this origin may ask: one of this machine, or one that is named. Another page may have let its name lead here. */
function isAllowed(origin: string, origins: readonly string[]): boolean {
  const { hostname = "" } = URL.parse(origin) ?? {};
  return origins.includes(origin) || /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
}

/** Returns the response to a request of 2026 whose envelope is wrong. */
function envelopeError(
  { id, method, params }: McpRequest,
  meta: UnknownObject,
  header: WireRequest["header"],
): ParsedRequest | undefined {
  const claimed = meta[protocol("protocolVersion")];
  const missing = typeof claimed !== "string"
    ? "protocolVersion"
    : isObject(meta[protocol("clientCapabilities")])
    ? undefined
    : "clientCapabilities";
  if (missing) return rpcError(id, "params", `Cannot read the request: expected ${protocol(missing)} in its _meta`);

  /** Compares a header with the member of the body that it repeats. */
  function mismatch(name: string, expected: unknown): ParsedRequest | undefined {
    const value = decoded(header(name));
    if (value === expected) return undefined;
    const why = value === undefined
      ? "it is missing"
      : `it is ${JSON.stringify(value)}, and the body has ${JSON.stringify(expected)}`;
    return rpcError(id, "header", `Header mismatch: ${name}: ${why}`);
  }

  const differs = mismatch("mcp-protocol-version", claimed);
  if (differs) return differs;
  if (claimed !== modern) {
    const data = { supported: [modern], requested: claimed };
    return rpcError(id, "version", `Unsupported protocol version: ${claimed}`, { data });
  }
  return mismatch("mcp-method", method) ?? (method === "tools/call" ? mismatch("mcp-name", params.name) : undefined);
}

/** Returns the text of a header, which clients encode if it has other characters than those of headers. */
function decoded(value: string | undefined): string | undefined {
  const [, base64] = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value ?? "") ?? [];
  if (base64 === undefined) return value;
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
  } catch {
    return value; // not base64, so it is no name
  }
}

// The description of the server: the answers to `server/discover`, and to `initialize` of clients before 2026.

/** The features of the server. */
const capabilities = { tools: {} };
/** Milliseconds for which clients may keep what is the same for all of them, until the server is replaced. */
const ttlMs = 300_000;

/** Returns members that let a client of 2026 keep a result. */
export function kept({ isModern }: McpRequest): UnknownObject {
  return isModern ? { ttlMs, cacheScope: "public" } : {};
}

/** Returns the result of `server/discover`. */
export function discovery(request: McpRequest): UnknownObject {
  return { supportedVersions: [modern], capabilities, ...kept(request) };
}

/** Returns the result of `initialize`. */
export function greeting({ params: { protocolVersion } }: McpRequest, serverInfo: ServerInfo): UnknownObject {
  const version = legacy.includes(protocolVersion) ? protocolVersion : legacy[0];
  return { protocolVersion: version, capabilities, serverInfo };
}
