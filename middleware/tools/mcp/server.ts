/**
 * The options of an MCP server, and their checks.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { expectNames, expectTime } from "../../../src/core/kit.ts";
import type { McpBounds } from "./bounded_fetch.ts";
import type { McpTransport } from "./transport.ts";

/** An MCP server: its options, and its URL or transport. */
export type McpServer<V = unknown> = McpServerOptions & (McpHttpServer<V> | McpCustomServer<V>);

/** Options of an MCP server. */
export interface McpServerOptions {
  /** The server's own names of the tools to add. A name that the server does not have fails the run. Default: all tools. */
  readonly tools?: readonly string[];
  /** Milliseconds that the server has to connect, to list its tools, and to answer each call. Default: 30,000. */
  readonly time?: number;
  /** Largest answer in bytes, with the notifications before it, and largest list of tools. A process whose message is larger is stopped. Default: 10,000,000. */
  readonly maxBytes?: number;
}

/** An MCP server that is reached over Streamable HTTP. */
export interface McpHttpServer<V = unknown> {
  /** URL of the server. */
  readonly url: string;
  /** Headers of every request, such as a token, or a function that returns those of a run. Default: none. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((scope: Scope<V>) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
}

/** An MCP server that is reached in another way. */
export interface McpCustomServer<V = unknown> {
  /** Creates a transport of the official client, which bounds its answers itself. Called for each run; the transport is closed after the run. */
  readonly transport: (scope: Scope<V>, bounds: McpBounds) => McpTransport | Promise<McpTransport>;
}

/** Throws a `TypeError` or a `RangeError` if a server has an invalid name, option or address. */
export function expectServer<V>(name: string, server: McpServer<V>): void {
  const subject = `Cannot use MCP server ${JSON.stringify(name)}`;
  if (!/^(?=.{1,32}$)[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(name)) {
    throw new TypeError(`${subject}: its name is invalid; expected 1 to 32 of A-Z a-z 0-9 - and single _`);
  }
  expectNames(subject, server, ["url", "headers", "transport", "tools", "time", "maxBytes", "type"]); // files of other clients have a type
  expectAddress(subject, server);
  const { time = 1, maxBytes = 1, tools } = server;
  if (tools !== undefined && !Array.isArray(tools)) {
    throw new TypeError(`${subject}: \`tools\` is ${JSON.stringify(tools)}; expected a list of names`);
  }
  if (tools?.length === 0) throw new TypeError(`${subject}: \`tools\` is empty; expected at least one name`);
  expectTime(`${subject}: \`time\``, time);
  if (!(maxBytes >= 1)) throw new RangeError(`${subject}: \`maxBytes\` is ${maxBytes}; expected 1 or more`);
}

/** Throws a `TypeError` if a server has neither a URL nor a function that creates a transport. */
function expectAddress<V>(subject: string, server: McpServer<V>): void {
  const { url, transport }: { readonly url?: unknown; readonly transport?: unknown } = server;
  if (transport !== undefined && typeof transport !== "function") {
    throw new TypeError(`${subject}: \`transport\` is ${JSON.stringify(transport)}; expected a function`);
  }
  if (url !== undefined && !/^https?:$/.test(URL.parse(String(url))?.protocol ?? "")) {
    throw new TypeError(`${subject}: \`url\` is ${JSON.stringify(url)}; expected an http or https URL`);
  }
  if (url === undefined && transport === undefined) {
    throw new TypeError(`${subject}: it has no address; expected \`url\`, or \`transport\`, a function`);
  }
}
