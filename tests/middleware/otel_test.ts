import {
  type Agent,
  agent,
  type AgentOptions,
  ask,
  denied,
  deny,
  type Middleware,
  ModelError,
  refused,
  reply,
  type Schema,
  skipped,
  text,
  tool,
  ToolError,
  user,
} from "@jizai/jizai";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { otel, type OtelOptions, type Telemetry } from "@jizai/jizai/middleware/otel";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import * as api from "@opentelemetry/api";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { named } from "../support/run_events.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { type Recorded, recorder } from "../support/recorder.ts";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";

const city = z.object({ city: z.string() });
const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: city,
  idempotent: true,
  execute: ({ city }) => {
    if (city === "Atlantis") throw new ToolError("Under water.");
    return `Sun in ${city}`;
  },
});

const calls = (...cities: unknown[]): ScriptedAnswer => ({
  calls: cities.map((city) => ["weather", { city }] as const),
});

interface Setting extends Pick<AgentOptions<unknown, Schema>, "instructions" | "trace" | "limits"> {
  readonly before?: readonly Middleware[];
  readonly use?: readonly Middleware[];
  readonly options?: OtelOptions;
}

/** An agent with otel(), and a recorder of its telemetry. */
function watched(steps: readonly ScriptedAnswer[], { before = [], use = [], options, ...rest }: Setting = {}) {
  const { api, ...recorded } = recorder();
  const model = scripted(...steps);
  const assistant = agent({
    name: "assistant",
    ...rest,
    model,
    tools: [weather],
    use: [...before, otel(api, options), ...use],
  });
  return { assistant, ...recorded };
}

/** The end of the first run, and its reason. */
function endOf([run]: readonly Recorded[]) {
  return [run?.attributes["jizai.run.status"], run?.attributes["jizai.run.reason"]];
}

/** The attributes of a span, with 0 for the time that no test knows. */
function untimed({ attributes }: Recorded): Record<string, unknown> {
  const name = "gen_ai.response.time_to_first_chunk";
  const waited = attributes[name];
  return { ...attributes, ...(typeof waited === "number" && waited >= 0 && waited < 60 && { [name]: 0 }) };
}

/** The spans of one run. */
async function spansOf(steps: readonly ScriptedAnswer[], setting?: Setting) {
  const { assistant, tree } = watched(steps, setting);
  await assistant.run("Hi").result;
  return tree();
}

Deno.test("otel() emits a span for the run, and nested spans for requests and calls", async () => {
  assertEquals(await spansOf([calls("Kyoto", "Oslo"), "Sun."]), [
    "invoke_agent assistant",
    "  chat scripted",
    "  execute_tool weather",
    "  execute_tool weather",
    "  chat scripted",
  ]);
  assertEquals(await spansOf(["Hello!"]), ["invoke_agent assistant", "  chat scripted"]);
});

Deno.test("otel() sets the attributes of the conventions, and no content", async () => {
  const { assistant, spans } = watched([calls("Kyoto"), {
    text: "Sun.",
    usage: { input: 9, output: 4, cached: 3, cacheWrite: 2, reasoning: 1 },
  }], {
    options: { provider: (model) => `of ${model}` },
    use: [{ name: "frugal", model: (_, next) => next({ request: { options: { maxTokens: 50, temperature: 0 } } }) }],
    before: [{ name: "brief", model: (_, next) => next({ request: { options: { maxTokens: 100, temperature: 1 } } }) }],
  });
  const result = await assistant.run("Secret").result;
  const chat = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "scripted",
    "gen_ai.provider.name": "of scripted",
    "gen_ai.conversation.id": "session",
    "gen_ai.request.stream": true,
    "gen_ai.request.max_tokens": 100,
    "gen_ai.request.temperature": 1,
    "gen_ai.response.model": "scripted",
    "gen_ai.response.time_to_first_chunk": 0,
  };
  assertEquals(named(spans.map((span) => ({ name: span.name, kind: span.kind, attributes: untimed(span) })), result), [
    {
      name: "invoke_agent assistant",
      kind: 0,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "assistant",
        "gen_ai.conversation.id": "session",
        "jizai.run.id": "run",
        "jizai.run.resumed": false,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.response.finish_reasons": ["stop"],
        "jizai.run.status": "done",
      },
    },
    {
      name: "chat scripted",
      kind: 2,
      attributes: {
        ...chat,
        "jizai.turn": 1,
        "jizai.attempt": 1,
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1,
      },
    },
    {
      name: "execute_tool weather",
      kind: 0,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Current weather of a city",
        "gen_ai.agent.name": "assistant",
        "gen_ai.conversation.id": "session",
        "jizai.turn": 1,
      },
    },
    {
      name: "chat scripted",
      kind: 2,
      attributes: {
        ...chat,
        "jizai.turn": 2,
        "jizai.attempt": 1,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
      },
    },
  ]);
});

Deno.test("otel() emits a span for a call that the provider of the model runs", async () => {
  const at = { callId: "s1", name: "web_search" } as const;
  const reads = [
    [{ type: "part", part: { type: "provider_call", ...at, input: { query: "sun" } } }],
    [{ type: "part", part: { type: "provider_result", ...at, status: "error", output: "down" } }],
    [{ type: "part", part: { type: "provider_call", ...at, callId: "s2", input: {} } }],
    [{ type: "finish", reason: "length" }],
  ] as const;
  const attributesOf = async (content: boolean) => {
    const { assistant, spans } = watched([{ reads }], { options: { content } });
    await assistant.run({ prompt: "Hi", session: "s1" }).result;
    return spans.filter(({ name }) => name === "execute_tool web_search").map(({ attributes }) => attributes);
  };
  const attributes = (id: string, error: string) => ({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "web_search",
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "extension",
    "gen_ai.agent.name": "assistant",
    "gen_ai.conversation.id": "s1",
    "jizai.turn": 1,
    "error.type": error,
  });
  assertEquals<unknown>(await attributesOf(false), [attributes("s1", "error"), attributes("s2", "unanswered")]);
  assertEquals<unknown>(await attributesOf(true), [
    {
      ...attributes("s1", "error"),
      "gen_ai.tool.call.arguments": '{"query":"sun"}',
      "gen_ai.tool.call.result": '"down"',
    },
    { ...attributes("s2", "unanswered"), "gen_ai.tool.call.arguments": "{}" },
  ]);
});

Deno.test("otel() records durations, and the tokens of each request", async () => {
  const usage = { input: 9, output: 4, cached: 3, cacheWrite: 2, reasoning: 1 };
  const steps = [calls("Atlantis"), { text: "Sun.", usage }];
  const { assistant, samples } = watched(steps, { options: { provider: "openai" } });
  await assistant.run("Hi").result;
  const chat = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "scripted",
    "gen_ai.provider.name": "openai",
    "gen_ai.response.model": "scripted",
  };
  const counted = { ...chat, "gen_ai.token.modality": "unknown" };
  const call = { "gen_ai.tool.name": "weather", "gen_ai.tool.type": "function", "gen_ai.agent.name": "assistant" };
  const agent = { "gen_ai.agent.name": "assistant" };
  const inference = "gen_ai.client.inference";
  const request = (input: number, output: number) => [
    [`${inference}.duration`, chat, true],
    [`${inference}.time_to_first_chunk`, chat, true],
    [`${inference}.operation.input_tokens`, chat, input],
    [`${inference}.operation.output_tokens`, chat, output],
    [`${inference}.usage.input_tokens`, counted, input],
    [`${inference}.usage.output_tokens`, counted, output],
  ];
  assertEquals<unknown>(
    samples.map(([name, attributes, value]) => {
      const isTime = /duration|time/.test(name);
      return [name, attributes, isTime ? value >= 0 && value < 60 : value];
    }),
    [
      ...request(1, 1),
      ["gen_ai.execute_tool.duration", { ...call, "error.type": "ToolError" }, true],
      ...request(9, 4),
      [`${inference}.usage.cache_read.input_tokens`, counted, 3],
      [`${inference}.usage.cache_write.input_tokens`, counted, 2],
      [`${inference}.usage.reasoning.output_tokens`, counted, 1],
      ["gen_ai.invoke_agent.duration", agent, true],
      ["gen_ai.invoke_agent.inference_calls", agent, 2],
      ["gen_ai.invoke_agent.tool_calls", agent, 1],
    ],
  );
});

Deno.test("otel() records no tokens if the provider reports none", async () => {
  const { assistant, samples } = watched([{ text: "Hello!", usage: { input: 0, output: 0 } }]);
  await assistant.run("Hi").result;
  assertEquals(samples.map(([name]) => name), [
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.time_to_first_chunk",
    "gen_ai.invoke_agent.duration",
    "gen_ai.invoke_agent.inference_calls",
    "gen_ai.invoke_agent.tool_calls",
  ]);
});

Deno.test("otel() emits a span for each attempt of a request, with retry and fallback", async () => {
  const busy = new ModelError("busy", { recoverable: true, status: 429 });
  const other = { ...scripted({ error: new ModelError("cut", { recoverable: true }) }, "Hello!"), id: "other" };
  const before = [fallback([other]), retry({ attempts: 2, delay: 0 })];
  assertEquals(await spansOf([{ error: busy }, { error: busy }], { before }), [
    "invoke_agent assistant",
    "  chat scripted !429",
    "  chat scripted !429",
    "  chat other !ModelError",
    "  chat other",
  ]);
  const { api } = recorder();
  assertThrows(
    () => agent({ model: scripted(), use: [otel(api), retry()] }),
    TypeError,
    'Cannot use "otel" before "retry"',
  );
});

Deno.test("otel() emits a span for each attempt of a call, with the kind of its error", async () => {
  let tries = 0;
  const flaky: Middleware = {
    name: "flaky",
    execute(_, next) {
      if (tries++ === 0) throw new RangeError("secret");
      return next();
    },
  };
  const before = [retry({ attempts: 2, delay: 0 })];
  assertEquals(await spansOf([calls("Kyoto"), "Sun."], { before, use: [flaky] }), [
    "invoke_agent assistant",
    "  chat scripted",
    "  execute_tool weather !RangeError",
    "  execute_tool weather",
    "  chat scripted",
  ]);
  const stuck: Middleware = {
    name: "stuck",
    execute: ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
  };
  const [, , call] = await spansOf([calls("Kyoto"), "Sun."], { before: [timeout(1)], use: [stuck] });
  assertEquals(call, "  execute_tool weather !TimeoutError");
});

Deno.test("otel() emits a span for a call that is not executed, with its outcome", async () => {
  const rules: Middleware = {
    name: "rules",
    approval: ({ call }, next) => call.id === "call_1" ? Promise.resolve(deny("secret")) : next(),
    tool: ({ call }, next) => call.id === "call_3" ? Promise.resolve(text("secret")) : next(),
  };
  const answers: Middleware = {
    name: "answers",
    tool: ({ call }, next) => call.id === "call_2" ? Promise.resolve(denied("secret")) : next(),
    execute: ({ call }, next) => call.id === "call_4" ? Promise.resolve(skipped("secret")) : next(),
  };
  const model: ScriptedAnswer = {
    calls: [
      ...["Kyoto", "Oslo", "Rome", "Bern"].map((city) => ["weather", { city }] as const),
      ["weather", {}],
      ["missing", {}],
    ],
  };
  const { assistant, tree, spans } = watched([model, "Sun."], { before: [rules], use: [answers] });
  await assistant.run({ prompt: "Hi", session: "s1" }).result;
  assertEquals(tree(), [
    "invoke_agent assistant",
    "  chat scripted",
    "  execute_tool weather !skipped", // this one began to be executed
    "  execute_tool weather !denied",
    "  execute_tool weather !denied",
    "  execute_tool weather",
    "  execute_tool weather !error",
    "  execute_tool !error", // no tool has this name
    "  chat scripted",
  ]);
  assertEquals(spans[3]?.attributes, {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "weather",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.type": "function",
    "gen_ai.agent.name": "assistant",
    "gen_ai.conversation.id": "s1",
    "jizai.turn": 1,
    "error.type": "denied",
  });
});

Deno.test("otel() records a name that the model made up, and a reason that a hook gave, as content only", async () => {
  const limiting: Middleware = {
    name: "limiting",
    async prompt(_, next) {
      await next();
      return { status: "limit", text: "", reason: "secret" };
    },
  };
  const recorded = async (content: OtelOptions["content"]) => {
    const { assistant, spans } = watched([{ calls: [["secret", {}]] }, "Sun."], {
      use: [limiting],
      ...(content && { options: { content } }),
    });
    await assistant.run("Hi").result;
    return [spans.map(({ name }) => name), spans[2]?.attributes["gen_ai.tool.name"], ...endOf(spans)];
  };
  const names = ["invoke_agent assistant", "chat scripted", "execute_tool", "chat scripted"];
  assertEquals(await recorded(false), [names, undefined, "limit", undefined]);
  assertEquals(await recorded((text) => text.replace("secret", "[masked]")), [names, "[masked]", "limit", "[masked]"]);
  const { assistant, spans } = watched([calls("Kyoto")], { limits: { turns: 1 } });
  await assistant.run("Hi").result;
  assertEquals(endOf(spans), ["limit", "turns"]);
});

Deno.test("otel() emits no span for a request that an outer hook answers", async () => {
  const cache: Middleware = { name: "cache", model: () => Promise.resolve(reply("Known.")) };
  assertEquals(await spansOf([], { before: [cache] }), ["invoke_agent assistant"]);
  assertEquals(await spansOf([], { use: [cache] }), ["invoke_agent assistant", "  chat scripted"]);
});

Deno.test("otel() ends every span of a run that fails, ends, pauses, is refused or reaches a limit", async () => {
  const ending = (point: "session" | "prompt" | "model" | "execute"): Middleware => ({
    name: "ending",
    [point]: ({ run }: Parameters<NonNullable<Middleware["prompt"]>>[0]) =>
      Promise.reject(run.end("enough", { as: "done" })),
  });
  const asking: Middleware = { name: "asking", approval: () => Promise.resolve(ask("Sure?")) };
  const refusing: Middleware = {
    name: "refusing",
    prompt: () => Promise.resolve({ status: "cancelled", text: "", reason: "secret" }),
  };
  const cases: readonly [readonly ScriptedAnswer[], Setting, readonly string[], string?][] = [
    [
      [{ error: new TypeError("secret") }],
      {},
      ["invoke_agent assistant !TypeError", "  chat scripted !TypeError"],
      "failed",
    ],
    [[], { use: [ending("session")] }, ["invoke_agent assistant"]],
    [[], { use: [ending("prompt")] }, ["invoke_agent assistant"], "done"],
    [[], { use: [ending("model")] }, ["invoke_agent assistant", "  chat scripted"], "done"],
    [
      [calls("Kyoto")],
      { use: [ending("execute")] },
      ["invoke_agent assistant", "  chat scripted", "  execute_tool weather"],
      "done",
    ],
    [[calls("Kyoto")], { use: [asking] }, ["invoke_agent assistant", "  chat scripted"], "paused"],
    [[], { use: [refusing] }, ["invoke_agent assistant"], "cancelled"],
    [[], { limits: { turns: 0 } }, ["invoke_agent assistant"], "limit"],
  ];
  for (const [steps, setting, expected, status] of cases) {
    const { assistant, tree, spans } = watched(steps, setting);
    await assistant.run("Hi").result;
    assertEquals([tree(), spans[0]?.attributes["jizai.run.status"]], [expected, status]);
    assertEquals(JSON.stringify(spans).match(/secret|enough|Sure/g), null);
  }
});

Deno.test("otel() ends every span of a stopped run", async () => {
  let stop = () => {};
  const stopping: Middleware = {
    name: "stopping",
    execute(_, next) {
      stop();
      return next();
    },
  };
  const { assistant, tree, spans } = watched([calls("Kyoto")], { use: [stopping] });
  const handle = assistant.run("Hi");
  stop = () => handle.stop("client-gone");
  await handle.result;
  assertEquals(tree(), ["invoke_agent assistant !aborted", "  chat scripted", "  execute_tool weather !AbortError"]);
  assertEquals(endOf(spans), ["aborted", "client-gone"]);
});

Deno.test("otel() reports a run that was stopped with a text of the engine as aborted", async () => {
  for (const text of ["deadline", "failure"]) {
    using time = new FakeTime();
    const hanging: Middleware = { prompt: () => (handle.stop(text), new Promise<never>(() => {})) };
    const { assistant, spans } = watched([calls("Kyoto")], { use: [hanging], limits: { grace: 5 } });
    const handle = assistant.run("Hi");
    await advanceUntilSettled(time, handle.result);
    assertEquals(endOf(spans), ["aborted", text]);
  }
});

Deno.test("otel() ends every span if a hook hangs", async () => {
  const stuck = new Promise<never>(() => {});
  for (const point of ["prompt", "model", "execute"] as const) {
    using time = new FakeTime();
    const hanging: Middleware = { name: "hanging", [point]: () => stuck };
    const { assistant, tree, spans } = watched([calls("Kyoto")], { use: [hanging], limits: { time: 5, grace: 5 } });
    await advanceUntilSettled(time, assistant.run("Hi").result);
    const inside = {
      prompt: [],
      model: ["  chat scripted !abandoned"],
      execute: ["  chat scripted", "  execute_tool weather !aborted"],
    };
    assertEquals(tree(), ["invoke_agent assistant", ...inside[point]]);
    assertEquals(endOf(spans), ["limit", "deadline"]);
  }
});

Deno.test("otel() emits new spans for a resumed run", async () => {
  const asking: Middleware = { name: "asking", approval: () => Promise.resolve(ask("Sure?")) };
  const { assistant, tree, spans } = watched([calls("Kyoto", "Oslo"), "Sun."], { use: [asking] });
  const { session } = await assistant.run("Hi").result;
  const answers = [{ callId: "call_1", type: "approve" }, { callId: "call_2", type: "deny" }] as const;
  await assistant.resume({ session, answers }).result;
  assertEquals(tree(), [
    "invoke_agent assistant",
    "  chat scripted",
    "invoke_agent assistant",
    "  execute_tool weather",
    "  execute_tool weather !denied",
    "  chat scripted",
  ]);
  const [first, second] = spans.filter(({ parent }) => !parent);
  assertEquals([first, second].map((run) => run?.attributes["jizai.run.resumed"]), [false, true]);
  assertEquals(first?.attributes["jizai.run.id"], second?.attributes["jizai.run.id"]);
  assertEquals<unknown>(spans.flatMap(({ name, links }) => links.map((id) => [name, id])), [[second?.name, first?.id]]);
});

/** An agent whose model calls `helper` so often at once. */
function above(helper: Agent<unknown, unknown>, times: number, use: readonly Middleware[]) {
  const prompts = Array.from({ length: times }, () => ["help", { prompt: "Help" }] as const);
  const tools = [asTool(helper, { name: "help", description: "Helps" })];
  return agent({ name: "assistant", model: scripted({ calls: prompts }, "Done."), tools, use, trace });
}

Deno.test("otel() nests the run of a subagent in its call", async () => {
  const { api, tree } = recorder();
  const use = [otel(api)];
  const helper = agent({
    name: "helper",
    model: scripted(calls("Kyoto"), calls("Oslo"), "Sun.", "Sun."),
    tools: [weather],
    use,
  });
  await above(helper, 2, use).run("Hi").result;
  const helped = [
    "  execute_tool help",
    "    invoke_agent helper",
    "      chat scripted",
    "      execute_tool weather",
    "      chat scripted",
  ];
  assertEquals(tree(), ["invoke_agent assistant", "  chat scripted", ...helped, ...helped, "  chat scripted"]);
});

Deno.test("otel() is inherited by subagents, unless `inherit` is false", async () => {
  const helping = (otherwise: Pick<Middleware, "inherit">) => {
    const { api, tree } = recorder();
    const helper = agent({ name: "helper", model: scripted("Helped."), trace });
    return { run: above(helper, 1, [{ ...otel(api), ...otherwise }]).run("Hi").result, tree };
  };
  const inherited = helping({});
  await inherited.run;
  assertEquals(inherited.tree(), [
    "invoke_agent assistant",
    "  chat scripted",
    "  execute_tool help",
    "    invoke_agent helper",
    "      chat scripted",
    "  chat scripted",
  ]);
  const isolated = helping({ inherit: false });
  await isolated.run;
  assertEquals(isolated.tree(), [
    "invoke_agent assistant",
    "  chat scripted",
    "  execute_tool help",
    "  chat scripted",
  ]);
});

Deno.test("otel() separates concurrent runs", async () => {
  const { assistant, tree } = watched([calls("Kyoto"), calls("Oslo"), "Sun.", "Sun."]);
  await Promise.all([assistant.run("Hi").result, assistant.run("Hi").result]);
  const run = ["invoke_agent assistant", "  chat scripted", "  execute_tool weather", "  chat scripted"];
  assertEquals(tree(), [...run, ...run]);
});

Deno.test("otel() emits a span for each hook that changed something, if the agent is traced", async () => {
  const rules: Middleware = {
    name: "rules",
    turn: (ctx, next) => next({ context: [...ctx.context, "secret"] }),
    approval: () => Promise.resolve(deny("secret")),
    stop: (_, next) => next(),
  };
  const broken: Middleware = { name: "broken", stop: () => Promise.reject(new Error("secret")) };
  const { assistant, tree, spans } = watched([calls("Kyoto"), "Sun."], { before: [rules], use: [broken], trace });
  await assistant.run({ prompt: "Hi", session: "s1" }).result;
  assertEquals(tree(), [
    "invoke_agent assistant !Error",
    "  chat scripted",
    "  hook rules approval",
    "  execute_tool weather !denied",
    "  hook rules turn",
    "  chat scripted",
    "  hook rules turn",
    "  hook broken stop !_OTHER",
    "  hook rules stop !_OTHER",
  ]);
  assertEquals(spans.slice(2, 5).map(({ attributes }) => attributes), [
    {
      "jizai.middleware": "rules",
      "jizai.point": "approval",
      "jizai.did": ["answered"],
      "jizai.turn": 1,
      "gen_ai.tool.call.id": "call_1",
      "jizai.decided": "deny",
    },
    {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "weather",
      "gen_ai.tool.call.id": "call_1",
      "gen_ai.tool.type": "function",
      "gen_ai.agent.name": "assistant",
      "gen_ai.conversation.id": "s1",
      "jizai.turn": 1,
      "error.type": "denied",
    },
    {
      "jizai.middleware": "rules",
      "jizai.point": "turn",
      "jizai.did": ["changed"],
      "jizai.turn": 1,
      "jizai.changed": ["context"],
    },
  ]);
  const hook = spans[4];
  const sinceStart = performance.timeOrigin + performance.now() - Number(hook?.startTime);
  assertEquals(sinceStart >= 0 && sinceStart < 60_000, true);
});

Deno.test("otel({ content: true }) records content", async () => {
  const step = { reasoning: "Hm.", text: "Let me look.", calls: [["weather", { city: "Kyoto" }] as const] };
  const { assistant, spans } = watched([step, "Sun."], { options: { content: true }, instructions: "Be brief." });
  await assistant.run("Weather?").result;
  const contents = spans.map(({ attributes }) =>
    Object.fromEntries(
      Object.entries(attributes).filter(([name]) => /messages|instructions|arguments|result/.test(name))
        .map(([name, value]) => [name.replace("gen_ai.", ""), parsed(String(value))]),
    )
  );
  const input = [{ role: "user", parts: [{ type: "text", content: "Weather?" }] }];
  const answer = {
    role: "assistant",
    parts: [
      { type: "reasoning", content: "Hm." },
      { type: "text", content: "Let me look." },
      { type: "tool_call", id: "call_1", name: "weather", arguments: { city: "Kyoto" } },
    ],
  };
  const results = {
    role: "tool",
    parts: [{ type: "tool_call_response", id: "call_1", response: "Sun in Kyoto" }],
  };
  const last = [{ role: "assistant", parts: [{ type: "text", content: "Sun." }] }];
  const system_instructions = [{ type: "text", content: "Be brief." }];
  assertEquals(contents, [
    { "input.messages": input, "output.messages": last },
    {
      system_instructions,
      "input.messages": input,
      "output.messages": [answer],
    },
    { "tool.call.arguments": { city: "Kyoto" }, "tool.call.result": "Sun in Kyoto" },
    { system_instructions, "input.messages": [...input, answer, results], "output.messages": last },
  ]);
});

Deno.test("otel() masks the content with a function, wherever it stands", async () => {
  const hide = redact({ secrets: ["hunter2"] });
  const late: Middleware = {
    name: "late",
    prompt: (ctx, next) => next({ context: [...ctx.context, "hunter2"] }),
    turn: (ctx, next) => next({ context: [...ctx.context, "hunter2"] }),
  };
  const step = { reasoning: "hunter2", text: "hunter2", calls: [["weather", { city: "hunter2" }] as const] };
  for (
    const order of [
      (first: Middleware, second: Middleware) => [first, second],
      (a: Middleware, b: Middleware) => [b, a],
    ]
  ) {
    const { api, spans } = recorder();
    const model = scripted(step, "It was hunter2.");
    const use = [...order(otel(api, { content: hide.mask }), hide), late];
    await agent({ model, tools: [weather], use, instructions: "hunter2", trace }).run("hunter2?").result;
    const recorded = JSON.stringify(spans);
    assertEquals([recorded.includes("[redacted]"), recorded.includes("hunter2")], [true, false]);
  }
});

function parsed(text: string): unknown {
  return JSON.parse(text);
}

Deno.test("otel() records at most the last 16,000 characters of content, as valid JSON", async () => {
  const long = "x".repeat(10_000);
  const { assistant, spans } = watched([calls("a".repeat(20_000), "b"), calls(long), "Sun."], {
    options: { content: true },
  });
  await assistant.run(long).result;
  const attributes = spans.flatMap(({ attributes }) => Object.entries(attributes))
    .filter(([name]) => /messages|arguments|result$/.test(name));
  for (const [name, value] of attributes) {
    if (name.endsWith("messages")) parsed(String(value));
    assertEquals(String(value).length < 17_000, true);
  }
  const last = spans.findLast(({ name }) => name.startsWith("chat"))?.attributes["gen_ai.input.messages"];
  const roles = z.array(z.object({ role: z.string() })).parse(parsed(String(last))).map(({ role }) => role);
  assertEquals(roles, ["assistant", "tool"]);
});

Deno.test("otel() never splits a surrogate pair", async () => {
  for (const before of ["", "x"]) {
    const long = before + "🪨".repeat(10_000);
    const { assistant, spans } = watched([calls(long), "Sun."], { options: { content: true } });
    await assistant.run(long).result;
    const texts = spans.flatMap(({ attributes }) => Object.values(attributes)).map(String);
    assertEquals(texts.filter((text) => !text.isWellFormed() || /\\u[dD][89a-fA-F]/.test(text)), []);
  }
});

Deno.test("otel() records no media, and no input that JSON cannot hold", async () => {
  const { api, spans } = recorder();
  const big = tool({
    name: "big",
    description: "Counts",
    input: z.object({ n: z.string().transform((text) => BigInt(text)) }),
    execute: ({ n }) => text([{ type: "media", mediaType: "image/png", data: String(n) }]),
  });
  const model = scripted({ calls: [["big", { n: "9007199254740993" }]] }, "Done.");
  await agent({ model, tools: [big], use: [otel(api, { content: true })] }).run({
    messages: [{
      role: "user",
      parts: [{ type: "media", mediaType: "image/png", data: "secret" }, { type: "text", text: "Count" }],
    }],
  }).result;
  assertEquals(spans[2]?.attributes["gen_ai.tool.call.arguments"], "not JSON: TypeError");
  assertEquals(spans[2]?.attributes["gen_ai.tool.call.result"], '""');
  assertEquals(parsed(String(spans[1]?.attributes["gen_ai.input.messages"])), [{
    role: "user",
    parts: [{ type: "media", mime_type: "image/png" }, { type: "text", content: "Count" }],
  }]);
});

Deno.test("otel() obeys the laws of middleware", async () => {
  await testMiddleware(() => otel(recorder().api, { content: true }));
});

/** A run under the module itself, where `span` is what each span is known by: the names of the spans that were begun. */
async function begun(span: api.SpanContext, changes: Partial<Telemetry> = {}): Promise<string[]> {
  const names: string[] = [];
  const trace: Telemetry["trace"] = {
    getTracer: () =>
      Object.assign(api.trace.getTracer("names"), {
        startSpan(name: string) {
          names.push(name);
          return api.trace.wrapSpanContext(span);
        },
      }),
    setSpan: (context) => context,
    getSpanContext: () => undefined,
    setSpanContext: (context) => context,
  };
  const use = [otel({ ...api, trace, ...changes })];
  await agent({ model: scripted(calls("Kyoto"), "Sun."), tools: [weather], use }).run("Hi").result;
  return names;
}

Deno.test("otel() checks once per run whether a provider records, and does nothing if none does", async () => {
  assertEquals(await begun(api.INVALID_SPAN_CONTEXT), ["invoke_agent agent"]);
});

Deno.test("otel() emits spans if a provider may record spans or metrics", async () => {
  const all = ["invoke_agent agent", "chat scripted", "execute_tool weather", "chat scripted"];
  const refused = { traceId: "1".repeat(32), spanId: "2".repeat(16), traceFlags: api.TraceFlags.NONE };
  assertEquals(await begun(refused), all);
  const metrics = { getMeter: () => Object.create(api.createNoopMeter()) };
  assertEquals(await begun(api.INVALID_SPAN_CONTEXT, { metrics }), all);
});

Deno.test("otel() emits a span for a message that is refused or changed at input, and none for another", async () => {
  const guard: Middleware = {
    name: "guard",
    input(ctx, next) {
      if (ctx.run.session === "refused") return Promise.resolve(refused("No."));
      return ctx.run.session === "changed" ? next({ messages: [user("Hello")] }) : next();
    },
  };
  const seen: unknown[] = [];
  for (const session of ["refused", "changed", "plain"]) {
    const { assistant, spans } = watched(["Hi."], { use: [guard] });
    await assistant.run({ prompt: "Hi", session }).result;
    const input = spans.filter(({ name }) => name.startsWith("input"));
    seen.push(input.map(({ name, parent, attributes }) => [name, parent?.name, attributes]));
  }
  assertEquals(seen, [
    [["input prompt", "invoke_agent assistant", { "jizai.input.status": "refused" }]],
    [["input prompt", "invoke_agent assistant", { "jizai.input.status": "changed" }]],
    [],
  ]);
});
