/**
 * Lets the model search for tools, for agents with hundreds of them.
 *
 * @module
 */
import { failed, type Middleware, type Run, state, tool, type ToolDefinition } from "../../mod.ts";
import { schemaOf } from "../../src/core/kit.ts";

/** Options of `toolSearch()`. */
export interface ToolSearchOptions {
  /** Names of tools that every request contains. Default: none. */
  readonly keep?: readonly string[];
  /** Number of tools that one search activates. Default: 5. */
  readonly limit?: number;
  /** Number of active tools in a session, besides those of `keep`. Beyond, the tool that was activated first is deactivated. Default: 30. */
  readonly active?: number;
}

const searchTool = "search_tools";

/** The words of a tool, and its definition. */
interface Entry {
  readonly definition: ToolDefinition;
  readonly words: ReadonlySet<string>;
  readonly nameWords: ReadonlySet<string>;
}

/** The tools of a run that can be searched. */
interface Index {
  readonly entries: readonly Entry[];
  /** The number of tools that contain each word. */
  readonly counts: ReadonlyMap<string, number>;
}

/**
 * Hides the tools of the agent from the model, and gives it a tool `search_tools` that finds them by words of their names, descriptions and parameters. The tools
 * that a search finds are active for the rest of the session: requests contain them. A call of a tool that is not active fails. The tools of middleware and of
 * MCP servers count too, if their hooks stand before this one in `use`.
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
export function toolSearch({ keep = [], limit = 5, active = 30 }: ToolSearchOptions = {}): Middleware {
  for (const [name, value] of Object.entries({ limit, active })) {
    if (!(Number.isInteger(value) && value >= 1)) {
      throw new RangeError(`Cannot create toolSearch(): \`${name}\` is ${value}; expected a whole number of 1 or more`);
    }
  }
  const kept = new Set([...keep, searchTool]);
  const activated = state<readonly string[]>("tool_search.active", () => [], { lifetime: "session" });
  /** The tools of each run, and the index of each list of tools. */
  const definitions = new WeakMap<Run, readonly ToolDefinition[]>();
  const indexes = new WeakMap<readonly ToolDefinition[], Index>();

  function indexAt(run: Run): Index {
    const tools = definitions.get(run) ?? [];
    const index = indexes.get(tools) ?? indexOf(tools.filter(({ name }) => !kept.has(name)));
    indexes.set(tools, index);
    return index;
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
      const found = find(indexAt(ctx.run), query).slice(0, limit);
      if (found.length === 0) return "No tool found. Try other words.";
      const names = found.map(({ name }) => name);
      activated.update(ctx, (before) => [...before.filter((name) => !names.includes(name)), ...names].slice(-active));
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
      definitions.set(ctx.run, ctx.request.tools);
      const shown = new Set([...kept, ...activated.get(ctx)]);
      return await next({ request: { tools: ctx.request.tools.filter(({ name }) => shown.has(name)) } });
    },
    async tool(ctx, next) {
      const isKnown = !ctx.tool || kept.has(ctx.name) || activated.get(ctx).includes(ctx.name);
      return isKnown ? await next() : failed(`The tool "${ctx.name}" is not active. Find it with ${searchTool} first.`);
    },
  };
}

/** Returns the words of a text, in lower case. Names in camel case and snake case are split. */
function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

function indexOf(tools: readonly ToolDefinition[]): Index {
  const counts = new Map<string, number>();
  const entries = tools.map((definition): Entry => {
    const { name, description, schema } = definition;
    const parameters = Object.keys(Object(schema.properties)).join(" ");
    const words = wordsOf(`${name} ${description} ${parameters}`);
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return { definition, words, nameWords: wordsOf(name) };
  });
  return { entries, counts };
}

/** Returns the tools that match a query, best first. A rare word counts more than a frequent one, and a word of the name counts three times. */
function find({ entries, counts }: Index, query: string): readonly ToolDefinition[] {
  const words = wordsOf(query);
  const scored = entries.map(({ definition, words: own, nameWords }) => {
    let score = definition.name === query.trim() ? Infinity : 0;
    for (const word of words) {
      if (!own.has(word)) continue;
      score += Math.log(1 + entries.length / (counts.get(word) ?? 1)) * (nameWords.has(word) ? 3 : 1);
    }
    return { definition, score };
  });
  return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).map(({ definition }) => definition);
}
