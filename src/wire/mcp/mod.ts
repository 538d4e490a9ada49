/**
 * The wire of MCP: an agent and its tools, for MCP clients.
 *
 * @module
 */
import type { AgentDefinition } from "../../core/definition.ts";
import { expectNames, type UnknownObject } from "../../protocol/shape.ts";
import { parseCall, type ServedTools } from "./call.ts";
import {
  discovery,
  encodeError,
  greeting,
  kept,
  type McpRequest,
  readRequest,
  resultMessage,
  unknownMethod,
} from "./request.ts";
import type { ParsedRequest, Wire } from "../wire.ts";
export type { Wire } from "../wire.ts";

/** Options of `mcpWire()`. */
export interface McpWireOptions {
  /** The path of the route. Default: `/mcp`. */
  readonly path?: string;
  /** Whether the agent is a tool, which takes a prompt. Default: true. */
  readonly agent?: boolean;
  /** The names of the agent's tools that clients may call themselves. Default: none. */
  readonly tools?: readonly string[];
  /** The origins of pages that may ask, such as `https://app.example`, beside those of localhost. Clients that are no pages have none. Default: none. */
  readonly origins?: readonly string[];
}

/**
 * Serves MCP clients of the protocol of 2026-07-28, and those of before it, without sessions of the protocol: each request may reach another process.
 *
 * The agent is a tool with its name and description. It takes a `prompt`, and a `session` to continue one, which each answer names for the model of the client.
 * The result is the text of the answer, or the structured output of an agent with an `output` schema. If the client wants progress, it receives the text as it is
 * streamed, and the calls. `tools` names tools that clients may call without the model: such a call is a run with one call, which passes the hooks of `session`,
 * `input` (as the prompt `Call name {...}`), `prompt`, `turn`, `tool`, `approval` and `execute`, and the limits. Tools that a `session` hook adds, such as those of
 * `mcp()`, cannot be named.
 *
 * If the run waits for a person, the client shows a form for each question (elicitation), and calls again with the answers, which may reach another process if the
 * server has a store or `resumeTokens`. Accepting a form approves a call, and declining or dismissing it denies the call. An answer counts once, for the owner and
 * the call that was asked about. For a client without this capability, the result is an error that says what is asked; the run stays paused.
 *
 * A client that ends the response cancels the run, as `onClientGone` says. Requests of pages are refused unless `origins` names them or they are on this machine.
 * The server does not offer resources, prompts, or subscriptions, and asks its clients for neither sampling nor roots.
 *
 * Throws a `TypeError` for an unknown option. `serve()` throws a `TypeError` for a tool that the agent does not have.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { mcpWire } from "@jizai/jizai/wire/mcp";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [mcpWire()] });
 *
 * const response = await app.request("/mcp", { // the request of client.callTool()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({
 *     jsonrpc: "2.0",
 *     id: 1,
 *     method: "tools/call",
 *     params: { name: "agent", arguments: { prompt: "Hi" } },
 *   }),
 * });
 * assertStringIncludes(await response.text(), `{"type":"text","text":"Hello!"}`);
 * ```
 */
export function mcpWire(options: McpWireOptions = {}): Wire {
  expectNames("Cannot create mcpWire()", options, ["path", "agent", "tools", "origins"]);
  const { path = "/mcp", origins = [] } = options;
  for (const [name, list] of Object.entries({ tools: options.tools ?? [], origins })) {
    if (Array.isArray(list) && list.every((each) => typeof each === "string")) continue;
    throw new TypeError(`Cannot create mcpWire(): expected a list of texts in \`${name}\``);
  }
  return {
    routes(_, { "~definition": definition }) {
      const { list, served } = describe(definition as AgentDefinition, options); // agent() made it
      return [{
        method: "POST",
        path,
        encodeError,
        parse(request) {
          const read = readRequest(request, origins);
          return "type" in read ? read : answer(read, { list, served, session: request.session });
        },
      }];
    },
  };
}

/** The tools of a server, as they are listed, and as they are called. */
interface DescribedTools {
  readonly list: readonly object[];
  readonly served: ServedTools;
}

/** Describes the tools of a server. Throws a `TypeError` for a tool that the agent does not have. */
function describe(
  { name, description, format, toolTable: { toolsByName } }: AgentDefinition,
  { agent = true, tools = [] }: McpWireOptions,
): DescribedTools {
  const agentTool = name.replaceAll(/[^\w.-]/g, "_") || "agent";
  const names = [...agent ? [agentTool] : [], ...tools];
  if (new Set(names).size < names.length || names.length === 0) {
    const why = names.length === 0 ? "there is none" : "two have the same name";
    throw new TypeError(`Cannot serve mcpWire(): expected tools with different names, the agent among them; ${why}`);
  }
  const outputSchema = format?.schema.type === "object" ? format.schema : undefined;
  const listed = tools.map((name) => {
    const tool = toolsByName.get(name);
    const existing = [...toolsByName.keys()].join(", ") || "none";
    if (!tool) throw new TypeError(`Cannot serve mcpWire(): there is no tool "${name}"; expected some of ${existing}`);
    const { definition: { description, schema }, readOnly } = tool;
    const inputSchema = { type: "object", ...schema };
    return { name, description, inputSchema, ...(readOnly && { annotations: { readOnlyHint: true } }) };
  });
  const prompting = { name: agentTool, description, inputSchema, ...(outputSchema && { outputSchema }) };
  return {
    list: [...agent ? [prompting] : [], ...listed],
    served: {
      agent: agent ? agentTool : undefined,
      hasOutput: outputSchema !== undefined,
      names: new Set(names),
      server: { name, version: "1" },
    },
  };
}

/** The input of the tool that is the agent. */
const inputSchema = {
  type: "object",
  properties: {
    prompt: { type: "string", description: "The task or question" },
    session: { type: "string", description: "The session of an earlier answer, to continue it" },
  },
  required: ["prompt"],
};

/** Answers a request. A call begins a run, or continues one. */
function answer(
  request: McpRequest,
  { list, served, session }: DescribedTools & { readonly session: string | undefined },
): ParsedRequest {
  const { method, isModern } = request;
  const send = (result: UnknownObject) => {
    return { type: "json", body: resultMessage(request, result, served.server) } as const;
  };
  if (method === "tools/call") return parseCall(request, served, session);
  if (method === "tools/list") return send({ tools: list, ...kept(request) });
  if (isModern) return method === "server/discover" ? send(discovery(request)) : unknownMethod(request);
  if (method === "initialize") return send(greeting(request, served.server));
  return method === "ping" ? send({}) : unknownMethod(request);
}
