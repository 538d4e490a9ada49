/**
 * Explains an agent: the chain of hooks at every point, the groups of calls, and the tools. An import of its own: `@jizai/jizai/explain`.
 *
 * @module
 */
import type { Agent } from "./agent.ts";
import type { AgentParts } from "./definition.ts";
import { points } from "./each_hook.ts";
import { nameOf } from "./middleware.ts";
import type { AnyTool } from "./tool.ts";

/**
 * Returns the hooks of every point, the outermost first, the middleware that request groups of calls, and the tools of an agent, as text.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { explain } from "@jizai/jizai/explain";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const shout: Middleware = { name: "shout", prompt: (_ctx, next) => next() };
 * assertStringIncludes(explain(agent({ model: scripted("Hi"), use: [shout] })), "prompt    shout → core");
 * ```
 */
export function explain<V, O>(agent: Agent<V, O>): string {
  const { name, tools, use } = agent["~definition"] as AgentParts; // agent() made it
  const chains = points.map((point) => {
    const chain = use.flatMap((middleware, index) => middleware[point] ? [nameOf(middleware, index)] : []);
    return `${point.padEnd(9)} ${[...chain, "core"].join(" → ")}`;
  });
  const requests = use.flatMap((middleware, index) => middleware.groups ? [nameOf(middleware, index)] : []);
  const groups = requests.length > 0 ? `requested by ${requests.join(", ")}` : "not requested";
  const named = tools.map((tool) => `${tool.name}${noteOf(tool)}`);
  return [
    name,
    ...chains,
    `${"groups".padEnd(9)} ${groups}`,
    `${"tools".padEnd(9)} ${named.join(", ") || "none"}`,
  ].join("\n");
}

/** Returns the statement of a tool about calls that overlap. */
function noteOf({ parallel, readOnly }: AnyTool): string {
  if (typeof parallel === "function") return " (parallel by input)";
  if (parallel !== undefined) return parallel ? " (parallel)" : " (alone)";
  return readOnly ? " (read-only)" : "";
}
