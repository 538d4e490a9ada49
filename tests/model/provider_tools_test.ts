import {
  agent,
  type AnswerPart,
  deny,
  type Event,
  type Middleware,
  type Model,
  ModelError,
  type ModelOptions,
  type PersonAnswer,
  user,
} from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { providerTool, type ProviderToolOptions } from "@jizai/jizai/provider_tools";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { message, responseStream } from "../support/providers/openai_responses.ts";
import { readAll, recordRequests } from "../support/providers/sse.ts";

type ToolChoice = NonNullable<ModelOptions["toolChoice"]>;
type Adapter = (fetch: ReturnType<typeof recordRequests>["fetch"]) => Model;

const adapters = {
  anthropic: (fetch) => anthropic({ model: "m", fetch }),
  openai_responses: (fetch) => openaiResponses({ model: "m", fetch }),
  gemini: (fetch) => gemini({ model: "gemini-3-flash", fetch }),
  openai: (fetch) => openai({ model: "m", fetch }),
} as const satisfies Record<string, Adapter>;

/** Returns the body and the headers of a request with these tools, or the message of the error. */
async function sentBy(
  api: keyof typeof adapters,
  options: ProviderToolOptions,
  toolChoice?: ToolChoice,
) {
  const { sent, fetch } = recordRequests("");
  const tools = [providerTool(options).definition];
  const request = { tools, messages: [user("Hi")], options: toolChoice ? { toolChoice } : {} };
  await readAll(adapters[api](fetch), request).catch((error) => {
    if (error instanceof ModelError && error.message.includes("Cannot ask")) throw error;
  });
  return { ...sent[0]!.body, beta: sent[0]!.headers["anthropic-beta"] };
}

/** Returns the calls that the provider ran, and their results. */
function providerParts(events: readonly Event[]) {
  return events.flatMap((event) =>
    event.type === "provider_tool.started" || event.type === "provider_tool.finished" ? [event.content] : []
  );
}

/** The declaration of a web search for the messages API. */
const webSearch = { type: "web_search_20260318", name: "web_search", allowed_callers: ["direct"] };

Deno.test("providerTool() declares a web search in the form of each API", async () => {
  const location = { city: "Kyoto", country: "JP" };
  const at = { user_location: { type: "approximate", ...location } };
  const messages = await sentBy("anthropic", {
    type: "web_search",
    blockedDomains: ["a.com"],
    maxUses: 3,
    location,
  });
  assertEquals(messages.tools, [
    { ...webSearch, blocked_domains: ["a.com"], max_uses: 3, ...at },
  ]);
  const responses = await sentBy("openai_responses", { type: "web_search", allowedDomains: ["b.com"], location });
  assertEquals(responses.tools, [{ type: "web_search", filters: { allowed_domains: ["b.com"] }, ...at }]);
  assertEquals(responses.include, ["reasoning.encrypted_content", "web_search_call.action.sources"]);
  const content = await sentBy("gemini", { type: "web_search" });
  assertEquals(content.tools, [{ googleSearch: {} }]);
  const chat = await sentBy("openai", { type: "web_search", location });
  assertEquals([chat.tools, chat.web_search_options], [undefined, {
    user_location: { type: "approximate", approximate: location },
  }]);
});

Deno.test("providerTool() declares code execution, file search and remote MCP servers in the form of each API", async () => {
  assertEquals((await sentBy("anthropic", { type: "code_execution" })).tools, [
    { type: "code_execution_20260521", name: "code_execution" },
  ]);
  assertEquals((await sentBy("gemini", { type: "code_execution" })).tools, [{ codeExecution: {} }]);
  const code = await sentBy("openai_responses", { type: "code_execution" });
  assertEquals(code.tools, [{ type: "code_interpreter", container: { type: "auto" } }]);

  const files = await sentBy("openai_responses", { type: "file_search", stores: ["vs_1"], maxResults: 2 });
  assertEquals(files.tools, [{ type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 2 }]);
  assertEquals((await sentBy("gemini", { type: "file_search", stores: ["s"] })).tools, [
    { fileSearch: { fileSearchStoreNames: ["s"] } },
  ]);

  const mcp = {
    type: "mcp",
    name: "dice",
    url: "https://dice.example/mcp",
    authorization: "t",
    allowedTools: ["roll"],
  };
  const messages = await sentBy("anthropic", mcp as ProviderToolOptions); // of the kind mcp
  assertEquals([messages.tools, messages.mcp_servers, messages.beta], [
    [{
      type: "mcp_toolset",
      mcp_server_name: "dice",
      default_config: { enabled: false },
      configs: { roll: { enabled: true } },
    }],
    [{ type: "url", name: "dice", url: "https://dice.example/mcp", authorization_token: "t" }],
    "mcp-client-2025-11-20",
  ]);
  assertEquals((await sentBy("openai_responses", mcp as ProviderToolOptions)).tools, [{ // of the kind mcp
    type: "mcp",
    server_label: "dice",
    server_url: "https://dice.example/mcp",
    require_approval: "never",
    authorization: "t",
    allowed_tools: ["roll"],
  }]);
});

Deno.test("providerTool() takes the vendor's own settings, and tools that only one vendor has", async () => {
  const search = {
    type: "web_search",
    apis: { anthropic: { tool: { type: "web_search_20250305" } } },
  } as const;
  assertEquals((await sentBy("anthropic", search)).tools, [{ ...webSearch, type: "web_search_20250305" }]);
  const maps = { type: "other", name: "maps", apis: { gemini: { tool: { googleMaps: {} } } } } as const;
  assertEquals((await sentBy("gemini", maps)).tools, [{ googleMaps: {} }]);
});

Deno.test("an adapter rejects a provider tool or a setting that its API lacks, and names the adapters that have it", async () => {
  const rejected = async (api: keyof typeof adapters, options: ProviderToolOptions) =>
    (await assertRejects(() => sentBy(api, options), ModelError)).message;
  assertEquals(
    await rejected("anthropic", { type: "file_search", stores: ["s"] }),
    'Cannot ask m: anthropic does not run "file_search"; expected one of: openai_responses, gemini',
  );
  assertEquals(
    await rejected("openai", { type: "mcp", name: "dice", url: "https://dice.example" }),
    'Cannot ask m: openai does not run "dice"; expected one of: anthropic, openai_responses',
  );
  assertEquals(
    await rejected("openai_responses", { type: "web_search", maxUses: 2 }),
    'Cannot ask m: openai_responses does not run "web_search"; expected one of: anthropic',
  );
});

Deno.test("toolChoice forces a provider tool where the API can", async () => {
  const choice = { tool: "web_search" };
  assertEquals((await sentBy("anthropic", { type: "web_search" }, choice)).tool_choice, {
    type: "tool",
    name: "web_search",
  });
  assertEquals((await sentBy("openai_responses", { type: "web_search" }, choice)).tool_choice, { type: "web_search" });
  const error = await assertRejects(() => sentBy("gemini", { type: "web_search" }, choice), ModelError);
  assertEquals(error.message, 'Cannot ask gemini-3-flash: gemini cannot force a call of "web_search"');
});

Deno.test("providerTool() rejects a name that no provider accepts and an address that is not http(s)", () => {
  const url = "https://dice.example";
  assertThrows(() => providerTool({ type: "mcp", name: "my dice", url }), TypeError, "expected a name of 1 to 64");
  assertThrows(
    () => providerTool({ type: "mcp", name: "dice", url: "stdio:dice" }),
    TypeError,
    "expected a url with http",
  );
});

/** Runs an agent with a web search and code execution. Returns the names of the tools in its requests, and its warnings. */
async function offered(...use: Middleware[]) {
  const model = scripted("First.", "Second.");
  const again: Middleware = {
    stop: (ctx, next) =>
      ctx.continuations === 0 ? Promise.resolve({ type: "continue", messages: [user("Go on")] }) : next(),
  };
  const tools = [providerTool({ type: "web_search" }), providerTool({ type: "code_execution" })];
  const run = agent({ model, tools, use: [...use, again] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  return {
    tools: model.requests.map(({ tools }) => tools.map(({ name }) => name)),
    warnings: events.flatMap((event) => event.type === "warning" ? [[event.code, event.message]] : []),
  };
}

Deno.test("a deny or an ask rule removes a provider tool from every request, and warns once", async () => {
  assertEquals(await offered(), {
    tools: [["web_search", "code_execution"], ["web_search", "code_execution"]],
    warnings: [],
  });
  assertEquals(await offered(permissions({ deny: ["code_*"] })), {
    tools: [["web_search"], ["web_search"]],
    warnings: [[
      "tool.removed",
      "The tool code_execution was removed from the request: a guard denied it: code_execution is not permitted here.",
    ]],
  });
  assertEquals(await offered(permissions({ ask: ["web_search"] })), {
    tools: [["code_execution"], ["code_execution"]],
    warnings: [[
      "tool.removed",
      "The tool web_search was removed from the request: it needs the approval of a person, and scripted cannot ask before it runs",
    ]],
  });
});

Deno.test("a guard decides about a provider tool by its settings, and one that throws removes it", async () => {
  const seen: unknown[] = [];
  const guard: Middleware = {
    approval(ctx, next) {
      seen.push([ctx.name, ctx.input]);
      if (ctx.name === "dice") throw new Error("down");
      return ctx.name === "files" ? Promise.resolve(deny("no files")) : next();
    },
  };
  const model = scripted("Hello!");
  const tools = [
    providerTool({ type: "web_search", allowedDomains: ["a.com"] }),
    providerTool({ type: "mcp", name: "dice", url: "https://dice.example", authorization: "secret" }),
    providerTool({ type: "file_search", name: "files", stores: ["vs_1"] }),
  ];
  await agent({ model, tools, use: [guard] }).run({ prompt: "Hi", onError: () => {} }).result;
  assertEquals(seen, [
    ["web_search", { type: "web_search", allowedDomains: ["a.com"] }],
    ["dice", { type: "mcp", url: "https://dice.example" }],
    ["files", { type: "file_search", stores: ["vs_1"] }],
  ]);
  assertEquals(model.requests[0]?.tools.map(({ name }) => name), ["web_search"]);
});

Deno.test("a provider tool with ask is removed where the provider cannot ask", async () => {
  const model = scripted("Hello!");
  await agent({ model, tools: [providerTool({ type: "web_search", ask: true })] }).run("Hi").result;
  assertEquals(model.requests[0]?.tools, []);
});

const dice = providerTool({ type: "mcp", name: "dice", url: "https://dice.example/mcp" });
const question = {
  type: "mcp_approval_request",
  id: "mcpr_1",
  server_label: "dice",
  name: "roll",
  arguments: '{ "sides": 6 }',
};
const rolled = {
  type: "mcp_call",
  id: "mcp_1",
  approval_request_id: "mcpr_1",
  server_label: "dice",
  name: "roll",
  arguments: '{ "sides": 6 }',
  status: "completed",
  output: "4",
  error: null,
};

/** The streams of a question, and of the call with the answer. */
const asking = responseStream([{ type: "response.output_item.done", output_index: 0, item: question }]);
const answering = responseStream([
  { type: "response.output_item.done", output_index: 0, item: rolled },
  ...message(1, "You rolled 4."),
]);

Deno.test("openaiResponses() asks the guards of the agent before a remote MCP server is called", async () => {
  const { sent, fetch } = recordRequests(asking, answering);
  const seen: unknown[] = [];
  const guard: Middleware = {
    approval(ctx, next) {
      seen.push([ctx.name, ctx.input]);
      return next();
    },
  };
  const model = openaiResponses({ model: "m", fetch });
  const run = agent({ model, tools: [dice], use: [guard] }).run("Roll");
  const events = await Array.fromAsync(run.events);
  const { text } = await run.result;
  assertEquals([text, seen], ["You rolled 4.", [["dice", { tool: "roll", arguments: { sides: 6 } }]]]);
  assertEquals(sent.map(({ body }) => body.tools[0].require_approval), ["always", "always"]);
  assertEquals(sent[1]?.body.input.slice(1), [
    question,
    { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true },
  ]);
  assertEquals(
    providerParts(events),
    [
      {
        type: "provider_call",
        callId: "mcp_1",
        name: "roll",
        server: "dice",
        input: { sides: 6 },
        meta: { model: "m", item: { ...rolled, output: undefined } },
      },
      { type: "provider_result", callId: "mcp_1", name: "roll", status: "ok", output: "4" },
    ].map((part) => JSON.parse(JSON.stringify(part))),
  );
});

Deno.test("openaiResponses() refuses the call of a remote MCP server that a guard denies, or whose input a guard changes", async () => {
  const guards: readonly [Middleware, string][] = [
    [
      permissions({
        deny: [{ tool: "dice", when: (input) => JSON.stringify(input).includes("roll"), why: "No dice." }],
      }),
      "No dice.",
    ],
    [
      {
        approval: async (ctx, next) =>
          ctx.call.id === "mcpr_1" && ctx.input === ctx.call.input
            ? { type: "allow", input: { tool: "roll", arguments: {} } }
            : await next(),
      },
      "Not run: the provider cannot run dice with a changed input.",
    ],
  ];
  for (const [guard, reason] of guards) {
    const { sent, fetch } = recordRequests(asking, responseStream(message(0, "I may not.")));
    await agent({ model: openaiResponses({ model: "m", fetch }), tools: [dice], use: [guard] }).run("Roll").result;
    const [, , response] = sent[1]?.body.input;
    assertEquals(response, { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: false, reason });
  }
});

Deno.test("a person approves or denies the call of a remote MCP server", async () => {
  const ask = { ...dice, ask: true };
  for (const approve of [true, false]) {
    const { sent, fetch } = recordRequests(asking, answering);
    const assistant = agent({ model: openaiResponses({ model: "m", fetch }), tools: [ask] });
    const { session, questions } = await assistant.run("Roll").result;
    assertEquals(questions.map(({ tool, input }) => [tool, input]), [["dice", {
      tool: "roll",
      arguments: { sides: 6 },
    }]]);
    const answer: PersonAnswer = approve
      ? { callId: "mcpr_1", type: "approve" }
      : { callId: "mcpr_1", type: "deny", reason: "Cheating" };
    await assistant.resume({ session, answers: [answer] }).result;
    const [, , response] = sent[1]?.body.input;
    const reason = approve ? {} : { reason: "A person said no: Cheating" };
    assertEquals(response, { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve, ...reason });
  }
});

Deno.test("a reply in place of a call of a remote MCP server does not approve it", async () => {
  const { sent, fetch } = recordRequests(asking, answering);
  const assistant = agent({ model: openaiResponses({ model: "m", fetch }), tools: [{ ...dice, ask: true }] });
  const { session } = await assistant.run("Roll").result;
  await assistant.resume({ session, answers: [{ callId: "mcpr_1", type: "reply", text: "It is a 6." }] }).result;
  assertEquals(sent[1]?.body.input[2].approve, false);
  assertEquals(sent[1]?.body.input[2].reason, "It is a 6.");
});

Deno.test("the items of a remote MCP server go back to the same model as they came, and to another as text", async () => {
  const { sent, fetch } = recordRequests(answering, responseStream(message(0, "Again.")));
  const assistant = agent({ model: openaiResponses({ model: "m", fetch }), tools: [dice] });
  const { messages } = await assistant.run("Roll").result;
  await assistant.run({ messages: [...messages, user("Again")] }).result;
  assertEquals(sent[0]?.body.tools[0].require_approval, "never");
  assertEquals(sent[1]?.body.input[1], rolled);

  const other = recordRequests("");
  await readAll(anthropic({ model: "claude", fetch: other.fetch, cache: false }), { messages }).catch(() => {});
  assertEquals(other.sent[0]?.body.messages[1].content, [
    { type: "text", text: '[You called roll with {"sides":6}]' },
    { type: "text", text: '[roll returned "4"]' },
    { type: "text", text: "You rolled 4." },
  ]);
});

Deno.test("redact() masks the inputs and outputs of calls that the provider runs", async () => {
  const secret = "hunter2";
  const call = {
    type: "provider_call",
    callId: "1",
    name: "web_search",
    input: { query: secret },
    meta: { item: secret },
  } as const;
  const result = {
    type: "provider_result",
    callId: "1",
    name: "web_search",
    status: "ok",
    output: [{ [secret]: secret }],
  } as const;
  const reads = [
    [{ type: "part", part: call }, { type: "part", part: result }],
    [{ type: "finish", reason: "stop" }],
  ] as const;
  const run = agent({ model: scripted({ reads }), use: [redact({ secrets: [secret] })] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  const added = providerParts(events);
  const { messages } = await run.result;
  assertEquals(added, [
    { ...call, input: { query: "[redacted]" }, meta: { item: "[redacted]" } },
    { ...result, output: [{ "[redacted]": "[redacted]" }] },
  ]);
  assertEquals(messages[1], { role: "assistant", parts: added });
});

Deno.test("anthropic() sends a call without a result, and a result without a call, as text", async () => {
  const at = { callId: "srvtoolu_1", name: "web_search" } as const;
  const block = (type: string) => ({ meta: { model: "m", block: { type, id: at.callId, name: at.name } } });
  const call = { type: "provider_call", ...at, input: { query: "sun" }, ...block("server_tool_use") } as const;
  const result = {
    type: "provider_result",
    ...at,
    status: "ok",
    output: [],
    ...block("web_search_tool_result"),
  } as const;
  const typesOf = async (...parts: readonly AnswerPart[]) => {
    const { sent, fetch } = recordRequests("");
    const messages = [user("Hi"), { role: "assistant", parts } as const, user("Go on")];
    await readAll(anthropic({ model: "m", fetch }), { messages }).catch(() => {});
    return sent[0]?.body.messages[1].content.map(({ type }: { readonly type: string }) => type);
  };
  assertEquals(await typesOf(call, result), ["server_tool_use", "web_search_tool_result"]);
  assertEquals(await typesOf(call), ["text"]);
  assertEquals(await typesOf(result), ["text"]);
});

Deno.test("a choice of no tools, or of any, also concerns the tools that the provider runs", async () => {
  const search = { type: "web_search" } as const;
  const messages = { tools: [webSearch] };
  const chosen = async (api: keyof typeof adapters, toolChoice: ToolChoice) => {
    const { tools, tool_choice, toolConfig, web_search_options } = await sentBy(api, search, toolChoice);
    return { tools, tool_choice, toolConfig, web_search_options };
  };
  const nothing = { tools: undefined, tool_choice: undefined, toolConfig: undefined, web_search_options: undefined };
  assertEquals(await chosen("anthropic", "none"), { ...nothing, ...messages, tool_choice: { type: "none" } });
  assertEquals(await chosen("anthropic", "required"), { ...nothing, ...messages, tool_choice: { type: "any" } });
  const responses = { ...nothing, tools: [{ type: "web_search" }] };
  assertEquals(await chosen("openai_responses", "none"), { ...responses, tool_choice: "none" });
  assertEquals(await chosen("openai_responses", "required"), { ...responses, tool_choice: "required" });
  for (const api of ["gemini", "openai"] as const) {
    assertEquals(await chosen(api, "none"), nothing);
    await assertRejects(() => chosen(api, "required"), ModelError, `${api} cannot force its own tools`);
  }
});
