/**
 * Explains an agent: the chain of hooks at every point, and the tools. An import of its own: `@jizai/jizai/explain`.
 *
 * @module
 */
import { points } from "../hooks/each_hook.ts";
import { nameOf } from "../hooks/middleware.ts";
import type { Agent } from "./agent.ts";
import type { AgentParts } from "./definition.ts";

/**
 * Returns the hooks of every point, the outermost first, and the tools of an agent, as text.
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
  const { name, tools, use } = agent["~definition"] as AgentParts<unknown>; // agent() made it
  const chains = points.map((point) => {
    const chain = use.flatMap((middleware, index) => middleware[point] ? [nameOf(middleware, index)] : []);
    return `${point.padEnd(9)} ${[...chain, "core"].join(" → ")}`;
  });
  return [name, ...chains, `${"tools".padEnd(9)} ${tools.map((tool) => tool.name).join(", ") || "none"}`].join("\n");
}
