/**
 * The client of the conformance suite of MCP: an agent that calls every tool of the suite's server, and answers every question.
 *
 * @module
 */
import { agent, memory, type PersonAnswer, type Question } from "@jizai/jizai";
import { mcp, type McpAuth } from "@jizai/jizai/middleware/mcp";
import { scripted, type ScriptedCall } from "@jizai/jizai/model/scripted";
import {
  auth,
  ClientCredentialsProvider,
  type OAuthClientProvider,
  PrivateKeyJwtProvider,
} from "@modelcontextprotocol/client";

type JsonObject = { readonly [name: string]: unknown };

/** A scenario of the suite. */
export interface Scenario {
  readonly name: string;
  /** The URL of its server. */
  readonly url: string;
  /** More that its client must know, as the suite gives it. */
  readonly context: JsonObject;
}

/** Returns a value that fits a schema. */
function valueOf({ type, enum: values, default: given, properties, required }: JsonObject): unknown {
  if (given !== undefined) return given;
  if (Array.isArray(values)) return values[0];
  if (type === "object") {
    const names = Array.isArray(required) ? required : Object.keys(Object(properties));
    return Object.fromEntries(names.map((name) => [name, valueOf(Object(Object(properties)[name]))]));
  }
  return { number: 1, integer: 1, boolean: true, array: [] }[String(type)] ?? "text";
}

/** Approves what a server asks. The schema of an answer has that of the content. */
function approve({ callId, tool, schema }: Question): PersonAnswer {
  const { oneOf }: JsonObject = Object(schema);
  const [approval] = Array.isArray(oneOf) ? oneOf : [];
  return { callId, type: "approve", ...(tool === "form" && { input: valueOf(approval.properties.input) }) };
}

type Information = Parameters<NonNullable<OAuthClientProvider["saveClientInformation"]>>[0];
type Tokens = Parameters<OAuthClientProvider["saveTokens"]>[0];
type Discovery = Parameters<NonNullable<OAuthClientProvider["saveDiscoveryState"]>>[0];

/** Signs in as a person does: the authorization page redirects at once. The next run has the tokens. */
class Person {
  #information: Information | undefined;
  #tokens: Tokens | undefined;
  #verifier = "";
  #discovery: Discovery | undefined;
  /** The parameters with which the page came back. */
  returned: URLSearchParams | undefined;
  readonly redirectUrl = "http://localhost:3000/callback";
  readonly clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
  readonly clientMetadata = { client_name: "jizai", redirect_uris: [this.redirectUrl], application_type: "native" };

  constructor({ client_id, client_secret }: JsonObject) {
    if (client_id) this.#information = { client_id: String(client_id), client_secret: String(client_secret) };
  }
  clientInformation = () => this.#information;
  saveClientInformation = (information: Information) => void (this.#information = information);
  tokens = () => this.#tokens;
  saveTokens(tokens: Tokens) {
    this.#tokens = tokens;
    this.#discovery = undefined; // it was kept while the person signed in
  }
  saveCodeVerifier = (verifier: string) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;
  discoveryState = () => this.#discovery;
  saveDiscoveryState = (discovery: Discovery) => void (this.#discovery = discovery);
  async redirectToAuthorization(page: URL): Promise<void> {
    const response = await fetch(page, { redirect: "manual" });
    await response.body?.cancel();
    this.returned = new URL(response.headers.get("location") ?? "").searchParams;
  }
}

/** Returns the provider that a scenario of authorization wants. */
function providerOf({ name, context }: Scenario, person: Person): McpAuth | undefined {
  const [clientId, clientSecret, privateKey] = ["client_id", "client_secret", "private_key_pem"].map((name) =>
    String(context[name])
  ) as [string, string, string];
  const algorithm = String(context.signing_algorithm ?? "ES256");
  if (name === "auth/client-credentials-basic") return new ClientCredentialsProvider({ clientId, clientSecret });
  if (name === "auth/client-credentials-jwt") return new PrivateKeyJwtProvider({ clientId, privateKey, algorithm });
  return name.startsWith("auth/") ? person : undefined;
}

/** Returns the calls that the suite wants; one of each tool if it wants none. */
function callsOf(
  { toolCalls }: JsonObject,
  tools: readonly { readonly name: string; readonly schema: JsonObject }[],
): readonly ScriptedCall[] {
  if (Array.isArray(toolCalls)) {
    return toolCalls.map(({ name, arguments: input }) => ({ name: `mcp__s__${name}`, input }));
  }
  return tools.map(({ name, schema }) => {
    const other = tools.find((tool) => tool.name !== name);
    return { name, input: name.endsWith("_echo") ? { schema: other?.schema } : valueOf(schema) };
  });
}

/** Runs the agent, which continues after each pause. Returns true unless something failed. */
async function runAgent({ url, context }: Scenario, auth: McpAuth | undefined): Promise<boolean> {
  let failed = false;
  const onError = () => void (failed = true);
  const use = [mcp({ servers: { s: { url, ...(auth && { auth }) } } })];
  const first = agent({ model: scripted(({ tools }) => ({ calls: callsOf(context, tools) }), "Done."), use });
  const session = { session: "s1", store: memory(), onError };
  let result = await first.run({ prompt: "Go", ...session }).result;
  while (result.status === "paused") {
    const answers = result.questions.map(approve);
    result = await agent({ model: scripted("Done."), use }).resume({ ...session, answers }).result;
  }
  return !failed;
}

/** Runs a scenario. If the person had to sign in, the agent runs again, at most three times. Returns true unless something failed. */
export async function runScenario(scenario: Scenario): Promise<boolean> {
  const person = new Person(scenario.context);
  const provider = providerOf(scenario, person);
  for (let attempt = 0; attempt < 3; attempt++) {
    if (await runAgent(scenario, provider)) return true;
    const { returned } = person;
    if (!returned) return false;
    person.returned = undefined;
    const [authorizationCode, iss] = [returned.get("code") ?? "", returned.get("iss")];
    await auth(person, { serverUrl: scenario.url, authorizationCode, ...(iss !== null && { iss }) });
  }
  return false;
}
