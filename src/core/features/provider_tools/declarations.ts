/**
 * The declarations of provider-run tools for each API. A kind or a setting that an API lacks has no declaration for it.
 *
 * @module
 */
import type { ProviderApi, ProviderDeclaration } from "../../../model/model.ts";
import type {
  FileSearchOptions,
  OtherToolOptions,
  ProviderToolOptions,
  RemoteMcpOptions,
  WebSearchOptions,
} from "./options.ts";

type Declarations = { readonly [api in ProviderApi]?: ProviderDeclaration };

/** Returns the declarations of a tool, with the changes of its option `apis`. */
export function declarationsOf(options: ProviderToolOptions): Declarations {
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
