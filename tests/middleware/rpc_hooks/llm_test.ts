import { assertEquals } from "@std/assert";
import {
  agent,
  type Message,
  type Middleware,
  type Model,
  ModelError,
  type ModelOptions,
  text,
  user,
} from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import type { Builtin } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted, type ScriptedAnswer, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { call, weather } from "../../support/batch.ts";
import { builtins, warnings } from "../../support/rpc.ts";
import { lines } from "../../support/transcript_lines.ts";

/** Runs a weather agent with one hook. */
async function ran(
  hook: Builtin,
  { model = scripted("Done."), messages = [user("Hi")], use = [], options, ...rest }: {
    readonly model?: ScriptedModel;
    readonly messages?: readonly Message[];
    readonly use?: readonly Middleware[];
    readonly wire?: "document" | "head";
    readonly models?: (name: string) => Model | undefined;
    readonly options?: ModelOptions;
  } = {},
) {
  const optioned: Middleware = {
    name: "options",
    model: (_, next) => next(options && { request: { options } }),
  };
  const assistant = agent({
    name: "assistant",
    model,
    instructions: "You know the weather.",
    tools: [weather()],
    use: [...use, optioned, builtins({ hook }, rest)],
  });
  const run = assistant.run({ messages, session: "s" });
  const events = await Array.fromAsync(run.events);
  return { result: await run.result, events, requests: model.requests };
}

const once: ScriptedAnswer = { calls: [call("a")] };

Deno.test("PicoClaw: before_llm receives the whole request, and after_llm the whole response", async () => {
  const reported: object[] = [];
  const thinking: ScriptedAnswer = { reasoning: "Hm.", text: "Let me see.", ...once, usage: { input: 5, output: 2 } };
  const { result } = await ran({
    before_llm: (params) => void reported.push(params),
    after_llm: (params) => void reported.push(params),
  }, {
    model: scripted(thinking, "Done."),
    options: { temperature: 0.7, maxTokens: 100, provider: { seed: 1 } },
    messages: [{
      role: "user",
      parts: [{ type: "text", text: "Hi" }, { type: "media", mediaType: "image/png", url: "https://x/a.png" }],
    }],
  });
  const meta = {
    AgentID: "assistant",
    TurnID: result.run,
    ParentTurnID: "",
    SessionKey: "s",
    Iteration: 0,
    TracePath: "runTurn",
    Source: "turn.llm.request",
  };
  const tool_calls = [{ id: "a", type: "function", function: { name: "weather", arguments: '{"city":"a"}' } }];
  assertEquals(reported.slice(0, 3), [
    {
      meta,
      channel: "jizai",
      chat_id: "s",
      model: "scripted",
      messages: [
        { role: "system", content: "You know the weather." },
        { role: "user", content: "Hi", media: ["https://x/a.png"] },
      ],
      tools: [{
        type: "function",
        function: { name: "weather", description: "About a city", parameters: weather().definition.schema },
      }],
      options: { seed: 1, temperature: 0.7, max_tokens: 100 },
      graceful_terminal: false,
    },
    {
      meta: { ...meta, Source: "turn.llm.response" },
      channel: "jizai",
      chat_id: "s",
      model: "scripted",
      response: {
        role: "assistant",
        content: "Let me see.",
        reasoning_content: "Hm.",
        tool_calls,
        finish_reason: "tool_calls",
        usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
      },
    },
    {
      ...reported[0],
      meta: { ...meta, Iteration: 1 },
      messages: [
        { role: "system", content: "You know the weather." },
        { role: "user", content: "Hi", media: ["https://x/a.png"] },
        { role: "assistant", content: "Let me see.", reasoning_content: "Hm.", tool_calls },
        { role: "tool", content: "sun in a", tool_call_id: "a" },
      ],
    },
  ]);
});

Deno.test("PicoClaw: a modified request replaces the whole request, except an unknown model", async () => {
  const { requests, events } = await ran({
    before_llm: ({ tools }) => ({ action: "modify", request: { tools: tools.slice(0, 0) } }),
  }, { options: { temperature: 1, output: { type: "object" } } });
  const [request] = requests;
  assertEquals([request?.instructions, request?.messages, request?.tools, request?.options], [
    "",
    [],
    [],
    { output: { type: "object" } },
  ]);
  assertEquals(warnings(events), ['The hook "hook" chose an unknown model "".']);
});

Deno.test("PicoClaw: before_llm can choose a known model", async () => {
  const other = scripted("From the other.");
  const { result, requests } = await ran({
    before_llm: (params) => ({ action: "modify", request: { ...params, model: "other" } }),
  }, { models: (name) => name === "other" ? { ...other, id: "other" } : undefined });
  assertEquals([result.text, requests.length, other.requests.length], ["From the other.", 0, 1]);
});

Deno.test("PicoClaw: changes of one request are not in the next", async () => {
  const { requests, result } = await ran({
    before_llm: ({ meta, ...params }) => ({
      request: { ...params, messages: [...params.messages, { role: "user", content: `turn ${meta.Iteration}` }] },
    }),
  }, { model: scripted(once, "Done.") });
  assertEquals(requests.map(({ messages }) => lines(messages)), [
    ["user Hi", "user turn 0"],
    ["user Hi", "call weather", "ok sun in a", "user turn 1"],
  ]);
  assertEquals(lines(result.messages), ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
});

Deno.test("PicoClaw: another attempt of a request repeats the changes without asking again", async () => {
  let asked = 0;
  const hook: Builtin = {
    before_llm: (params) => {
      asked++;
      return { request: { ...params, messages: [...params.messages, { role: "user", content: "and be brief" }] } };
    },
  };
  const fails: ScriptedAnswer = { error: new ModelError("busy", { recoverable: true }) };
  const model = scripted(fails, "Done.");
  await ran(hook, { model, use: [retry({ attempts: 2, delay: 0 })] });
  assertEquals([asked, model.requests.map(({ messages }) => lines(messages))], [
    1,
    [["user Hi", "user and be brief"], ["user Hi", "user and be brief"]],
  ]);
});

Deno.test("PicoClaw: changes are lost if the request is built again", async () => {
  let asked = 0;
  const hook: Builtin = {
    before_llm: (params) => {
      asked++;
      return { request: { ...params, messages: [...params.messages, { role: "user", content: "and be brief" }] } };
    },
  };
  const shorter: Middleware = {
    name: "shorter",
    async model(ctx, next) {
      try {
        return await next();
      } catch {
        return await next({ request: { messages: ctx.request.messages.slice(1) } });
      }
    },
  };
  const overflow: ScriptedAnswer = { error: new ModelError("too long", { overflow: true }) };
  const model = scripted(overflow, "Done.");
  await ran(hook, { model, use: [shorter], messages: [user("Long ago"), user("Hi")] });
  assertEquals([asked, model.requests.map(({ messages }) => lines(messages))], [
    1,
    [["user Long ago", "user Hi", "user and be brief"], ["user Hi"]],
  ]);
});

Deno.test("PicoClaw: unchanged messages keep the fields that the wire does not carry", async () => {
  const meta = { signature: "xyz" };
  const messages: Message[] = [
    user("Hi"),
    {
      role: "assistant",
      parts: [{ type: "reasoning", text: "Hm.", meta }, {
        type: "call",
        id: "1",
        name: "weather",
        input: { city: "a" },
      }],
    },
    {
      role: "tool",
      results: [{ callId: "1", name: "weather", status: "timeout", parts: [{ type: "text", text: "late" }] }],
    },
    user("And?"),
  ];
  const { requests } = await ran({
    before_llm: (params) => ({
      request: {
        ...params,
        messages: params.messages.map((message) =>
          message.content === "And?" ? { ...message, content: "And now?" } : message
        ),
      },
    }),
  }, { messages });
  assertEquals(requests[0]?.messages, [...messages.slice(0, -1), user("And now?")]);
});

Deno.test("PicoClaw: before_llm can add messages of every role", async () => {
  const conversation = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "1", type: "function", function: { name: "weather", arguments: "{}" } }],
    },
    { role: "tool", content: "rain", tool_call_id: "1" },
    { role: "assistant", content: "It rains." },
    { role: "system", content: "Be kind." },
    { role: "user", content: "And?", media: ["data:image/png;base64,AAAA", "media://unknown"] },
  ];
  const { requests } = await ran({ before_llm: (params) => ({ request: { ...params, messages: conversation } }) });
  const [request] = requests;
  assertEquals([request?.instructions, request?.messages], ["Be brief.\n\nBe kind.", [
    user("Hi"),
    { role: "assistant", parts: [{ type: "call", id: "1", name: "weather", input: {} }] },
    {
      role: "tool",
      results: [{ callId: "1", name: "weather", status: "ok", parts: [{ type: "text", text: "rain" }] }],
    },
    { role: "assistant", parts: [{ type: "text", text: "It rains." }] },
    {
      role: "user",
      parts: [{ type: "text", text: "And?" }, { type: "media", mediaType: "image/png", data: "AAAA" }],
    },
  ]]);
});

Deno.test("PicoClaw: a modified response may be in the hook object or alone, and replaces the whole response", async () => {
  const given = async (response: unknown, model = scripted({ text: "Let me see.", ...once }, "Done.")) => {
    const { result, events } = await ran({ after_llm: () => ({ action: "modify", response }) }, { model });
    const reported = events.flatMap((event) => event.type === "model.finished" ? [event.text ?? "as it streamed"] : []);
    return [lines(result.messages).slice(1), reported];
  };
  assertEquals(await given({ response: { content: "No." } }), [["assistant No."], ["No."]]);
  assertEquals(await given({ content: "bare" }, scripted("Done.")), [["assistant bare"], ["bare"]]);
  assertEquals(await given({ role: "assistant", content: "bare" }), [["assistant bare"], ["bare"]]);
});

Deno.test("PicoClaw: after_llm changes the calls of the model", async () => {
  const model = scripted({ reasoning: "Hm.", text: "Let me see.", calls: [call("a"), call("b")] }, "Done.");
  const { result } = await ran({
    after_llm: ({ response }) => {
      const [first, second] = response.tool_calls ?? [];
      if (!first || !second) return {};
      const changed = { ...second, function: { name: "weather", arguments: '{"city":"oslo"}' } };
      const broken = { type: "function", function: { name: "weather", arguments: '{"city":' } };
      return { response: { response: { ...response, tool_calls: [first, changed, broken] } } };
    },
  }, { model });
  assertEquals(lines(result.messages), [
    "user Hi",
    "assistant Let me see.",
    "call weather weather weather",
    "ok sun in a",
    "ok sun in oslo",
    "error The input of weather is not valid JSON: Unexpected end of JSON input",
    "assistant Done.",
  ]);
});

Deno.test("PicoClaw: abort_turn and hard_abort also end a run around the model", async () => {
  for (const stage of ["before_llm", "after_llm"] as const) {
    const failed = await ran({ [stage]: () => ({ action: "abort_turn", reason: "enough" }) });
    assertEquals([failed.result.status, failed.result.reason], ["failed", `hook aborted turn during ${stage}: enough`]);
    const shown = stage === "before_llm" ? [] : ["assistant Done."]; // text that a client has received is kept
    assertEquals(lines(failed.result.messages), ["user Hi", ...shown]);
    assertEquals(failed.requests.length, shown.length);
    const stopped = await ran({ [stage]: () => ({ action: "hard_abort" }) });
    assertEquals([stopped.result.status, stopped.result.messages], ["cancelled", []]);
  }
});

Deno.test("PicoClaw: in the version head, hooks cannot change system messages and tools", async () => {
  const added = { type: "function", function: { name: "guide", description: "Guides", parameters: {} } };
  const { requests, events } = await ran({
    before_llm: (params) => ({
      request: {
        ...params,
        messages: [{ role: "system", content: "Be evil." }, ...params.messages.slice(1), {
          role: "user",
          content: "x",
        }],
        tools: [...params.tools, added],
        options: { temperature: 0 },
      },
    }),
  }, { wire: "head" });
  const [request] = requests;
  assertEquals([request?.instructions, lines(request?.messages ?? []), request?.tools.map(({ name }) => name)], [
    "You know the weather.",
    ["user Hi"],
    ["weather"],
  ]);
  assertEquals(request?.options, { temperature: 0 });
  assertEquals(warnings(events), [
    'The hook "hook" cannot change system messages.',
    'The hook "hook" cannot change the tools.',
  ]);
  const appended = await ran({
    before_llm: (params) => ({
      request: { ...params, messages: [...params.messages, { role: "user", content: "x" }] },
    }),
  }, { wire: "head" });
  assertEquals(lines(appended.requests[0]?.messages ?? []), ["user Hi", "user x"]);
});

/** Returns the paths of all fields in a value. */
function names(value: unknown, within = ""): string[] {
  if (Array.isArray(value)) return value.length > 0 ? names(value[0], within) : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [`${within}${name}`, ...names(inner, `${within}${name}.`)]);
}

const meta = ["AgentID", "TurnID", "ParentTurnID", "SessionKey", "Iteration", "TracePath", "Source"];

Deno.test("PicoClaw: meta and events are in Go casing, inputs of calls are strings, durations are nanoseconds", async () => {
  const reported: object[] = [];
  const trace = (what: object) => void reported.push(what);
  await ran({ before_llm: trace, after_llm: trace, before_tool: trace, after_tool: trace, event: trace }, {
    model: scripted(once, "Done."),
  });
  const named = (name: string) => reported.find((each) => name in each) ?? {};
  const about = ["meta", ...meta.map((name) => `meta.${name}`), "channel", "chat_id"];
  const tool = ["tool", "arguments", "arguments.city"];
  assertEquals(names(named("Kind")).slice(0, 3 + meta.length), [
    "Kind",
    "Time",
    "Meta",
    ...meta.map((name) => `Meta.${name}`),
  ]);
  assertEquals(names(named("response")), [
    ...[
      ...about,
      "model",
      "response",
      "response.role",
      "response.content",
      "response.tool_calls",
      "response.tool_calls.id",
    ],
    ...["response.tool_calls.type", "response.tool_calls.function", "response.tool_calls.function.name"],
    ...["response.tool_calls.function.arguments", "response.finish_reason", "response.usage"],
    ...["prompt_tokens", "completion_tokens", "total_tokens"].map((name) => `response.usage.${name}`),
  ]);
  assertEquals(names(named("tool")), [...about, ...tool]);
  const result = ["for_llm", "for_user", "silent", "is_error", "async", "media", "artifact_tags", "response_handled"];
  assertEquals(names(named("duration")), [
    ...about,
    ...tool,
    "result",
    ...result.map((name) => `result.${name}`),
    "duration",
  ]);
  const [duration] = reported.flatMap((each) => "duration" in each ? [Number(each.duration)] : []);
  assertEquals(Number.isInteger(duration) && Number(duration) > 1_000, true);
});

Deno.test("PicoClaw: in the version head, events are in lower case and the conversation is in context", async () => {
  const reported: object[] = [];
  const trace = (what: object) => void reported.push(what);
  await ran({ before_llm: trace, event: trace }, { wire: "head" });
  const [event, before] = reported;
  assertEquals(Object.keys(event ?? {}), [
    ...["id", "kind", "time", "source", "scope", "correlation", "severity", "payload", "attrs"],
  ]);
  assertEquals(names(before).slice(0, 2 + meta.length + 3), [
    ...["meta", ...meta.map((name) => `meta.${name}`)],
    ...["context", "context.inbound", "context.inbound.channel", "context.inbound.chat_id"],
  ]);
});

Deno.test("PicoClaw: in the version head, requests have the route and the scope of the conversation", async () => {
  const contexts: unknown[] = [];
  const hooks = builtins({ gate: { before_llm: ({ context }) => void contexts.push(context) } }, {
    wire: "head",
    channel: "cli",
  });
  await agent({ name: "main", model: scripted("Hi."), use: [hooks] }).run({ prompt: "Hello", session: "s" }).result;
  assertEquals(contexts, [{
    inbound: { channel: "cli", chat_id: "s" },
    route: {
      AgentID: "main",
      Channel: "cli",
      AccountID: "default",
      SessionPolicy: { Dimensions: ["chat"] },
      MatchedBy: "default",
    },
    scope: {
      version: 1,
      agent_id: "main",
      channel: "cli",
      account: "default",
      dimensions: ["chat"],
      values: { chat: "direct:s" },
    },
  }]);
});

Deno.test("PicoClaw: a skipped hook changes nothing, and later hooks see the changes of earlier ones", async () => {
  const seen: string[] = [];
  const send = (content: string): Builtin => ({
    before_llm(params) {
      seen.push(params.messages.map((message) => message.content).join());
      return { request: { ...params, messages: [...params.messages, { role: "user", content }] } };
    },
  });
  const model = scripted("Done.");
  const broken: Builtin = { before_llm: () => ({ request: { messages: "none" } }) };
  const use = [builtins({ a: send("a"), b: broken, c: send("c") })];
  const run = agent({ model, use }).run("Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals([seen, lines(model.requests[0]?.messages ?? [])], [["Hi", "Hi,a"], ["user Hi", "user a", "user c"]]);
  assertEquals(warnings(events), [
    'The hook "b" returned an invalid reply (request.messages: Invalid input: expected array, received string) at before_llm and is skipped.',
  ]);
});

Deno.test("PicoClaw: a tool that before_llm adds is called, and answered by before_tool", async () => {
  const model = scripted({ calls: [["my_plugin_tool", { query: "hello" }]] }, "Done.");
  const { result, requests } = await ran({
    before_llm: ({ tools, ...params }) => ({
      action: "modify",
      request: {
        ...params,
        tools: [...tools, {
          type: "function",
          function: { name: "my_plugin_tool", description: "Plugin", parameters: {} },
        }],
      },
    }),
    before_tool: ({ tool, arguments: { query } }) =>
      tool === "my_plugin_tool"
        ? { action: "respond", result: { for_llm: `did ${query}`, silent: false, is_error: false } }
        : { action: "continue" },
  }, {
    model,
    use: [{ name: "note", tool: async (_, next) => text(`noted: ${JSON.stringify((await next()).parts)}`) }],
  });
  assertEquals(requests[0]?.tools.map(({ name }) => name), ["weather", "my_plugin_tool"]);
  assertEquals(lines(result.messages).slice(2), [
    'ok noted: [{"type":"text","text":"did hello"}]',
    "assistant Done.",
  ]);
});
