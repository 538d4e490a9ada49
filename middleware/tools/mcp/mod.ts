/**
 * Brings the tools of MCP servers.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Schema, type Scope, tool } from "../../../mod.ts";
import { schemaOf } from "../../../src/core/kit.ts";
import { connect, type Connection, type Offered, overHttp } from "./connection.ts";
import { nameOf } from "./name.ts";
import type { McpTransport } from "./transport.ts";

export type { McpTransport } from "./transport.ts";

/** A server, and what is taken of it. */
export type McpServer<V = unknown> = McpServerOptions & (McpAddress<V> | McpWire<V>);

/** What is taken of a server. */
export interface McpServerOptions {
  /** The names of the tools that the agent may have, as the server calls them. Default: all that it has. */
  readonly tools?: readonly string[];
  /** Milliseconds that it may take to let us in, to list its tools, and for each call. Default: 30,000. */
  readonly time?: number;
}

/** A server that is reached over Streamable HTTP. */
export interface McpAddress<V = unknown> {
  /** Where it is. */
  readonly url: string;
  /** Sent with every request, such as a token; they may come with the run. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | ((scope: Scope<V>) => Readonly<Record<string, string>>);
}

/** A server that is reached in another way. */
export interface McpWire<V = unknown> {
  /** Makes a transport of the official client; called for each run, and closed after it. */
  readonly transport: (scope: Scope<V>) => McpTransport | Promise<McpTransport>;
}

/** What `mcp()` takes. */
export interface McpOptions<V = unknown> {
  /** The servers, by the names that their tools are known under: letters, digits and `-`, and single `_` between them; 32 at most. */
  readonly servers: Readonly<Record<string, McpServer<V>>>;
}

/**
 * Brings the tools of MCP servers. A tool `search` of the server `docs` is called `mcp__docs__search`; what a name may not hold becomes `_`. Every guard
 * sees their calls as those of any other tool. The model reads what servers say of their tools: use those that you trust, and name the tools you want.
 *
 * Servers are asked whenever a session is opened, all at once, so that a tool that is new is there with the next run; connections are closed with it. A
 * server that does not answer costs its tools and not the run: the person reads a notice, the operator hears of the failure, and with the next run it
 * is tried anew. It runs wherever `fetch` does.
 *
 * Throws a `TypeError` for a server's name or address that is none, and a `RangeError` for a time that is not positive, or that no timer can count.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { mcp } from "@jizai/jizai/middleware/mcp";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const docs = mcp({ servers: { docs: { url: "https://docs.example/mcp", tools: ["search", "publish"] } } });
 * const rules = permissions({ ask: ["mcp__docs__publish"] });
 *
 * // this page may not reach it, which is no reason not to answer
 * const { text } = await agent({ model: scripted("Hello!"), use: [rules, docs] }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function mcp<V = unknown>({ servers }: McpOptions<V>): Middleware<V> {
  const all = Object.entries(servers);
  for (const [name, server] of all) check(name, server);

  return {
    name: "mcp",
    async session(ctx, next) {
      const connections = await Promise.all(all.map(([name, server]) => open(name, server, ctx)));
      try {
        const taken = new Set(ctx.settings.tools.map(({ name }) => name));
        const tools = all.flatMap(([name, server], index) => toolsOf(name, server, connections[index], taken));
        return await next(tools.length > 0 ? { settings: { tools: [...ctx.settings.tools, ...tools] } } : {});
      } finally {
        await Promise.all(connections.map((connection) => connection?.close()));
      }
    },
  };
}

function check<V>(name: string, server: McpServer<V>): void {
  if (!/^(?=.{1,32}$)[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(name)) {
    throw new TypeError(
      `Cannot use MCP server ${JSON.stringify(name)}: its name has 1 to 32 of A-Z a-z 0-9 - and single _`,
    );
  }
  if ("url" in server) new URL(server.url);
  const { time = 1 } = server;
  if (!(time > 0 && time < 2 ** 31)) throw new RangeError(`Cannot use MCP server "${name}" with a time of ${time} ms`);
}

/** Connects to a server; without it the run goes on. */
async function open<V>(name: string, server: McpServer<V>, ctx: Scope<V>): Promise<Connection | undefined> {
  try {
    return await connect(await transportOf(server, ctx), server.time ?? 30_000, ctx.signal);
  } catch (cause) {
    if (ctx.signal.aborted) return undefined; // what comes next says so
    ctx.run.report(new Error(`Cannot use MCP server "${name}"`, { cause }));
    ctx.emit({ type: "notice", text: `The tools of ${name} are not there now.` });
    return undefined;
  }
}

function transportOf<V>(server: McpServer<V>, ctx: Scope<V>): McpTransport | Promise<McpTransport> {
  if ("transport" in server) return server.transport(ctx);
  const { url, headers = {} } = server;
  return overHttp(url, typeof headers === "function" ? headers(ctx) : headers);
}

/** The tools of a server that the agent may have; their names are added to `taken`. */
function toolsOf<V>(
  server: string,
  { tools: wanted }: McpServer<V>,
  connection: Connection | undefined,
  taken: Set<string>,
): readonly AnyTool<never>[] {
  if (!connection) return [];
  const all = new Map(connection.offered.map((offered) => [offered.name, offered])); // one that is told of twice is there once
  return [...all.values()].filter(({ name }) => wanted?.includes(name) ?? true).map((offered) => {
    const name = nameOf(server, offered.name, taken);
    taken.add(name);
    return tool({
      name,
      description: offered.description ?? offered.title ?? offered.name,
      input: inputOf(offered),
      execute: (input, ctx) => connection.call(offered.name, input, ctx),
    });
  });
}

/** What a server says of a tool's input. The server itself checks it; here it only has to be an object. */
function inputOf({ inputSchema }: Offered): Schema<Record<string, unknown>> {
  return schemaOf(
    inputSchema,
    (value) => isObject(value) ? { value } : { issues: [{ message: "expected an object" }] },
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
