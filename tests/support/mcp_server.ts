/**
 * MCP servers, made of the official package, on this machine.
 *
 * @module
 */
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/** A server that is being served, until it is disposed of. */
export interface Served extends AsyncDisposable {
  readonly url: string;
  /** The methods of the received requests, and the HTTP method of those that have none. */
  readonly heard: readonly string[];
  /** The headers of its last request. */
  readonly headers: Headers;
  /** How many sessions clients have open. */
  readonly open: number;
}

/** How it is served. */
export interface ServedOptions {
  /** Whether it keeps a session for each client, as servers did before 2026. Default: false. */
  readonly sessions?: boolean;
}

/** Serves what `register` gives a server, which is called for every server that is made. */
export function served(
  register: (server: McpServer) => void,
  { sessions = false }: ServedOptions = {},
): Served {
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const heard: string[] = [];
  let headers = new Headers();

  function made(): McpServer {
    const server = new McpServer({ name: "test", version: "1" });
    register(server);
    return server;
  }

  async function inSession(request: Request): Promise<Response> {
    const known = open.get(request.headers.get("mcp-session-id") ?? "");
    if (known) return await known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void open.set(id, transport),
      onsessionclosed: (id) => void open.delete(id),
    });
    await made().connect(transport);
    return await transport.handleRequest(request);
  }

  const handler = createMcpHandler(made);
  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    headers = request.headers;
    const body = request.method === "POST" ? await request.clone().json() : {};
    heard.push(body.method ?? request.method);
    return await (sessions ? inSession(request) : handler.fetch(request));
  });

  return {
    url: `http://127.0.0.1:${http.addr.port}/mcp`,
    heard,
    get headers() {
      return headers;
    },
    get open() {
      return open.size;
    },
    async [Symbol.asyncDispose]() {
      for (const transport of open.values()) await transport.close();
      await handler.close();
      await http.shutdown();
    },
  };
}
