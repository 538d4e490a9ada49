/**
 * Client tools that have the name of a tool of the agent.
 */
import { agent, type Middleware, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { drop } from "../support/asking.ts";
import { post } from "../support/requests.ts";

const tool = { name: "drop", description: "Drops it", parameters: { type: "object" } };

const requests = {
  chatCompletions: {
    wire: chatCompletions(),
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "Hi" }], tools: [{ type: "function", function: tool }] },
  },
  responses: {
    wire: responses(),
    path: "/v1/responses",
    body: { input: "Hi", tools: [{ type: "function", ...tool }] },
  },
  agUi: {
    wire: agUi(),
    path: "/ag-ui",
    body: { threadId: "t", runId: "r", messages: [{ id: "1", role: "user", content: "Hi" }], tools: [tool] },
  },
};

for (const [name, { wire, path, body }] of Object.entries(requests)) {
  Deno.test(`${name}() refuses a client tool with the name of an agent's tool with 400, and no run begins`, async () => {
    const model = scripted("Done.");
    const bundle: Middleware = { name: "bundle", tools: [drop] };
    for (const parts of [{ tools: [drop] }, { use: [bundle] }]) {
      const app = serve(agent({ model, ...parts }), { wires: [wire] });
      const response = await post(app, path, body);
      assertEquals(response.status, 400);
      assertEquals((await response.text()).includes('the agent has a tool \\"drop\\"; expected another name'), true);
    }
    assertEquals(model.requests.length, 0);
  });
}
