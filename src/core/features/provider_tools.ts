/**
 * Tools that the provider of the model runs itself: web search, code execution, file search, remote MCP servers.
 *
 * @module
 */
import { approve } from "../approval_hooks.ts";
import { Pause } from "../interrupt.ts";
import { canonicalJson } from "../lib/json.ts";
import { expectChoice } from "../lib/options.ts";
import type { Approval, ExecuteContext, ModelContext } from "../points.ts";
import { ask, failed, text } from "../hook_answers.ts";
import { engineOf } from "../run.ts";
import { state } from "../state.ts";
import { schemaOf, type Tool, toolNamePattern, toolNameRule } from "../tool.ts";
import type { ProviderApi, ProviderDeclaration, ToolDefinition } from "../../model/model.ts";
import { approved } from "../../model/provider_tools.ts";
import type { ToolResult } from "../../protocol/message.ts";
import type { Json } from "../../protocol/part.ts";
import { expectNames } from "../../protocol/shape.ts";
export type { ProviderApi, ProviderDeclaration, ProviderTool } from "../../model/model.ts";

// The options of tools that providers run.

/** Options of every kind of tool. */
export interface CommonOptions {
  /** Whether a person must approve each call. Where the provider cannot ask, the tool is removed from requests. Default: false. */
  readonly ask?: boolean;
  /** Changes of the declaration for an API, such as a newer type or further settings of the vendor. Default: none. */
  readonly apis?: { readonly [api in ProviderApi]?: ProviderDeclaration };
}

/** Searches the web: Anthropic, Gemini, OpenAI. */
export interface WebSearchOptions extends CommonOptions {
  /** The kind of the tool. */
  readonly type: "web_search";
  /** The name, for rules, events and `toolChoice`. Default: `web_search`. */
  readonly name?: string;
  /** The domains to search. Anthropic, and OpenAI over `openai_responses`. Default: all. */
  readonly allowedDomains?: readonly string[];
  /** The domains to leave out. Anthropic. Default: none. */
  readonly blockedDomains?: readonly string[];
  /** The number of searches in one response. Anthropic. Default: the provider's. */
  readonly maxUses?: number;
  /** The approximate location of the person. Anthropic and OpenAI. Default: none. */
  readonly location?: Readonly<Partial<Record<"city" | "region" | "country" | "timezone", string>>>;
}

/** Runs code in a sandbox of the provider: Anthropic, Gemini, OpenAI over `openai_responses`. */
export interface CodeExecutionOptions extends CommonOptions {
  /** The kind of the tool. */
  readonly type: "code_execution";
  /** The name, for rules, events and `toolChoice`. Default: `code_execution`. */
  readonly name?: string;
}

/** Searches files that were uploaded to the provider: Gemini, OpenAI over `openai_responses`. */
export interface FileSearchOptions extends CommonOptions {
  /** The kind of the tool. */
  readonly type: "file_search";
  /** The name, for rules, events and `toolChoice`. Default: `file_search`. */
  readonly name?: string;
  /** The provider's ids of the stores. */
  readonly stores: readonly string[];
  /** The number of results of one search. OpenAI. Default: the provider's. */
  readonly maxResults?: number;
}

/** Calls the tools of a remote MCP server: Anthropic, OpenAI over `openai_responses`. */
export interface RemoteMcpOptions extends CommonOptions {
  /** The kind of the tool. */
  readonly type: "mcp";
  /** The name of the server, for rules, events and `toolChoice`. */
  readonly name: string;
  /** The address of the server. */
  readonly url: string;
  /** The token that the provider sends to the server. Default: none. */
  readonly authorization?: string;
  /** The tools that may be called. Default: all. */
  readonly allowedTools?: readonly string[];
}

/** Another tool of one provider, in the form of its API. */
export interface OtherToolOptions extends CommonOptions {
  /** The kind of the tool. */
  readonly type: "other";
  /** The name, for rules, events and `toolChoice`. */
  readonly name: string;
  /** The settings that guards see. Default: none. */
  readonly settings?: { readonly [name: string]: Json };
  /** The declaration for each API that has the tool. */
  readonly apis: { readonly [api in ProviderApi]?: ProviderDeclaration };
}

/** Options of `providerTool()`. */
export type ProviderToolOptions =
  | WebSearchOptions
  | CodeExecutionOptions
  | FileSearchOptions
  | RemoteMcpOptions
  | OtherToolOptions;

// The declarations of provider-run tools for each API. A kind or a setting that an API lacks has no declaration for it.

type Declarations = { readonly [api in ProviderApi]?: ProviderDeclaration };

/** Returns the declarations of a tool, with the changes of its option `apis`. */
function declarationsOf(options: ProviderToolOptions): Declarations {
  const { apis = {} } = options;
  const known = kindOf(options);
  const merged = { ...known };
  for (
    const [api, { tool, fields, headers, ...more }] of Object.entries(apis) as [ProviderApi, ProviderDeclaration][]
  ) { // the keys of the option
    const before = known[api];
    merged[api] = {
      ...before,
      ...((before?.tool || tool) && { tool: { ...before?.tool, ...tool } }),
      ...((before?.fields || fields) && { fields: { ...before?.fields, ...fields } }),
      ...((before?.headers || headers) && { headers: { ...before?.headers, ...headers } }),
      ...more,
    };
  }
  return merged;
}

function kindOf(options: Exclude<ProviderToolOptions, OtherToolOptions> | OtherToolOptions): Declarations {
  switch (options.type) {
    case "web_search":
      return webSearch(options);
    case "code_execution":
      return codeExecution;
    case "file_search":
      return fileSearch(options);
    case "mcp":
      return remoteMcp(options);
    case "other":
      return {};
  }
}

function webSearch({ allowedDomains, blockedDomains, maxUses, location }: WebSearchOptions): Declarations {
  const at = location && { user_location: { type: "approximate", ...location } };
  const isFiltered = blockedDomains !== undefined || maxUses !== undefined;
  return {
    anthropic: {
      tool: {
        type: "web_search_20260318",
        name: "web_search",
        allowed_callers: ["direct"], // by default the provider also runs code, to filter the results
        ...(allowedDomains && { allowed_domains: allowedDomains }),
        ...(blockedDomains && { blocked_domains: blockedDomains }),
        ...(maxUses !== undefined && { max_uses: maxUses }),
        ...at,
      },
      choice: { tool_choice: { type: "tool", name: "web_search" } },
    },
    ...(!isFiltered && {
      openai_responses: {
        tool: {
          type: "web_search",
          ...(allowedDomains && { filters: { allowed_domains: allowedDomains } }),
          ...at,
        },
        fields: { include: ["web_search_call.action.sources"] },
        choice: { tool_choice: { type: "web_search" } },
      },
    }),
    ...(!isFiltered && !allowedDomains && {
      openai: {
        fields: {
          web_search_options: location ? { user_location: { type: "approximate", approximate: location } } : {},
        },
      },
    }),
    ...(!isFiltered && !allowedDomains && !location && { gemini: { tool: { googleSearch: {} } } }),
  };
}

const codeExecution: Declarations = {
  anthropic: {
    tool: { type: "code_execution_20260521", name: "code_execution" },
    choice: { tool_choice: { type: "tool", name: "code_execution" } },
  },
  gemini: { tool: { codeExecution: {} } },
  openai_responses: {
    tool: { type: "code_interpreter", container: { type: "auto" } },
    fields: { include: ["code_interpreter_call.outputs"] },
    choice: { tool_choice: { type: "code_interpreter" } },
  },
};

function fileSearch({ stores, maxResults }: FileSearchOptions): Declarations {
  return {
    openai_responses: {
      tool: {
        type: "file_search",
        vector_store_ids: stores,
        ...(maxResults !== undefined && { max_num_results: maxResults }),
      },
      fields: { include: ["file_search_call.results"] },
      choice: { tool_choice: { type: "file_search" } },
    },
    ...(maxResults === undefined && { gemini: { tool: { fileSearch: { fileSearchStoreNames: stores } } } }),
  };
}

function remoteMcp({ name, url, authorization, allowedTools }: RemoteMcpOptions): Declarations {
  const enabled = allowedTools && {
    default_config: { enabled: false },
    configs: Object.fromEntries(allowedTools.map((tool) => [tool, { enabled: true }])),
  };
  return {
    anthropic: {
      tool: { type: "mcp_toolset", mcp_server_name: name, ...enabled },
      fields: {
        mcp_servers: [{ type: "url", name, url, ...(authorization && { authorization_token: authorization }) }],
      },
      headers: { "anthropic-beta": "mcp-client-2025-11-20" },
    },
    openai_responses: {
      tool: {
        type: "mcp",
        server_label: name,
        server_url: url,
        require_approval: "never",
        ...(authorization && { authorization }),
        ...(allowedTools && { allowed_tools: allowedTools }),
      },
      choice: { tool_choice: { type: "mcp", server_label: name } },
      asked: { require_approval: "always" },
    },
  };
}

// The decision about the provider-run tools of a request, before it is sent.

/** The names of the tools whose removal the run was warned of. */
const warned = /* @__PURE__ */ state<readonly string[]>("provider_tools.removed", () => []);

/** Returns the context with a request that contains only the tools that the guards allow, or that the provider asks about. */
async function decideTools(ctx: ModelContext): Promise<ModelContext> {
  const { request, request: { model } } = ctx;
  const { definition: { use }, settings: { toolsByName } } = engineOf(ctx.run);
  const isGuarded = use.some(({ approval }) => approval !== undefined);
  const tools: ToolDefinition[] = [];
  for (const definition of request.tools) {
    const { name, provider } = definition;
    if (!provider) tools.push(definition);
    else if (model.asks?.includes(provider.type)) {
      const ask = isGuarded || toolsByName.get(name)?.ask === true;
      tools.push({ ...definition, provider: { ...provider, ask } });
    } else if (await isAllowed(ctx, definition)) tools.push(definition);
  }
  return tools.length === request.tools.length && tools.every((tool, index) => tool === request.tools[index])
    ? ctx
    : { ...ctx, request: { ...request, tools } };
}

/** Whether the guards allow a tool as it is declared. Warns once per run if they do not. */
async function isAllowed(ctx: ModelContext, { name, provider }: ToolDefinition): Promise<boolean> {
  const { run, signal, emit, vars, turn } = ctx;
  const engine = engineOf(run);
  const input = provider?.settings ?? {};
  const call = { id: name, name, input };
  const tool = engine.settings.toolsByName.get(name);
  const about = { run, signal, emit, vars, turn, call, name, input, parsed: input, unparsed: input, tool };
  const deciding = { engine, parsed: { input, json: input }, guards: new Map() };
  const approval = await approve(about, deciding).catch((error): Approval => {
    if (error instanceof Pause) return ask("A hook paused the call.");
    throw error;
  });
  if (approval.type === "allow" && approval.input === undefined) return true;
  const known = warned.get(ctx);
  if (known.includes(name)) return false;
  warned.set(ctx, [...known, name]);
  const reasons = {
    allow: "a guard changed its settings",
    ask: `it needs the approval of a person, and ${ctx.request.model.id} cannot ask before it runs`,
    deny: `a guard denied it${approval.type === "deny" ? `: ${approval.reason}` : ""}`,
  };
  engine.events.warn("tool.removed", `The tool ${name} was removed from the request: ${reasons[approval.type]}`, {
    point: "approval",
  });
  return false;
}

// The tool that `providerTool()` returns.

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
