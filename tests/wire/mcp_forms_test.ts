/**
 * Questions that an MCP server asks (elicitation), in every dialect.
 */
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { inputRequired } from "@modelcontextprotocol/server";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { served } from "../support/mcp_server.ts";
import { dialects, servedEverywhere } from "../support/paying.ts";
import { post } from "../support/requests.ts";

for (const [name, { prompt, approve }] of Object.entries(dialects)) {
  Deno.test(`${name} shows what an MCP server asks, and the server receives the answer`, async () => {
    const received: unknown[] = [];
    await using server = served((server) => {
      server.registerTool("book", { description: "Books" }, ({ mcpReq: { inputResponses } }) => {
        received.push(inputResponses);
        if (inputResponses) return { content: [{ type: "text", text: "Booked." }] };
        const form = {
          mode: "form" as const,
          message: "Is the booking right?",
          requestedSchema: { type: "object" as const, properties: {} },
        };
        return inputRequired({ inputRequests: { sure: inputRequired.elicit(form) } });
      });
    });
    const model = scripted({ calls: [["mcp__hotel__book", {}]] }, "Done.");
    const app = servedEverywhere(model, [], [mcp({ servers: { hotel: { url: server.url } } })]);
    const asked = await (await post(app, prompt.path, prompt.body, prompt.headers)).text();
    assertStringIncludes(asked.replaceAll("\\", ""), 'The MCP server "hotel" asks: Is the booking right?');
    const { path, body, headers } = await approve(asked, app);
    assertStringIncludes(await (await post(app, path, body, headers)).text(), "Done.");
    assertEquals(received, [undefined, { sure: { action: "accept", content: {} } }]);
  });
}
