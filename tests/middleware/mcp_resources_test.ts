import { agent, type Middleware, textOf } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import type { McpServer as Server } from "@modelcontextprotocol/server";
import { assertEquals, assertThrows } from "@std/assert";
import { served } from "../support/mcp_server.ts";

/** A server with two resources: a text, and a picture. */
function library(server: Server): void {
  server.registerResource(
    "guide",
    "docs://guide",
    { description: "The guide", mimeType: "text/plain" },
    ({ href }) => ({
      contents: [{ uri: href, mimeType: "text/plain", text: "Read me." }, { uri: `${href}/2`, text: "And me." }],
    }),
  );
  server.registerResource("logo", "docs://logo", { mimeType: "image/png" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "image/png", blob: "AA==" }],
  }));
}

/** Calls one tool after another of an agent that may read the library. Returns the results. */
async function results(url: string, calls: readonly (readonly [string, object])[], use: readonly Middleware[] = []) {
  const model = scripted({ calls: calls.map(([name, input]) => ({ name: `mcp__docs__${name}`, input })) }, "Done.");
  const docs = mcp({ servers: { docs: { url, resources: true } } });
  const { messages } = await agent({ model, use: [...use, docs] }).run({ prompt: "Read", onError() {} }).result;
  const all = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return { all, names: model.requests[0]?.tools.map(({ name }) => name) };
}

for (const sessions of [false, true]) {
  Deno.test(`mcp() lists and reads the resources of a server ${sessions ? "of before 2026" : "of 2026"}`, async () => {
    await using server = served(library, { sessions });
    const { all, names } = await results(server.url, [
      ["list_resources", {}],
      ["read_resource", { uri: "docs://guide" }],
      ["read_resource", { uri: "docs://logo" }],
    ]);
    assertEquals(names, ["mcp__docs__list_resources", "mcp__docs__read_resource"]);
    const [list, guide, logo] = all;
    assertEquals(list && JSON.parse(textOf(list)), {
      resources: [
        { uri: "docs://guide", name: "guide", description: "The guide", mimeType: "text/plain" },
        { uri: "docs://logo", name: "logo", mimeType: "image/png" },
      ],
    });
    assertEquals(guide?.parts, [{ type: "text", text: "Read me." }, { type: "text", text: "And me." }]);
    assertEquals(logo?.parts, [{ type: "media", mediaType: "image/png", data: "AA==" }]);
  });
}

Deno.test("mcp() tells the model why a resource cannot be read, and guards see its address", async () => {
  await using server = served(library);
  const rules: Middleware = {
    name: "rules",
    approval: (ctx, next) =>
      Object(ctx.input).uri === "docs://logo" ? Promise.resolve({ type: "deny", reason: "Not this one." }) : next(),
  };
  const { all } = await results(server.url, [
    ["read_resource", { uri: "docs://none" }],
    ["read_resource", { uri: "docs://logo" }],
    ["read_resource", {}],
  ], [rules]);
  assertEquals(all.map(({ status }) => status), ["error", "denied", "error"]);
  assertEquals(all[0] && /docs:\/\/none/.test(textOf(all[0])), true);
});

Deno.test("mcp() leaves out a tool for resources whose name the server uses itself", async () => {
  await using server = served((server) => {
    library(server);
    server.registerTool(
      "read_resource",
      { description: "Mine" },
      () => ({ content: [{ type: "text", text: "Mine." }] }),
    );
  });
  const { all, names } = await results(server.url, [["read_resource", {}]]);
  assertEquals([names?.length, all.map(textOf)], [2, ["Mine."]]);
});

Deno.test("mcp() adds no tools for resources unless they are wanted", async () => {
  await using server = served(library);
  const model = scripted("Hello!");
  await agent({ model, use: [mcp({ servers: { docs: { url: server.url } } })] }).run({ prompt: "Hi", onError() {} })
    .result;
  assertEquals(model.requests[0]?.tools, []);
  const { message } = assertThrows(
    () => mcp({ servers: { docs: { url: server.url, resources: "all" as never } } }),
    TypeError,
  );
  assertEquals(message, 'Cannot use MCP server "docs": `resources` is "all"; expected true or false');
});
