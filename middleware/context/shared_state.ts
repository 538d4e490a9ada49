/**
 * State that clients are shown.
 *
 * @module
 */
import { type Middleware, type Scope, type State, state } from "../../mod.ts";

/**
 * Shows clients what is in `states`, by name: as data named `state`, when a session is opened, and whenever a call has changed it. AG-UI's clients have it as
 * the agent's state, those of the AI SDK as a part `data-state`. Only what is named is shown, and it has to be JSON.
 *
 * ```ts
 * import { agent, type Event, state, tool } from "@jizai/jizai";
 * import { sharedState } from "@jizai/jizai/middleware/shared_state";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const todos = state("todos", (): string[] => [], { lifetime: "session" });
 * const add = tool({
 *   name: "add",
 *   description: "Adds a todo",
 *   input: z.object({ todo: z.string() }),
 *   execute: ({ todo }, ctx) => todos.update(ctx, (all) => [...all, todo]),
 * });
 * const shown: unknown[] = [];
 * const assistant = agent({
 *   model: scripted({ calls: [["add", { todo: "Sleep" }]] }, "Noted."),
 *   tools: [add],
 *   use: [sharedState({ todos })],
 *   observe: (event: Event) => void (event.type === "data" && shown.push(event.data)),
 * });
 * await assistant.run("Remind me to sleep").result;
 * assertEquals(shown, [{ todos: [] }, { todos: ["Sleep"] }]);
 * ```
 */
export function sharedState(states: Readonly<Record<string, State<unknown>>>): Middleware {
  const told = state("shared_state.told", () => "");

  function tell(at: Scope): void {
    const now = JSON.stringify(
      Object.fromEntries(Object.entries(states).map(([name, state]) => [name, state.get(at)])),
    );
    if (now === told.get(at)) return;
    told.set(at, now);
    at.emit({ type: "data", name: "state", data: JSON.parse(now) });
  }

  return {
    name: "shared_state",
    async session(ctx, next) {
      told.set(ctx, ""); // whoever hears a run go on may not have heard it before
      tell(ctx);
      return await next();
    },
    async tool(ctx, next) {
      try {
        return await next();
      } finally {
        tell(ctx);
      }
    },
  };
}
