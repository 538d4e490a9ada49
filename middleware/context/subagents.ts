/**
 * Agents as tools of another agent.
 *
 * @module
 */
import type { Agent, Middleware } from "../../mod.ts";

/**
 * Lets an agent hand tasks to others: each is a tool of its name and description, and runs as a run of its own, with its events among those of its
 * caller. Guards of the caller hold in it too, around its own. What a person is asked there, they are asked by the caller.
 *
 * Throws a `TypeError` for a name that no tool may have. How many work at once, and how deep, say the limits `agents` and `depth`.
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
  return { name: "subagents", tools: agents.map((agent) => agent.asTool()) };
}
