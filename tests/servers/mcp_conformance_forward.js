// Sends a scenario of the conformance suite to the test, whose address is the first argument, and ends as the scenario did.
const [address, url] = Deno.args;
const { MCP_CONFORMANCE_SCENARIO: name, MCP_CONFORMANCE_CONTEXT: context = "{}" } = Deno.env.toObject();
const response = await fetch(address, {
  method: "POST",
  body: JSON.stringify({ name, url, context: JSON.parse(context) }),
});
Deno.exit(response.ok ? 0 : 1);
