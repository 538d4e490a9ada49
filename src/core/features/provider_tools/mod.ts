/**
 * Tools that the provider of the model runs itself: web search, code execution, file search, remote MCP servers.
 *
 * @module
 */
import { approved } from "../../../model/provider_tools.ts";
import type { ToolResult } from "../../../protocol/message.ts";
import { schemaOf } from "../../agent/schema.ts";
import { type Tool, toolNamePattern, toolNameRule } from "../../agent/tool.ts";
import type { ExecuteContext } from "../../hooks/points/call.ts";
import { failed, text } from "../../hooks/results.ts";
import { canonicalJson } from "../../lib/canonical_json.ts";
import { expectChoice } from "../../lib/expect_option.ts";
import { expectNames } from "../../../protocol/shape.ts";
import { declarationsOf } from "./declarations.ts";
import { decideTools } from "./decide.ts";
import type { ProviderToolOptions } from "./options.ts";

export type { ProviderApi, ProviderDeclaration, ProviderTool } from "../../../model/model.ts";
export type * from "./options.ts";

/**
 * Declares a tool that the provider runs, to be given to an agent beside its other tools. One declaration serves every provider that has such a tool: the
 * adapter sends its own form, and throws a `ModelError` if its API has none.
 *
 * The calls and results are parts `provider_call` and `provider_result` of the answer, and events `provider_tool.started` and `provider_tool.finished`. They are
 * sent back to the same model as they came, and as text to another.
 *
 * Guards decide before the provider runs a call:
 *
 * - Where the provider can ask, which is a remote MCP server over `openai_responses`, each call passes `tool` and `approval` like any other call, with the
 *   name of the server and the input `{ tool, arguments }`. It is asked about only if the agent has a guard, or the tool has `ask: true`.
 * - Elsewhere, the guards decide once per request about the tool as it is declared, with its settings as the input. If they deny or ask, the request does not
 *   contain the tool, and a warning `tool.removed` says so, once per run.
 *
 * Throws a `TypeError` for a name that providers reject, for an unknown option, and for an `mcp` address that is not http(s).
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { providerTool } from "@jizai/jizai/provider_tools";
 * import { assertEquals } from "@std/assert";
 *
 * const search = providerTool({ type: "web_search", maxUses: 3 });
 * const code = providerTool({ type: "code_execution" });
 * const model = scripted("It is sunny.");
 *
 * await agent({ model, tools: [search, code], use: [permissions({ deny: ["code_*"] })] }).run("Weather?").result;
 * assertEquals(model.requests[0]?.tools.map(({ name }) => name), ["web_search"]);
 * ```
 */
export function providerTool(options: ProviderToolOptions): Tool<unknown, ToolResult, unknown> {
  const { type, ask = false } = options;
  const { name = type } = options;
  if (!toolNamePattern.test(name)) {
    throw new TypeError(`Cannot create provider tool ${JSON.stringify(name)}: expected a name of ${toolNameRule}`);
  }
  const operation = `Cannot create provider tool "${name}"`;
  if (options.type === "mcp" && !/^https?:$/.test(URL.parse(options.url)?.protocol ?? "")) {
    throw new TypeError(`${operation}: expected a url with http:// or https://`);
  }
  expectChoice(operation, "type", type, Object.keys(optionNames));
  expectNames(operation, options, ["type", "name", "ask", "apis", ...optionNames[type]]);
  const schema = type === "mcp" ? callSchema : { type: "object" };
  const provider = { type, apis: declarationsOf(options), settings: settingsOf(options) };
  return {
    name,
    description: `${type} of the provider`,
    input: schemaOf(schema),
    definition: { name, description: `${type} of the provider`, schema, provider },
    ask,
    execute: () => failed("The provider runs it."),
    "~execute": allow,
    "~request": decideTools,
  };
}

/** The options of each type, beside those of all. */
const optionNames: Readonly<Record<ProviderToolOptions["type"], readonly string[]>> = {
  web_search: ["allowedDomains", "blockedDomains", "maxUses", "location"],
  code_execution: [],
  file_search: ["stores", "maxResults"],
  mcp: ["url", "authorization", "allowedTools"],
  other: ["settings"],
};

/** The JSON Schema of a call that a provider asks about. */
const callSchema = {
  type: "object",
  properties: { tool: { type: "string" }, arguments: { type: "object" } },
  required: ["tool", "arguments"],
};

/** Returns the settings that guards see: no token, and no fields of a vendor. */
function settingsOf(options: ProviderToolOptions): ProviderSettings {
  if (options.type === "other") return options.settings ?? {};
  const { ask: _, apis: _apis, name: _name, ...settings } = { name: "", ...options };
  return JSON.parse(JSON.stringify({ ...settings, authorization: undefined }));
}

type ProviderSettings = NonNullable<Extract<ProviderToolOptions, { type: "other" }>["settings"]>;

/** Answers a call that the engine has allowed: the provider runs it now. It runs only what the model wrote. */
function allow({ call, input, tool: { name } }: ExecuteContext): Promise<ToolResult> {
  const isSame = canonicalJson(call.input) === canonicalJson(input);
  return Promise.resolve(
    isSame ? text(approved) : failed(`Not run: the provider cannot run ${name} with a changed input.`),
  );
}
