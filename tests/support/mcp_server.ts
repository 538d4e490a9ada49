/**
 * MCP servers from the official package, on this machine.
 *
 * @module
 */
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/** A served MCP server, closed when it is disposed of. */
export interface Served extends AsyncDisposable {
  readonly url: string;
  /** The methods of the received requests; the HTTP method of requests without one. */
  readonly received: readonly string[];
  /** The headers of the last request. */
  readonly headers: Headers;
  /** The number of open sessions. */
  readonly open: number;
}

/** Options of `served()`. */
export interface ServedOptions {
  /** Whether the server keeps a session for each client, as servers before 2026 did. Default: false. */
  readonly sessions?: boolean;
  /** The freshness of the list of tools. Default: not at all. */
  readonly fresh?: { readonly ttlMs: number; readonly cacheScope: "public" | "private" };
}

/** Serves the tools that `register` adds. `register` is called for every server that is created. */
export function served(
  register: (server: McpServer) => void,
  { sessions = false, fresh }: ServedOptions = {},
): Served {
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const received: string[] = [];
  let headers = new Headers();

  function made(): McpServer {
    const server = new McpServer({ name: "test", version: "1" }, fresh && { cacheHints: { "tools/list": fresh } });
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
    received.push(body.method ?? request.method);
    return await (sessions ? inSession(request) : handler.fetch(request));
  });

  return {
    url: `http://127.0.0.1:${http.addr.port}/mcp`,
    received,
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
