import { agent, type Scope, vars } from "@jizai/jizai";
import { mcp, type McpServer } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import type { McpServer as Server } from "@modelcontextprotocol/server";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { served } from "../support/mcp_server.ts";

const city = z.object({ city: z.string() });

function weather(server: Server): void {
  server.registerTool("weather", { description: "Weather", inputSchema: city }, ({ city }) => {
    return { content: [{ type: "text", text: `Sun in ${city}` }] };
  });
}

/** An agent that asks for the weather in each run. */
function runs<V>(server: McpServer<V>) {
  return agent({
    vars: vars<V>(),
    model: () => scripted({ calls: [["mcp__sky__weather", { city: "Kyoto" }]] }, "Done."),
    use: [mcp<V>({ servers: { sky: server } })],
  });
}

const greeted = ["server/discover", "tools/list", "tools/call"];

Deno.test("mcp() asks a server for its tools again when the time is over that the server gave, and not before", async () => {
  using time = new FakeTime();
  await using server = served(weather, { fresh: { ttlMs: 60_000, cacheScope: "private" } });
  const assistant = runs({ url: server.url });
  await assistant.run("First").result;
  await time.tickAsync(59_000);
  const { messages } = await assistant.run("Second").result;
  assertEquals(
    messages.flatMap((message) => message.role === "tool" ? message.results.map(({ status }) => status) : []),
    [
      "ok",
    ],
  );
  assertEquals(server.received, [...greeted, "tools/call"]);
  await time.tickAsync(1_001);
  await assistant.run("Third").result;
  assertEquals(server.received.slice(4), greeted);
});

/** The token of a request. */
interface Vars {
  readonly token: string;
}

for (const cacheScope of ["public", "private"] as const) {
  Deno.test(`mcp() shares a ${cacheScope} list of tools ${cacheScope === "public" ? "among" : "with no other one of"} its users`, async () => {
    await using server = served(weather, { fresh: { ttlMs: 60_000, cacheScope } });
    const headers = ({ vars }: Scope<Vars>) => ({ authorization: `Bearer ${vars.token}` });
    const assistant = runs<Vars>({ url: server.url, headers });
    for (const token of ["ada", "bob", "ada"]) await assistant.run({ prompt: "Go", vars: { token } }).result;
    const later = cacheScope === "public" ? ["tools/call"] : greeted;
    assertEquals(server.received, [...greeted, ...later, "tools/call"]);
  });
}

Deno.test("mcp() keeps no private list whose user is known only to a function", async () => {
  await using server = served(weather, { fresh: { ttlMs: 60_000, cacheScope: "private" } });
  const assistant = runs<Vars>({
    url: server.url,
    auth: ({ vars }: Scope<Vars>) => ({ token: () => Promise.resolve(vars.token) }),
  });
  for (const token of ["ada", "bob"]) await assistant.run({ prompt: "Go", vars: { token } }).result;
  assertEquals(server.received, [...greeted, ...greeted]);
  assertEquals(server.headers.get("authorization"), "Bearer bob");
});

Deno.test("mcp() asks for the tools again after a call that failed", async () => {
  let name = "weather";
  await using server = served((server) => {
    server.registerTool(name, { description: "Weather" }, () => ({ content: [] }));
  }, { fresh: { ttlMs: 60_000, cacheScope: "private" } });
  const assistant = runs({ url: server.url });
  await assistant.run("First").result;
  name = "climate";
  await assistant.run({ prompt: "Second", onError() {} }).result;
  await assistant.run({ prompt: "Third", onError() {} }).result;
  assertEquals(server.received, [...greeted, "tools/call", "server/discover", "tools/list"]);
});
