import { agent, type Event, memory, serve, state, tool, ToolError } from "@jizai/jizai";
import { sharedState } from "@jizai/jizai/middleware/shared_state";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import * as z from "zod";
import { reaching } from "../support/chat.ts";

const todos = state("todos", (): readonly string[] => [], { lifetime: "session" });
const count = state("count", () => 0);

const add = tool({
  name: "add",
  description: "Adds a todo",
  input: z.object({ todo: z.string() }),
  execute({ todo }, ctx) {
    todos.update(ctx, (all) => [...all, todo]);
    if (todo === "") throw new ToolError("There is nothing to do.");
    return "Noted.";
  },
});
const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Nothing." });
const drop = tool({ name: "drop", description: "Drops", input: z.object({}), ask: true, execute: () => "Dropped." });

/** Returns the shared state that a run shows, and its source. */
function showing(...calls: (readonly [name: string, input: unknown])[]) {
  const shown: unknown[] = [];
  const model = scripted(...calls.map((call) => ({ calls: [call] })), "Done.", "Again.");
  const observe = (event: Event) => void (event.type === "data" && shown.push([event.name, event.data]));
  return {
    shown,
    assistant: agent({ model, tools: [add, look, drop], use: [sharedState({ todos, count })], observe }),
  };
}

Deno.test("sharedState() emits the state when a session is opened, and after calls that change it", async () => {
  const { shown, assistant } = showing(["add", { todo: "Sleep" }], ["look", {}], ["add", { todo: "" }]);
  const store = memory();
  await assistant.run({ prompt: "Go", session: "s1", store }).result;
  assertEquals(shown, [
    ["state", { todos: [], count: 0 }],
    ["state", { todos: ["Sleep"], count: 0 }],
    ["state", { todos: ["Sleep", ""], count: 0 }],
  ]);
  shown.splice(0);
  await assistant.run({ prompt: "And?", session: "s1", store }).result;
  assertEquals(shown, [["state", { todos: ["Sleep", ""], count: 0 }]]);
});

Deno.test("sharedState() emits the state again in a resumed run", async () => {
  const { shown, assistant } = showing(["add", { todo: "Sleep" }], ["drop", {}]);
  const { session } = await assistant.run("Go").result;
  shown.splice(0);
  await assistant.resume({ session, answers: [{ callId: "call_2", type: "approve" }] }).result;
  assertEquals(shown, [["state", { todos: ["Sleep"], count: 0 }]]);
});

Deno.test("AG-UI clients receive sharedState() as the agent's state", async () => {
  const { assistant } = showing(["add", { todo: "Sleep" }]);
  const app = serve(assistant, { wires: [agUi()] });
  const client = new HttpAgent({ url: "/ag-ui", fetch: reaching(app) });
  client.addMessage({ id: "m1", role: "user", content: "Go" });
  await client.runAgent();
  assertEquals(client.state, { todos: ["Sleep"], count: 0 });
});

Deno.test("sharedState() obeys the laws of middleware", async () => {
  await testMiddleware(() => sharedState({ todos, count }));
});
