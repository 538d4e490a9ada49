/**
 * Adds the tools of MCP servers.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Scope, tool } from "../../../mod.ts";
import { canonicalJson, Cleanups, expectNames, noteConnection, startError } from "../../../src/core/kit.ts";
import type { McpBounds, McpTransport } from "./bounded_fetch.ts";
import {
  connect,
  type Connection,
  expectServer,
  httpTransport,
  type McpHttpServer,
  type McpServer,
} from "./connection.ts";
import { listedResources, readResource } from "./content.ts";
import { inputOf } from "./input.ts";
import { type KnownServers, knownServers, prefixOf, type ServerTool, toolNames } from "./tool.ts";

export type { McpBounds, McpTransport } from "./bounded_fetch.ts";
export type { McpAuth, McpCustomServer, McpHttpServer, McpServer, McpServerOptions } from "./connection.ts";

/** Options of `mcp()`. */
export interface McpOptions<V = unknown> {
  /** The servers, by the name that is part of their tools' names: 1 to 32 letters, digits, `-`, and single `_` between them. */
  readonly servers: Readonly<Record<string, McpServer<V>>>;
}

/**
 * Adds the tools of MCP servers. The tool `search` of the server `docs` is called `mcp__docs__search`. Characters that providers refuse become `_`, and such
 * a name ends with a hash. A tool whose name is in use already is left out and reported to the operator. A request that declares a tool of the client whose
 * name begins with `mcp__docs__` is refused with the status 400. Guards see the calls like those of every other tool. The model reads the descriptions that
 * servers give, so use servers that you trust, and name the tools that you need. A tool with `readOnlyHint` is `readOnly`: where a middleware requests groups
 * of calls, its calls may overlap with others.
 *
 * Each run connects to all servers at once when its session is opened, and lists their tools; the connections close with the session. If a server does not
 * answer, the run continues without its tools: a notice says so, the failure is reported to the operator, and the next run tries again. If a server says how long its list of tools stays fresh, other runs
 * of the agent use the list until then, without a request before the first call: a private list for the same `headers` only, and not where a function returns
 * `auth`. A tool without a name or
 * an input schema of the type `object`, or with a description that is no text, is left out and reported to the operator. Of a result, everything is kept that
 * can be read; the model reads structured content as JSON, unless a text of the result is its text form already. No answer is read without an end: a call whose answer exceeds `time` or `maxBytes` fails, and the model reads why.
 *
 * If a server of the protocol of 2026 needs the input of a person, the run pauses with its questions: a form is approved with its content as `input`, or
 * answered by a reply in JSON; a page is approved once it was opened. The call continues with the answers, also in another process, and an answer that does not
 * fit its form is asked for again. Hooks may answer in place of the person, or change the answer: those of `claude_hooks()`, and `hookServers()` of `kit` for
 * yours. Servers before 2026 would wait for the answer, so they are not offered one.
 *
 * It was tried with servers of the official package, and with lists, results and messages in the forms of public reports, as JSON and as streams; no stream
 * was recorded from a real server. Not supported: sampling and roots, which the protocol has deprecated, prompts and templates of resources of servers, tasks, and a list that
 * changes during a run. A process must write messages in the exact form of JSON-RPC, or its call takes until `time`.
 *
 * Throws a `TypeError` for an unknown option, for an invalid name or URL of a server, and for a server without a URL or a transport, and a `RangeError` if
 * `time` is not positive or longer than a timer can run, or `maxBytes` is less than 1.
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
 * // the run continues, although this example may not connect to the server
 * const { text } = await agent({ model: scripted("Hello!"), use: [rules, docs] }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function mcp<V = unknown>(options: McpOptions<V>): Middleware<V> {
  expectNames("Cannot create mcp()", options, ["servers"]);
  const { servers } = options;
  if (Object.prototype.toString.call(servers) !== "[object Object]") { // a Map would have no entries
    throw new TypeError(
      "Cannot create mcp(): it has no servers; expected `servers`, an object with a server for each name",
    );
  }
  const all = Object.entries(servers);
  for (const [name, server] of all) expectServer(name, server);
  const cleanups = new Cleanups();
  const known = knownServers();

  return {
    name: "mcp",
    toolPrefixes: all.map(([name]) => prefixOf(name)),
    async session(ctx, next) {
      const connections = await Promise.all(
        all.map(([name, server]) => connectServer(name, server, { ctx, servers: known })),
      );
      cleanups.set(ctx, async () => {
        await Promise.all(connections.map((connection) => connection?.close()));
      });
      try {
        const tools = [...ctx.settings.tools];
        for (const [index, [name, server]] of all.entries()) {
          const connection = connections[index];
          if (connection) addTools(tools, { name, server, connection }, ctx);
        }
        const changed = tools.some((tool, index) => tool !== ctx.settings.tools[index]);
        return await next(changed ? { settings: { tools } } : {});
      } finally {
        await cleanups.run(ctx);
      }
    },
    abort: cleanups.abort,
  };
}

/** Connects to a server. Returns `undefined` if that fails: the run continues without it. */
async function connectServer<V>(
  name: string,
  server: McpServer<V>,
  { ctx, servers }: { readonly ctx: Scope<V>; readonly servers: KnownServers },
): Promise<Connection | undefined> {
  try {
    noteConnection(name, ctx);
    const bounds = { time: server.time ?? 30_000, maxBytes: server.maxBytes ?? 10_000_000 };
    const { transport, user } = await transportOf(server, ctx, bounds);
    const { signal } = ctx;
    const known = servers.get(name, user);
    const connection = await connect(name, transport, { bounds, signal, known, forget: servers.forget });
    const { fresh } = connection;
    if (fresh) servers.set(name, user, fresh.known, fresh.freshness);
    return connection;
  } catch (error) {
    if (ctx.signal.aborted) return undefined; // the run is being stopped
    noteConnection(name, ctx, { error });
    const cause = startError(name, error);
    ctx.run.report(new Error(`Cannot use MCP server "${name}": it could not be connected`, { cause }));
    ctx.emit({ type: "notice", text: `The tools of ${name} are not available now.` });
    return undefined;
  }
}

/** A transport, and a text that tells its users apart; undefined if nothing does. */
interface UsersTransport {
  readonly transport: McpTransport;
  readonly user?: string;
}

async function transportOf<V>(server: McpServer<V>, ctx: Scope<V>, bounds: McpBounds): Promise<UsersTransport> {
  if ("transport" in server && server.transport !== undefined) {
    return { transport: await server.transport(ctx, bounds) };
  }
  const { url, headers: headersOption = {}, auth: provider } = server as McpHttpServer<V>; // a server without a transport has a URL: expectAddress()
  const headers = typeof headersOption === "function" ? await headersOption(ctx) : headersOption;
  const isOwn = typeof provider === "function";
  const auth = isOwn ? await provider(ctx) : provider;
  return { transport: httpTransport(url, { headers, auth, bounds }), ...(!isOwn && { user: canonicalJson(headers) }) };
}

/** A server that a run is connected to. */
interface Connected<V> {
  readonly name: string;
  readonly server: McpServer<V>;
  readonly connection: Connection;
}

/** Adds the tools of a server to `tools`. Throws a `TypeError` if the server lacks a tool that its options name. */
function addTools<V>(
  tools: AnyTool<never>[],
  { name: server, server: { tools: wanted, resources }, connection }: Connected<V>,
  ctx: Scope,
) {
  const isWanted = (name: string | undefined) => !wanted || (name !== undefined && wanted.includes(name));
  const unusable = connection.unusable.filter(({ name }) => isWanted(name));
  const faults = new Set(unusable.map(({ name, fault }) => `Cannot add ${subjectOf(name, server)}: ${fault}`)); // a list may repeat a page
  for (const fault of faults) ctx.run.report(new Error(fault));
  const offered = new Map<string, ServerTool>();
  for (const tool of connection.tools) {
    const before = offered.get(tool.name); // a server may list a tool twice
    offered.set(tool.name, tool);
    if (before && isWanted(tool.name) && canonicalJson(before) !== canonicalJson(tool)) {
      ctx.run.report(new Error(`Cannot add ${subjectOf(tool.name, server)} twice: the last one is used`));
    }
  }
  const missing = wanted?.find((name) => !offered.has(name) && !unusable.some((tool) => tool.name === name));
  if (missing !== undefined) {
    const names = [...offered.keys()].map((name) => JSON.stringify(name)).join(", ");
    throw new TypeError(`Cannot use MCP server "${server}": it has no tool "${missing}"; expected one of ${names}`);
  }
  const names = toolNames(server, [...offered.keys()]);
  for (const [ownTool, serverTool] of offered) {
    if (!isWanted(ownTool)) continue;
    const name = names.get(ownTool);
    addTool(tools, name === undefined ? undefined : toolOf(name, serverTool, connection), { ownTool, server, ctx });
  }
  for (const tool of resources ? resourceTools(server, connection) : []) {
    addTool(tools, tool, { ownTool: tool.name.slice(prefixOf(server).length), server, ctx });
  }
}

/** Adds a tool, unless it has no name, or another tool has it. */
function addTool(
  tools: AnyTool<never>[],
  added: AnyTool<never> | undefined,
  { ownTool, server, ctx }: { readonly ownTool: string; readonly server: string; readonly ctx: Scope },
): void {
  const other = tools.findIndex(({ name }) => name === added?.name);
  if (!added || (other >= 0 && !tools[other]?.["~client"])) {
    ctx.run.report(new Error(`Cannot add ${subjectOf(ownTool, server)}: its name is in use`));
    return;
  }
  if (other >= 0) {
    ctx.run.report(
      new Error(`Cannot add tool "${added.name}" of a client: the MCP server "${server}" has a tool of its name`),
    );
    tools.splice(other, 1);
  }
  tools.push(added);
}

function subjectOf(tool: string | undefined, server: string): string {
  return `${tool === undefined ? "a tool" : `tool ${JSON.stringify(tool)}`} of MCP server "${server}"`;
}

function toolOf(name: string, serverTool: ServerTool, connection: Connection): AnyTool<never> {
  return tool({
    name,
    description: serverTool.description ?? serverTool.title ?? serverTool.name,
    input: inputOf(serverTool.inputSchema),
    readOnly: serverTool.annotations?.readOnlyHint === true,
    execute: (input, ctx) => connection.call(serverTool.name, input, ctx),
  });
}

/** Creates the tools that list and read the resources of a server. */
function resourceTools(server: string, connection: Connection): readonly AnyTool<never>[] {
  const inputWith = (name: string, description: string, required: readonly string[]) =>
    inputOf({ type: "object", properties: { [name]: { type: "string", description } }, required });
  const list = tool({
    name: `${prefixOf(server)}list_resources`,
    description: `Lists the resources of the MCP server "${server}"`,
    input: inputWith("cursor", "The `nextCursor` of the page before", []),
    readOnly: true,
    execute: async (input, ctx) => listedResources(await connection.request("resources/list", input, ctx)),
  });
  const read = tool({
    name: `${prefixOf(server)}read_resource`,
    description: `Reads a resource of the MCP server "${server}"`,
    input: inputWith("uri", "The address of the resource", ["uri"]),
    readOnly: true,
    execute: async (input, ctx) => readResource(await connection.request("resources/read", input, ctx)),
  });
  return [list, read];
}
