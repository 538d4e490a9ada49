/**
 * The options of tools that providers run.
 *
 * @module
 */
import type { ProviderApi, ProviderDeclaration } from "../../../model/model.ts";
import type { Json } from "../../../protocol/part.ts";

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
