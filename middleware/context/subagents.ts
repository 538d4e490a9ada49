/**
 * Adds agents as tools of another agent.
 *
 * @module
 */
import type { Agent, Middleware } from "../../mod.ts";
import { asTool } from "../../src/core/features/subagents.ts";

/**
 * Adds each agent as a tool with its name and its description. A call starts a run of that agent, whose events appear among those of the caller. The caller's
 * guards also apply in it, around its own, and its questions to a person become questions of the caller.
 *
 * Throws a `TypeError` for a name that no tool can have. The limits `agents` and `depth` bound how many agents run at once, and how deeply they nest.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { subagents } from "@jizai/jizai/middleware/subagents";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const reader = agent({ name: "reader", description: "Reads what you name", model: scripted("It says: be brief.") });
 * const writer = agent({ name: "writer", description: "Writes what you say", model: scripted("Brief.") });
 *
 * const editor = agent({
 *   model: scripted({ calls: [["reader", { prompt: "The rules" }], ["writer", { prompt: "A title" }]] }, "Done."),
 *   use: [subagents([reader, writer])],
 * });
 * const { text, messages } = await editor.run("Make it good").result;
 * assertEquals([text, messages.length], ["Done.", 4]);
 * ```
 */
export function subagents<V = unknown>(agents: readonly Agent<V, unknown>[]): Middleware<V> {
  return { name: "subagents", tools: agents.map((agent) => asTool(agent)) };
}
