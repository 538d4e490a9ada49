/**
 * Shows state to clients.
 *
 * @module
 */
import { type Middleware, type Scope, type State, state } from "../../mod.ts";

/**
 * Emits the values of `states` to clients, by name, as an event of type `data` named `state`: when a session is opened, and after each call that changed them.
 * AG-UI clients receive it as the agent's state, AI SDK clients as a part `data-state`. The values must be JSON.
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
  const shown = state("shared_state.shown", () => "");

  function emitChange(at: Scope): void {
    const now = JSON.stringify(
      Object.fromEntries(Object.entries(states).map(([name, state]) => [name, state.get(at)])),
    );
    if (now === shown.get(at)) return;
    shown.set(at, now);
    at.emit({ type: "data", name: "state", data: JSON.parse(now) });
  }

  return {
    name: "shared_state",
    async session(ctx, next) {
      shown.set(ctx, ""); // the client of a resumed run may be a new one
      emitChange(ctx);
      return await next();
    },
    async tool(ctx, next) {
      try {
        return await next();
      } finally {
        emitChange(ctx);
      }
    },
  };
}
