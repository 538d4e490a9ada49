import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { clientCommand, conformance } from "./mcp_conformance.ts";
import { runScenario } from "./mcp_conformance_client.ts";

/** The scenarios of clients that mcp() does not pass, each with the reason. The others are all that the revision 2026-07-28 requires, and its extensions. */
const notForClients = {
  "auth/dpop":
    "the provider of tokens is the choice of the application: the suite's client here has one without proofs",
  "auth/dpop-nonce": "as above",
  "auth/enterprise-managed-authorization": "as above: `CrossAppAccessProvider` of the official client does it",
  "auth/wif-jwt-bearer": "as above: an assertion of a workload is for a provider of the application",
};

Deno.test("mcp() passes the scenarios of clients of the official conformance suite", async () => {
  using connections = Deno.createHttpClient({ poolMaxIdlePerHost: 0 }); // the suite waits for the end of each connection
  const { fetch } = globalThis;
  using _fetch = stub(globalThis, "fetch", (url, init) => fetch(url, { ...init, client: connections }));
  await using client = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const passed = await runScenario(await request.json()).catch(() => false); // a scenario may want a failure
    return new Response(null, { status: passed ? 200 : 500 });
  });
  const command = clientCommand(`http://127.0.0.1:${client.addr.port}`);
  const [passed, failed] = await conformance("client", "--command", command, "--requirements", "2026-07-28");
  assertEquals([passed, failed], [35, Object.keys(notForClients)]);
});
