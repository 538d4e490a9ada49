import { agent, textOf } from "@jizai/jizai";
import { mcp, type McpServer } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { ClientCredentialsProvider } from "@modelcontextprotocol/client";
import { assertEquals, assertThrows } from "@std/assert";
import { served } from "../support/mcp_server.ts";

const listen = { hostname: "127.0.0.1", port: 0, onListen() {} };

/** A server whose clients need a token, and its authorization server, which gives out one token and then the next. `asked` gets the requests of tokens. */
function guarded(tokens: readonly string[]) {
  const asked: { readonly grant: string | null; readonly key: string | null }[] = [];
  const accepted = new Set<string | null>();
  const inner = served((server) => {
    server.registerTool("greet", { description: "Greets" }, () => ({ content: [{ type: "text", text: "Hello!" }] }));
  });
  const authorization = Deno.serve(listen, async (request) => {
    const issuer = new URL(request.url).origin;
    const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
    if (request.method === "GET") return Response.json({ issuer, ...endpoints, response_types_supported: ["code"] });
    const body = await request.formData();
    asked.push({ grant: String(body.get("grant_type")), key: request.headers.get("x-key") });
    accepted.add(`Bearer ${tokens[asked.length - 1]}`);
    return Response.json({ access_token: tokens[asked.length - 1], token_type: "Bearer" });
  });
  const server = Deno.serve(listen, async (request) => {
    const { origin, pathname } = new URL(request.url);
    if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
      const authorization_servers = [`http://127.0.0.1:${authorization.addr.port}`];
      return Response.json({ resource: `${origin}/mcp`, authorization_servers });
    }
    if (request.headers.get("x-key") !== "k1" || !accepted.has(request.headers.get("authorization"))) {
      return new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
    }
    return await fetch(inner.url, { method: "POST", headers: request.headers, body: await request.text() });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    issuer: `http://127.0.0.1:${authorization.addr.port}`,
    asked,
    revoke: () => accepted.clear(),
    async [Symbol.asyncDispose]() {
      await Promise.all([server.shutdown(), authorization.shutdown(), inner[Symbol.asyncDispose]()]);
    },
  };
}

/** An agent that greets in each run. */
function greeting(server: McpServer) {
  const assistant = agent({
    model: () => scripted({ calls: [["mcp__hello__greet", {}]] }, "Done."),
    use: [mcp({ servers: { hello: server } })],
  });
  return async () => {
    const { messages } = await assistant.run({ prompt: "Go", onError() {} }).result;
    return messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  };
}

Deno.test("mcp() obtains a token with client credentials, keeps it, and obtains another when it is refused", async () => {
  await using server = guarded(["t1", "t2"]);
  const credentials = { clientId: "jizai", clientSecret: "s", expectedIssuer: server.issuer };
  const auth = new ClientCredentialsProvider(credentials);
  const run = greeting({ url: server.url, headers: { "x-key": "k1" }, auth });
  assertEquals(await run(), ["Hello!"]);
  assertEquals(await run(), ["Hello!"]);
  const one = { grant: "client_credentials", key: null }; // the headers of the server are not for its authorization server
  assertEquals(server.asked, [one]);
  server.revoke();
  assertEquals(await run(), ["Hello!"]);
  assertEquals(server.asked, [one, one]);
});

Deno.test("mcp() sends client credentials to no other authorization server than theirs", async () => {
  await using server = guarded(["t1"]);
  const credentials = { clientId: "jizai", clientSecret: "s", expectedIssuer: "https://issuer.example" };
  const run = greeting({
    url: server.url,
    headers: { "x-key": "k1" },
    auth: new ClientCredentialsProvider(credentials),
  });
  assertEquals(await run(), ['There is no tool "mcp__hello__greet". The tools are: none']);
  assertEquals(server.asked, []);
});

Deno.test("mcp() refuses a provider of tokens that is none", () => {
  assertThrows(
    () => mcp({ servers: { hello: { url: "https://a.example", auth: "token" as never } } }),
    TypeError,
    'Cannot use MCP server "hello": `auth` is "token"; expected a provider of OAuth, an object with token(), or a function',
  );
});
