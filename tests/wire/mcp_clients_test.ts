/**
 * Clients that others wrote, and `mcp()`, over HTTP.
 */
import { agent, memory, serve, textOf, tool } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { assertEquals } from "@std/assert";
import { createMCPClient } from "npm:@ai-sdk/mcp@2.0.99";
import * as z from "zod";

/** A shop on this machine, whose tool `pay` asks before it pays. */
function shop() {
  const paid: number[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.number() }),
    ask: true,
    execute({ amount }, { progress }) {
      progress({ progress: 1, total: 1, message: "Paying" });
      paid.push(amount);
      return `Paid ${amount}.`;
    },
  });
  const output = z.object({ total: z.number() });
  const model = scripted({ calls: [["pay", { amount: 5 }]] }, '{"total":5}');
  const app = serve(agent({ name: "shop", model, tools: [pay], output }), { wires: [mcpWire({ tools: ["pay"] })] });
  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
  return {
    url: `http://127.0.0.1:${http.addr.port}/mcp`,
    paid,
    async [Symbol.asyncDispose]() {
      await http.shutdown();
    },
  };
}

for (const mode of ["auto", "legacy"] as const) {
  Deno.test(`the official client (${mode}) uses an agent and its tools`, async () => {
    await using server = shop();
    const asked: unknown[] = [];
    const client = new Client({ name: "test", version: "1" }, {
      capabilities: { elicitation: { form: {} } },
      ...(mode === "auto" && { versionNegotiation: { mode } }),
    });
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message);
      return Promise.resolve({ action: "accept", content: {} });
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
    const { tools } = await client.listTools();
    assertEquals(tools.map(({ name }) => name), ["shop", "pay"]);
    const progress: unknown[] = [];
    const onprogress = (each: unknown) => void progress.push(each);
    const result = await client.callTool({ name: "pay", arguments: { amount: 3 } }, { onprogress });
    if (mode === "auto") {
      assertEquals(result.content, [{ type: "text", text: "Paid 3." }]);
      assertEquals(progress, [
        { progress: 1, message: "Fulfilling input required by 'tools/call' (round 1)" }, // by the client itself
        { progress: 1, total: 1, message: "Paying" },
      ]);
      const { structuredContent } = await client.callTool({ name: "shop", arguments: { prompt: "Pay" } });
      assertEquals(structuredContent, { total: 5 });
      const question = (amount: number) => `Run pay?\npay {"amount":${amount}}`;
      assertEquals([asked, server.paid], [[question(3), question(5)], [3, 5]]);
    } else assertEquals([result.isError, asked, server.paid], [true, [], []]);
    await client.close();
  });
}

for (const protocolVersionDiscovery of [true, false]) {
  const which = protocolVersionDiscovery ? "the newest version" : "the version of 2025";

  Deno.test(`the client of the AI SDK uses an agent and its tools in ${which}`, async () => {
    await using server = shop();
    const client = await createMCPClient({ transport: { type: "http", url: server.url }, protocolVersionDiscovery });
    const { pay } = await client.tools();
    const result = await pay?.execute?.({ amount: 3 }, { toolCallId: "1", messages: [], context: {} });
    assertEquals([Object(result).isError, server.paid], [true, []]); // it cannot ask a person
    const { tools } = await client.listTools();
    assertEquals(tools.map(({ name, outputSchema }) => [name, outputSchema !== undefined]), [["shop", true], [
      "pay",
      false,
    ]]);
    await client.close();
  });
}

Deno.test("mcp() uses an agent that mcpWire() serves, and asks its person what that agent asks", async () => {
  await using server = shop();
  const use = [mcp({ servers: { shop: { url: server.url } } })];
  const buyer = agent({ model: scripted({ calls: [["mcp__shop__pay", { amount: 7 }]] }, "It is paid."), use });
  const session = { session: "s1", store: memory() };
  const { questions } = await buyer.run({ prompt: "Pay", ...session }).result;
  assertEquals(questions.map(({ tool, questions }) => [tool, questions]), [
    ["form", ['The MCP server "shop" asks: Run pay?\npay {"amount":7}']],
  ]);
  assertEquals(server.paid, []);
  const answers = questions.map(({ callId }) => ({ callId, type: "approve" } as const));
  const { text, messages } = await buyer.resume({ ...session, answers }).result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  assertEquals([text, results, server.paid], ["It is paid.", ["Paid 7."], [7]]);
});
