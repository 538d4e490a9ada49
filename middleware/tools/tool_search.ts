/**
 * Lets the model search for tools, for agents with hundreds of them.
 *
 * @module
 */
import {
  failed,
  type Middleware,
  type ModelChange,
  type ModelContext,
  type ModelResponse,
  type Next,
  type Run,
  type Scope,
  state,
  tool,
  type ToolDefinition,
} from "../../mod.ts";
import { directCall, expectCount, expectNames, schemaOf } from "../../src/core/kit.ts";

/** Options of `toolSearch()`. */
export interface ToolSearchOptions {
  /** Names of tools that every request contains. Default: none. */
  readonly keep?: readonly string[];
  /** Number of tools that one search activates, at most `active`. Default: 5. */
  readonly limit?: number;
  /** Number of active tools in a session, besides those of `keep`. Beyond, the tool that was activated first is deactivated. Default: 30. */
  readonly active?: number;
  /** Whether the provider searches instead, if it can for the model. `limit` and `active` do not concern its searches. Default: true. */
  readonly provider?: boolean;
}

const searchTool = "search_tools";

/**
 * Hides the tools of the agent from the model, and gives it a tool `search_tools` that finds them by words of their names, descriptions and parameters. The
 * tools that a search finds are active for the rest of the session: requests contain them. A call of a tool that is not active fails. The tools of middleware
 * and of MCP servers count too, if their hooks stand before this one in `use`.
 *
 * If the provider can search the tools itself, it does: Anthropic for models since Claude 4.5, and OpenAI for those since GPT 5.4 over `openaiResponses()`.
 * Each request then contains the definitions of all tools, which the provider leaves out of the prompt until it finds them. So the beginning of the prompt
 * stays the same, and cached. A call of a tool that was found passes the same hooks as every other.
 *
 * Throws a `RangeError` if `limit` or `active` is not a whole number of 1 or more.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { toolSearch } from "@jizai/jizai/middleware/tool_search";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const tools = ["weather", "stocks", "calendar"].map((name) =>
 *   tool({ name, description: `Looks up ${name}`, input: z.object({}), execute: () => "Found." })
 * );
 * const model = scripted({ calls: [["search_tools", { query: "weather in Kyoto" }]] }, { calls: [["weather", {}]] }, "Sunny.");
 *
 * await agent({ model, tools, use: [toolSearch()] }).run("Weather?").result;
 * assertEquals(model.requests.map(({ tools }) => tools.map(({ name }) => name)), [
 *   ["search_tools"],
 *   ["weather", "search_tools"],
 *   ["weather", "search_tools"],
 * ]);
 * ```
 */
export function toolSearch(options: ToolSearchOptions = {}): Middleware {
  expectNames("Cannot create toolSearch()", options, ["keep", "limit", "active", "provider"]);
  const { keep = [], limit = 5, active = 30, provider = true } = options;
  expectCount("Cannot create toolSearch()", { limit, active });
  const kept = new Set([...keep, searchTool]);
  const activated = state<readonly string[]>("tool_search.active", () => [], { lifetime: "session" });
  /** The tools of each run. */
  const definitions = new WeakMap<Run, readonly ToolDefinition[]>();

  /** Returns the names of the tools that requests contain. */
  const shownAt = (at: Scope) => new Set([...kept, ...activated.get(at)]);

  function activate(at: Scope, names: readonly string[]): void {
    if (names.length === 0) return;
    const maxTools = Math.max(active, names.length);
    activated.update(at, (before) => [...before.filter((name) => !names.includes(name)), ...names].slice(-maxTools));
  }

  /** Lets the provider search: its requests contain all tools, and the tools that the model then calls are active. */
  async function defer(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    const { tools, options: { toolChoice } } = ctx.request;
    const forced = typeof toolChoice === "object" ? toolChoice.tool : undefined;
    const isDeferred = ({ name, provider }: ToolDefinition) => !provider && name !== forced && !kept.has(name);
    const response = await next({
      request: {
        tools: tools.filter(({ name }) => name !== searchTool)
          .map((tool) => isDeferred(tool) ? { ...tool, deferred: true } : tool),
      },
    });
    const called = new Set(response.parts.flatMap((part) => part.type === "call" ? [part.name] : []));
    activate(ctx, tools.filter(({ name }) => called.has(name) && !kept.has(name)).map(({ name }) => name));
    return response;
  }

  const search = tool({
    name: searchTool,
    description:
      "Searches the available tools by words of their names and descriptions. The tools it finds can be called in the next turn.",
    input: schemaOf<{ readonly query: string }>({
      type: "object",
      properties: { query: { type: "string", description: "The task, or words of the tool's name" } },
      required: ["query"],
      additionalProperties: false,
    }, (value) => {
      const { query } = Object(value);
      return typeof query === "string" ? { value: { query } } : { issues: [{ message: "expected `query`, a text" }] };
    }),
    parallel: false,
    execute({ query }, ctx) {
      const hidden = definitions.get(ctx.run)?.filter(({ name }) => !kept.has(name)) ?? [];
      const found = searchIn(hidden, query).slice(0, Math.min(limit, active));
      if (found.length === 0) return "No tool found. Try other words.";
      const names = found.map(({ name }) => name);
      activate(ctx, names);
      return found.map(({ name, description }) => `${name}: ${description}`).join("\n");
    },
  });

  return {
    name: "toolSearch",
    tools: [search],
    async session(ctx, next) {
      definitions.set(ctx.run, ctx.settings.tools.map(({ definition }) => definition));
      return await next();
    },
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      definitions.set(ctx.run, ctx.request.tools);
      if (provider && ctx.request.model.defers) return await defer(ctx, next);
      const shown = shownAt(ctx);
      return await next({ request: { tools: ctx.request.tools.filter(({ name }) => shown.has(name)) } });
    },
    async tool(ctx, next) {
      const isActive = ctx.run.state.has(directCall) || shownAt(ctx).has(ctx.name); // clients call tools by name
      if (!ctx.tool || isActive) return await next();
      return failed(`The tool "${ctx.name}" is not active. Find it with ${searchTool} first.`);
    },
  };
}

/** Returns the words of a text, in lower case. Names in camel case and snake case are split. */
function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

/** Returns the tools that match a query, best first. A rare word counts more than a frequent one, and a word of the name counts three times. */
function searchIn(tools: readonly ToolDefinition[], query: string): readonly ToolDefinition[] {
  const entries = tools.map((tool) => ({
    tool,
    name: wordsOf(tool.name),
    text: wordsOf([tool.description, ...Object.keys(Object(tool.schema.properties))].join(" ")),
    score: tool.name === query.trim() ? Infinity : 0,
  }));
  for (const word of wordsOf(query)) {
    const matches = entries.filter(({ name, text }) => name.has(word) || text.has(word));
    const rarity = Math.log(1 + tools.length / matches.length);
    for (const match of matches) match.score += match.name.has(word) ? 3 * rarity : rarity;
  }
  return entries.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).map(({ tool }) => tool);
}
