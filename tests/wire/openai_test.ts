import { agent, ask, type Middleware, reply, serve, type ServeOptions, tryAgain } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals, assertRejects } from "@std/assert";
import OpenAI, { APIError } from "npm:openai@7.57.0";
import { blueOrRed, lookAndDrop } from "../support/asking.ts";
import { reaching } from "../support/chat.ts";
import { halting } from "../support/halting.ts";
import { type App, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

type Options = Parameters<typeof agent>[0];

/** Serves an agent with both of OpenAI's APIs. Returns it with OpenAI's client. */
function served(options: Options, serving: ServeOptions = {}) {
  const app = serve(agent({ name: "helper", ...options }), { wires: [chatCompletions(), responses()], ...serving });
  return { app, client: clientOf(app) };
}

function clientOf(app: App): OpenAI {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const paint = {
  name: "paint",
  description: "Paints",
  parameters: { type: "object", properties: { color: { type: "string" } }, required: ["color"] },
};

const hi = { model: "any", messages: [{ role: "user" as const, content: "Hi" }] };

Deno.test("chatCompletions() returns the text of all turns", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted(
    {
      reasoning: "Hm.",
      text: "Let me look.",
      calls: [["look", { table: "京都" }]],
      usage: { input: 9, output: 4, cached: 3, cacheWrite: 2, reasoning: 1 },
    },
    { text: ["Do", "ne."] },
  );
  const { client } = served({ model, tools });
  const { id, created, ...completion } = await client.chat.completions.create(hi);
  assertEquals(completion, {
    object: "chat.completion",
    model: "helper",
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: "Let me look.\n\nDone.",
        reasoning_content: "Hm.",
        refusal: null,
      } as never,
      finish_reason: "stop",
      logprobs: null,
    }],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    },
  });
  assertEquals([/^chatcmpl-[\w-]+$/.test(id), typeof created, did], [true, "number", ["Found 京都"]]);
});

Deno.test("chatCompletions() streams the text of all turns", async () => {
  const { tools } = lookAndDrop();
  const model = scripted({ reasoning: "Hm.", text: ["Let ", "me look."], calls: [["look", { table: "a" }]] }, "Done.");
  const { client } = served({ model, tools });
  const stream = await client.chat.completions.create({ ...hi, stream: true, stream_options: { include_usage: true } });
  const chunks = await Array.fromAsync(stream);
  assertEquals(chunks.map(({ choices: [choice], usage }) => choice ? [choice.delta, choice.finish_reason] : usage), [
    [{ role: "assistant", content: "" }, null],
    [{ reasoning_content: "Hm." }, null],
    [{ content: "Let " }, null],
    [{ content: "me look." }, null],
    [{ content: "\n\nDone." }, null],
    [{}, "stop"],
    {
      prompt_tokens: 2,
      completion_tokens: 2,
      total_tokens: 4,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  ] as never);
  assertEquals(new Set(chunks.map(({ id, object, model }) => [id, object, model].join(" "))).size, 1);
});

Deno.test("chatCompletions() uses the conversation that its client sends", async () => {
  const model = scripted("Blue.");
  const { client } = served({ model });
  await client.chat.completions.create({
    model: "any",
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [{ type: "text", text: "Look" }, {
          type: "image_url",
          image_url: { url: "data:image/png;base64,iVBORw==" },
        }],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: `{"a":1}` } }, {
          id: "c2",
          type: "function",
          function: { name: "g", arguments: "{" },
        }],
      },
      { role: "tool", tool_call_id: "c1", content: "one" },
      { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "two" }] },
      { role: "assistant", content: "Seen." },
      { role: "user", content: "Which color?" },
    ],
  });
  const [request] = model.requests;
  assertEquals(lines(request?.messages ?? []), [
    "system Be brief.",
    "user Look",
    "call f g",
    "ok one",
    "ok two",
    "assistant Seen.",
    "user Which color?",
  ]);
  assertEquals(request?.messages[1], {
    role: "user",
    parts: [{ type: "text", text: "Look" }, { type: "media", mediaType: "image/png", data: "iVBORw==" }],
  });
});

Deno.test("chatCompletions() reads data URLs with parameters, in capitals and without a media type", async () => {
  const model = scripted("Blue.");
  const { client } = served({ model });
  const urls = [
    "data:image/png;charset=utf-8;base64,AAAA",
    "DATA:image/png;BASE64,BBBB",
    "data:;base64,CCCC",
    "data:image/svg+xml,%3Csvg/%3E",
    `data:image/png${";base6".repeat(3)},DDDD`,
  ];
  await client.chat.completions.create({
    model: "any",
    messages: [{ role: "user", content: urls.map((url) => ({ type: "image_url", image_url: { url } })) }],
  });
  const [message] = model.requests[0]?.messages ?? [];
  assertEquals(message?.role === "user" && message.parts, [
    { type: "media", mediaType: "image/png", data: "AAAA" },
    { type: "media", mediaType: "image/png", data: "BBBB" },
    { type: "media", mediaType: "image/*", data: "CCCC" },
    { type: "media", mediaType: "image/*", url: urls[3] ?? "" },
    { type: "media", mediaType: "image/*", url: urls[4] ?? "" },
  ]);
});

Deno.test("chatCompletions() returns calls of a declared tool to the client, and resumes with their results", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted(
    { text: "See.", calls: [["paint", { color: "red" }], ["look", { table: "a" }], ["paint", { color: "blue" }]] },
    (request) => lines(request.messages).slice(-3).join("; "),
  );
  const { client } = served({ model, tools });
  const declared = [{ type: "function" as const, function: paint }];
  const first = await client.chat.completions.create({ ...hi, tools: declared });
  const [choice] = first.choices;
  const calls = choice?.message.tool_calls ?? [];
  assertEquals([choice?.finish_reason, choice?.message.content, did], ["tool_calls", "See.", ["Found a"]]);
  assertEquals(calls.map((call) => call.type === "function" && call.function), [
    { name: "paint", arguments: `{"color":"red"}` },
    { name: "paint", arguments: `{"color":"blue"}` },
  ]);
  assertEquals(model.requests[0]?.tools.map(({ name }) => name), ["look", "drop", "paint"]);
  assertEquals(model.requests[0]?.tools[2]?.schema, paint.parameters);
  const outcomes = calls.map(({ id }, index) => ({ role: "tool" as const, tool_call_id: id, content: `wet ${index}` }));
  const messages = [...hi.messages, { role: "assistant" as const, tool_calls: calls }, ...outcomes];
  const second = await client.chat.completions.create({ model: "any", messages }); // and no longer declares tools
  assertEquals(second.choices[0]?.message.content, "ok wet 0; ok Found a.; ok wet 1");
  assertEquals([did, model.requests.length], [["Found a"], 2]);
});

Deno.test("chatCompletions() streams calls for its client, and works in the client's own loop", async () => {
  const model = scripted({ text: "See.", calls: [["paint", { color: "red" }]] }, "It is wet.");
  const { client } = served({ model });
  const painted: unknown[] = [];
  const runner = client.chat.completions.runTools({
    ...hi,
    stream: true,
    tools: [{
      type: "function",
      function: {
        ...paint,
        parse: JSON.parse,
        function: (input: unknown) => {
          painted.push(input);
          return "wet";
        },
      },
    }],
  });
  assertEquals([await runner.finalContent(), painted], ["It is wet.", [{ color: "red" }]]);
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant See.", "call paint", "ok wet"]);
});

Deno.test("chatCompletions() continues a conversation with calls that the client ran", async () => {
  const model = scripted({ calls: [["paint", { color: "red" }]] }, "Wet.", "Dry.");
  const { client } = served({ model });
  const tools = [{ type: "function" as const, function: paint }];
  const { choices: [choice] } = await client.chat.completions.create({ ...hi, tools });
  const [call] = choice?.message.tool_calls ?? [];
  const messages = [
    ...hi.messages,
    { role: "assistant" as const, tool_calls: choice?.message.tool_calls ?? [] },
    { role: "tool" as const, tool_call_id: call?.id ?? "", content: "wet" },
  ];
  await client.chat.completions.create({ model: "any", tools, messages });
  await client.chat.completions.create({
    model: "any",
    tools,
    messages: [...messages, { role: "assistant", content: "Wet." }, { role: "user", content: "And now?" }],
  });
  assertEquals(lines(model.requests[2]?.messages ?? []), [
    "user Hi",
    "call paint",
    "ok wet",
    "assistant Wet.",
    "user And now?",
  ]);
  assertEquals(model.requests[2]?.messages[1], {
    role: "assistant",
    parts: [{ type: "call", id: "call_1", name: "paint", input: { color: "red" } }],
  });
});

const asks: Middleware = {
  name: "asks",
  async approval(ctx, next) {
    return ctx.name === "paint" ? ask("Really?") : await next();
  },
};

/** Returns the end of a question, without the ids of its session and its run. */
function withoutId(text: string | null | undefined): string {
  return (text ?? "").replace(/\(request [0-9a-f-]{36}\.[\w-]{22}-\d+@\d+\.\d+\)$/, "(request ID)");
}

const asked = `See.\n\nRun drop?\ndrop {"table":"a"}\n\nReply "yes" to approve, or "no" and a reason. (request ID)`;

Deno.test("chatCompletions() asks about a call in text, with its input", async () => {
  const { did, tools } = lookAndDrop();
  const model = () => scripted({ text: "See.", calls: [["drop", { table: "a" }]] }, "unreached");
  const { choices: [whole] } = await served({ model: model(), tools }).client.chat.completions.create(hi);
  const stream = await served({ model: model(), tools }).client.chat.completions.create({ ...hi, stream: true });
  const streamed = (await Array.fromAsync(stream)).map(({ choices: [choice] }) => choice?.delta.content ?? "").join("");
  assertEquals([withoutId(whole?.message.content), whole?.finish_reason], [asked, "stop"]);
  assertEquals([withoutId(streamed), did], [asked, []]);
});

/** A client whose first request was answered with a question, and a function that continues its conversation. */
async function questioned(serving: ServeOptions = {}, ...rest: readonly string[]) {
  const { did, tools } = lookAndDrop();
  const model = scripted({ text: "See.", calls: [["drop", { table: "a" }]] }, ...rest);
  const { client, app } = served({ model, tools }, serving);
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [...hi.messages];
  async function send(content?: string): Promise<string> {
    if (content !== undefined) messages.push({ role: "user", content });
    const { choices: [choice] } = await client.chat.completions.create({ model: "any", messages });
    const { content: text = "" } = choice?.message ?? {};
    messages.push({ role: "assistant", content: text });
    return withoutId(text);
  }
  assertEquals(await send(), asked);
  return { app, did, model, messages, send };
}

for (const yes of ["yes", "Yes.", " OK! ", "yes, please", "Approve"]) {
  Deno.test(`chatCompletions() accepts "${yes}" as an approval, once`, async () => {
    const { did, send, model } = await questioned({}, "Done.", "Hello.");
    assertEquals([await send(yes), did], ["Done.", ["Dropped a"]]);
    assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant See.", "call drop", "ok Dropped a."]);
    assertEquals([await send("Thanks"), did], ["Hello.", ["Dropped a"]]);
  });
}

for (const session of ["my session", "1.a) (b", "two\nlines", "(request 5.plain.12)", "a (request ", "1.2.3)"]) {
  Deno.test(`chatCompletions() accepts an approval in the session ${JSON.stringify(session)}`, async () => {
    const { did, tools } = lookAndDrop();
    const { client } = served({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done."), tools }, {
      session: () => session,
    });
    const { choices: [asking] } = await client.chat.completions.create(hi);
    const { content = "" } = asking?.message ?? {};
    const { choices: [choice] } = await client.chat.completions.create({
      model: "any",
      messages: [...hi.messages, { role: "assistant", content }, { role: "user", content: "yes" }],
    });
    assertEquals([choice?.message.content, did], ["Done.", ["Dropped a"]]);
  });
}

Deno.test("chatCompletions() streams the rest of a run that was approved", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted({ calls: [["drop", { table: "a" }]] }, { text: ["Do", "ne."] });
  const { client } = served({ model, tools });
  const { choices: [choice] } = await client.chat.completions.create(hi);
  const messages = [...hi.messages, choice?.message, { role: "user" as const, content: "yes" }].filter((each) =>
    !!each
  );
  const stream = await client.chat.completions.create({ model: "any", stream: true, messages });
  const text = (await Array.fromAsync(stream)).map(({ choices: [choice] }) => choice?.delta.content ?? "").join("");
  assertEquals([text, did], ["Done.", ["Dropped a"]]);
});

Deno.test("chatCompletions() accepts no with a reason as a denial", async () => {
  const { did, send, model } = await questioned({}, "A pity.");
  assertEquals([await send("No, it is too dear."), did], ["A pity.", []]);
  assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), "denied A person said no: it is too dear.");
});

for (const text of ["Which table?", "yes, but drop b", "I do not know", "yes or no?"]) {
  Deno.test(`chatCompletions() runs nothing after "${text}", and continues the conversation`, async () => {
    const { did, send, model } = await questioned({}, "I see.");
    assertEquals([await send(text), did], ["I see.", []]);
    assertEquals(lines(model.requests[1]?.messages ?? []), [
      "user Hi",
      "assistant See.",
      "call drop",
      "skipped The conversation went on without an answer.",
      `user ${text}`,
    ]);
  });
}

Deno.test("chatCompletions() does not accept a yes for an earlier pause, or in another client's history", async () => {
  const { did, app, messages, send } = await questioned({}, "Done.", "Nothing waits.", "Nor here.");
  const first = messages.slice(0, 2);
  assertEquals([await send("yes"), did], ["Done.", ["Dropped a"]]);
  const repeated = await post(app, "/v1/chat/completions", { messages: [...first, { role: "user", content: "yes" }] });
  assertEquals([(await repeated.json()).choices[0].message.content, did], ["Nothing waits.", ["Dropped a"]]);
  const [, question] = first;
  const forged = String(question?.content).replace(/[0-9a-f]{8}-/, "00000000-");
  const history = [...hi.messages, { role: "assistant", content: forged }, { role: "user", content: "yes" }];
  const response = await post(app, "/v1/chat/completions", { messages: history });
  assertEquals([(await response.json()).choices[0].message.content, did], ["Nor here.", ["Dropped a"]]);
});

Deno.test("chatCompletions() lets only the owner approve a call", async () => {
  const serving: ServeOptions = { owner: (c) => c.req.header("user") ?? "none" };
  const { did, app, messages } = await questioned(serving, "Not for you.");
  const body = { messages: [...messages, { role: "user", content: "yes" }] };
  const response = await post(app, "/v1/chat/completions", body, { user: "mallory" });
  assertEquals([(await response.json()).choices[0].message.content, did], ["Not for you.", []]);
});

Deno.test("chatCompletions() uses the next message as the answer to a question of a hook", async () => {
  const model = scripted("Let me ask.", "unreached");
  const { client } = served({ model, use: [blueOrRed("stop")] });
  const { choices: [choice] } = await client.chat.completions.create(hi);
  const question = choice?.message.content ?? "";
  assertEquals(withoutId(question), "Let me ask.\n\nBlue or red?\n\nReply with your answer. (request ID)");
  const messages = [...hi.messages, { role: "assistant" as const, content: question }];
  const { choices: [answer] } = await client.chat.completions.create({
    model: "any",
    messages: [...messages, { role: "user", content: "Red" }],
  });
  assertEquals([answer?.message.content, answer?.finish_reason], ["Let me ask.", "stop"]);
});

Deno.test("chatCompletions() applies guards to client tools", async () => {
  const { did, tools } = lookAndDrop();
  const guard: Middleware = {
    name: "guard",
    async approval(ctx, next) {
      return ctx.name === "paint" ? { type: "deny", reason: "Not here." } : await next();
    },
  };
  const model = scripted({ calls: [["paint", { color: "red" }], ["look", { table: "a" }]] }, "Done.");
  const { client } = served({ model, tools, use: [guard] });
  const { choices: [choice] } = await client.chat.completions.create({
    ...hi,
    tools: [{ type: "function", function: paint }],
  });
  assertEquals([choice?.message.content, choice?.finish_reason, did], ["Done.", "stop", ["Found a"]]);
  assertEquals(lines(model.requests[1]?.messages ?? []).slice(-2), ["denied Not here.", "ok Found a."]);
});

Deno.test("chatCompletions() accepts the result of a client tool once, and no result of an unknown call", async () => {
  const model = scripted({ calls: [["paint", { color: "red" }]] }, "Done.");
  const { app, client } = served({ model });
  const { choices: [choice] } = await client.chat.completions.create({
    ...hi,
    tools: [{ type: "function", function: paint }],
  });
  const [call] = choice?.message.tool_calls ?? [];
  const saying = (id: string) =>
    post(app, "/v1/chat/completions", { messages: [{ role: "tool", tool_call_id: id, content: "wet" }] });
  const id = call?.id ?? "";
  const refused = async (id: string) => {
    const [status, error] = await refusalOf(saying(id));
    return [status, (error as { readonly code: string }).code];
  };
  assertEquals(await refused(id.replace("call_1", "call_2")), [409, "unasked"]);
  assertEquals(await refused(id.replace(/[0-9a-f]{8}/, "00000000")), [404, "unknown"]);
  assertEquals(await refused("call_1"), [400, "invalid"]);
  assertEquals((await saying(id)).status, 200);
  assertEquals(await refused(id), [409, "not-paused"]);
});

Deno.test("chatCompletions() hides the sessions of other owners", async () => {
  const model = scripted({ calls: [["paint", { color: "red" }]] }, "Done.");
  const { app } = served({ model }, { owner: (c) => c.req.header("who") });
  const tools = [{ type: "function", function: paint }];
  const response = await post(app, "/v1/chat/completions", { ...hi, tools }, { who: "ada" });
  const { choices: [{ message: { tool_calls: [{ id }] } }] } = await response.json();
  const outcome = { messages: [{ role: "tool", tool_call_id: id, content: "wet" }] };
  assertEquals((await post(app, "/v1/chat/completions", outcome, { who: "eve" })).status, 404);
  assertEquals((await post(app, "/v1/chat/completions", outcome, { who: "ada" })).status, 200);
});

Deno.test("chatCompletions() reports a failed or stopped run, and tells clients not to retry", async () => {
  const failing = () => scripted({ text: "Half", error: new Error("key sk-1") });
  const { client, app } = served({ model: failing() });
  const error = await assertRejects(async () => await client.chat.completions.create(hi), APIError);
  assertEquals([error.status, error.type, /sk-1/.test(error.message)], [500, "server_error", false]);
  assertEquals((await post(app, "/v1/chat/completions", hi)).headers.get("x-should-retry"), "false");
  const received: string[] = [];
  await assertRejects(
    async () => {
      const stream = await served({ model: failing() }).client.chat.completions.create({ ...hi, stream: true });
      for await (const { choices } of stream) received.push(choices[0]?.delta.content ?? "");
    },
    APIError,
    "The run failed.",
  );
  assertEquals(received, ["", "Half"]);
  const shutdown = new AbortController();
  const { model, begun } = halting();
  const stopped = served({ model }, { signal: shutdown.signal }).client.chat.completions.create(hi);
  await begun;
  shutdown.abort();
  await assertRejects(async () => await stopped, APIError, "The run was stopped: shutdown");
});

for (const stream of [false, true]) {
  Deno.test(`chatCompletions() stops a run whose client has gone, ${stream ? "streamed" : "as a whole"}`, async () => {
    const { model, begun } = halting();
    const ended = Promise.withResolvers<unknown>();
    const observe = (event: { readonly type: string }) => event.type === "run.aborted" && ended.resolve(event);
    const { app } = served({ model, observe: (event) => void observe(event) });
    const leaving = new AbortController();
    const request = new Request("http://localhost/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...hi, stream }),
      signal: leaving.signal,
    });
    const responding = app.fetch(request);
    await begun;
    if (stream) await (await responding).body?.cancel();
    else leaving.abort();
    const { reason } = await ended.promise as { readonly reason: string };
    assertEquals(reason, "client-gone");
    await responding;
  });
}

Deno.test("chatCompletions() tells a stream to discard the text of a failed attempt, and text that a hook changed", async () => {
  const hook: Middleware = {
    name: "hook",
    error: (ctx, next) => ctx.attempt === 1 ? Promise.resolve(tryAgain()) : next(),
    async model(ctx, next) {
      const response = await next();
      return ctx.turn === 2 ? { ...response, parts: [{ type: "text", text: "Changed." }] } : response;
    },
  };
  const { tools } = lookAndDrop();
  const model = () =>
    scripted(
      { reasoning: "Hm", text: "Fir", error: new Error("cut") },
      { reasoning: "So.", text: "Second.", calls: [["look", { table: "a" }]] },
      { text: "Third." },
    );
  const whole = await served({ model: model(), tools, use: [hook] }).client.chat.completions.create(hi);
  assertEquals(whole.choices[0]?.message.content, "Second.\n\nChanged.");
  const { client } = served({ model: model(), tools, use: [hook] });
  const chunks = await Array.fromAsync(await client.chat.completions.create({ ...hi, stream: true }));
  const notice = "\n\n[The answer above was discarded.]";
  assertEquals<unknown>(
    chunks.map(({ choices: [choice], ...rest }) => {
      const { discarded } = rest as { discarded?: object }; // an extension
      return discarded ? [choice?.delta, discarded] : choice?.delta;
    }),
    [
      { role: "assistant", content: "" },
      { reasoning_content: "Hm" },
      { content: "Fir" },
      [{ content: `${notice}\n\n`, reasoning_content: `${notice}\n\n` }, { content: "Fir", reasoning_content: "Hm" }],
      { reasoning_content: "So." },
      { content: "Second." },
      { content: "\n\nThird." },
      [{ content: notice }, { content: "\n\nThird." }],
      { content: "\n\nChanged." },
      {},
    ],
  );
});

Deno.test("both of OpenAI's APIs return an answer of a hook, and report a limit", async () => {
  const hook: Middleware = { name: "hook", model: () => Promise.resolve(reply("Cached.")) };
  const refusing: Middleware = {
    name: "refusing",
    prompt: () => Promise.resolve({ status: "cancelled", text: "Not today.", reason: "closed" }),
  };
  for (const [use, text] of [[hook, "Cached."], [refusing, "Not today."]] as const) {
    const { client } = served({ model: scripted(), use: [use] });
    const completion = await client.chat.completions.create(hi);
    const response = await client.responses.create({ input: "Hi" });
    const stream = await Array.fromAsync(await client.chat.completions.create({ ...hi, stream: true }));
    const streamed = stream.map(({ choices: [choice] }) => choice?.delta.content ?? "").join("");
    assertEquals([completion.choices[0]?.message.content, response.output_text, streamed], [text, text, text]);
  }
  const { tools } = lookAndDrop();
  const model = scripted({ calls: [["look", { table: "a" }]] }, { calls: [["look", { table: "a" }]] });
  const { client } = served({ model, tools, limits: { turns: 1 } });
  const { choices: [choice] } = await client.chat.completions.create(hi);
  const { status, incomplete_details } = await client.responses.create({ input: "Hi" });
  assertEquals([choice?.finish_reason, status, incomplete_details], ["length", "incomplete", {
    reason: "max_output_tokens",
  }]);
});

Deno.test("responses() returns text as items, and streams the same", async () => {
  const { tools } = lookAndDrop();
  const model = () =>
    scripted({ reasoning: ["H", "m."], text: ["Let ", "me look."], calls: [["look", { table: "a" }]] }, "Done.");
  const whole = await served({ model: model(), tools }).client.responses.create({ input: "Go" });
  assertEquals([whole.status, whole.output_text, whole.usage], ["completed", "Let me look.Done.", {
    input_tokens: 2,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 4,
  }] as never);
  const { client } = served({ model: model(), tools });
  const stream = client.responses.stream({ input: "Go" });
  const types: string[] = [];
  for await (const { type } of stream) types.push(type);
  const item = (kind: string, deltas: number) => [
    "response.output_item.added",
    "response.content_part.added",
    ...Array.from({ length: deltas }, () => `response.${kind}.delta`),
    `response.${kind}.done`,
    "response.content_part.done",
    "response.output_item.done",
  ];
  assertEquals(types, [
    "response.created",
    ...item("reasoning_text", 2),
    ...item("output_text", 2),
    ...item("output_text", 1),
    "response.completed",
  ]);
  const streamed = await stream.finalResponse();
  const comparable = ({ output }: Pick<typeof streamed, "output">) =>
    JSON.stringify(output).replace(/[\w-]{22}-\d+/g, "run").replace(/,"parsed":null/g, "");
  assertEquals(comparable(streamed), comparable(whole as never));
});

Deno.test("responses() continues the session of a response, whatever else the request contains", async () => {
  const model = scripted("Hello.", "Again.", "Anew.");
  const { app, client } = served({ model });
  const first = await client.responses.create({ input: "Hi", instructions: "Be brief." });
  await client.responses.create({
    previous_response_id: first.id,
    instructions: "Be long.",
    input: [{ role: "user", content: "More" }],
  });
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "system Be brief.",
    "user Hi",
    "assistant Hello.",
    "user More",
  ]);
  const held = [{ role: "user" as const, content: "Hi" }, ...first.output, { role: "user" as const, content: "Yes?" }];
  await client.responses.create({ input: held as never });
  assertEquals(lines(model.requests[2]?.messages ?? []), ["user Hi", "assistant Hello.", "user Yes?"]);
  for (const [previous, expected] of [["resp_1", 404], [first.id.replace(/[0-9a-f]{8}/, "00000000"), 404], ["", 400]]) {
    const [status] = await refusalOf(post(app, "/v1/responses", { previous_response_id: previous, input: "Hi" }));
    assertEquals(status, expected);
  }
});

Deno.test("responses() returns calls of a declared tool to the client, and resumes with their results", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted({ calls: [["paint", { color: "red" }], ["look", { table: "a" }]] }, "Done.");
  const { client } = served({ model, tools });
  const declared = [{ type: "function" as const, strict: true, ...paint }];
  const stream = client.responses.stream({ input: "Go", tools: declared });
  const first = await stream.finalResponse();
  const [call] = first.output;
  if (call?.type !== "function_call") throw new Error(`Cannot go on with ${JSON.stringify(first.output)}`);
  assertEquals([call.name, call.arguments, call.status, did], ["paint", `{"color":"red"}`, "completed", ["Found a"]]);
  const second = await client.responses.create({
    previous_response_id: first.id,
    tools: declared,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "wet" }],
  });
  assertEquals(second.output_text, "Done.");
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Go", "call paint look", "ok wet", "ok Found a."]);
});

/** Returns the approvals that a response asks for. */
function approvalIn({ output }: OpenAI.Responses.Response) {
  const found = output.find((item) => item.type === "mcp_approval_request");
  if (!found) throw new Error(`Cannot find an approval in ${JSON.stringify(output)}`);
  return found;
}

for (const approve of [true, false]) {
  Deno.test(`responses() asks for approval of a call, and accepts ${approve ? "yes" : "no"} once`, async () => {
    const { did, tools } = lookAndDrop();
    const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
    const { app, client } = served({ model, tools });
    const asked = approvalIn(await client.responses.create({ input: "Go" }));
    assertEquals([asked.name, asked.arguments, asked.server_label, did], ["drop", `{"table":"a"}`, "helper", []]);
    const answer = (approval_request_id: string) => ({
      input: [{ type: "mcp_approval_response" as const, approval_request_id, approve, reason: "So." }],
    });
    const forged = asked.id.replace(/@\d+$/, "@1");
    assertEquals((await refusalOf(post(app, "/v1/responses", answer(forged))))[0], 409);
    const { output_text } = await client.responses.create(answer(asked.id));
    assertEquals([output_text, did], ["Done.", approve ? ["Dropped a"] : []]);
    const result = approve ? "ok Dropped a." : "denied A person said no: So.";
    assertEquals(lines(model.requests[1]?.messages ?? []).at(-1), result);
    assertEquals((await refusalOf(post(app, "/v1/responses", answer(asked.id))))[0], 409);
  });
}

Deno.test("responses() asks for approval before a client runs its own tool", async () => {
  const model = scripted({ calls: [["paint", { color: "red" }]] }, "Done.");
  const { client } = served({ model, use: [asks] });
  const tools = [{ type: "function" as const, strict: true, ...paint }];
  const asked = approvalIn(await client.responses.create({ input: "Go", tools }));
  const approved = await client.responses.create({
    tools,
    input: [{ type: "mcp_approval_response", approval_request_id: asked.id, approve: true }],
  });
  const [call] = approved.output;
  assertEquals(call?.type === "function_call" && call.arguments, `{"color":"red"}`);
});

Deno.test("responses() removes the text of a failed attempt, and text that a hook changed", async () => {
  const hook: Middleware = {
    name: "hook",
    error: (ctx, next) => ctx.attempt === 1 ? Promise.resolve(tryAgain()) : next(),
    async model(_ctx, next) {
      const response = await next();
      return { ...response, parts: [{ type: "text", text: "[changed]" }] };
    },
  };
  const model = () => scripted({ text: "Fir", error: new Error("cut") }, "Second.");
  const { client } = served({ model: model(), use: [hook] });
  assertEquals((await client.responses.create({ input: "Hi" })).output_text, "[changed]");
  const streaming = served({ model: model(), use: [hook] }).client.responses.stream({ input: "Hi" });
  assertEquals((await streaming.finalResponse()).output_text, "[changed]");
});

Deno.test("responses() reports a failed run", async () => {
  const { client } = served({ model: scripted({ error: new Error("key sk-1") }) });
  const error = await assertRejects(async () => await client.responses.create({ input: "Hi" }), APIError);
  assertEquals([error.status, /The run failed/.test(error.message)], [500, true]);
  const streaming = served({ model: scripted({ error: new Error("key sk-1") }) }).client.responses.stream({
    input: "Hi",
  });
  const { status, error: failure } = await streaming.finalResponse();
  assertEquals([status, failure?.message], ["failed", "The run failed."]);
});

Deno.test("both of OpenAI's APIs use the session that the URL names", async () => {
  const model = scripted("Hello.", "Again.", "Still here.");
  const app = serve(agent({ model }), {
    wires: [chatCompletions({ path: "/rooms/:room" }), responses({ path: "/rooms/:room" })],
    session: (c) => c.req.param("room"),
  });
  const client = new OpenAI({
    apiKey: "none",
    baseURL: "http://localhost/rooms/one",
    fetch: reaching(app),
    maxRetries: 0,
  });
  await client.chat.completions.create(hi);
  await client.chat.completions.create({
    model: "any",
    messages: [...hi.messages, { role: "assistant", content: "I promise." }, { role: "user", content: "More" }],
  });
  await client.responses.create({ input: "And more" });
  assertEquals(lines(model.requests[2]?.messages ?? []), [
    "user Hi",
    "assistant Hello.",
    "user More",
    "assistant Again.",
    "user And more",
  ]);
});

Deno.test("chatCompletions() lists the agent as the only model", async () => {
  const { client } = served({ model: scripted() });
  const models = await Array.fromAsync(await client.models.list());
  assertEquals(models, [{ id: "helper", object: "model", created: 0, owned_by: "jizai" }]);
  assertEquals((await client.models.retrieve("helper")).id, "helper");
});

Deno.test("both of OpenAI's APIs name the field of an invalid request", async () => {
  const { app } = served({ model: scripted() });
  const refused = async (path: string, body: unknown) => {
    const [status, error] = await refusalOf(post(app, `/v1/${path}`, body));
    return [status, (error as { readonly param?: string }).param];
  };
  const chat = (body: unknown) => refused("chat/completions", body);
  assertEquals(await chat({}), [400, "messages"]);
  assertEquals(await chat({ messages: [] }), [400, "messages"]);
  assertEquals(await chat({ messages: [{ role: "god", content: "" }] }), [400, "messages.0.role"]);
  assertEquals(await chat({ messages: [{ role: "user", content: 1 }] }), [400, "messages.0.content"]);
  assertEquals(await chat({ messages: [{ role: "assistant", content: "Hi" }] }), [400, "messages"]);
  const named = { type: "function", function: { name: "a b" } };
  assertEquals(await chat({ ...hi, tools: [named] }), [400, "tools.0.function.name"]);
  assertEquals(await refused("responses", {}), [400, "input"]);
  assertEquals(await refused("responses", { input: [{ type: "function_call_output" }] }), [400, "input.0.call_id"]);
  assertEquals(await refused("responses", { input: [{ type: "web_search_call" }] }), [400, "input"]);
  assertEquals((await app.request("/v1/models", { method: "POST" })).headers.get("allow"), "GET, HEAD");
});

Deno.test("both of OpenAI's APIs refuse answers on a server with resume tokens", async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const { app, client } = served({ model: scripted({ calls: [["paint", { color: "red" }]] }) }, {
    resumeTokens: resumeTokens({ keys }),
  });
  const tools = [{ type: "function" as const, function: paint }];
  const { choices: [choice] } = await client.chat.completions.create({ ...hi, tools });
  const [call] = choice?.message.tool_calls ?? [];
  const messages = [choice?.message, { role: "tool", tool_call_id: call?.id, content: "wet" }];
  const input = [{ type: "function_call_output", call_id: call?.id, output: "wet" }];
  for (const [path, body] of [["chat/completions", { messages }], ["responses", { input }]] as const) {
    const [status, error] = await refusalOf(post(app, `/v1/${path}`, body));
    assertEquals([status, (error as Error).message.replace(/".*"/, '"s"')], [
      400,
      `Cannot resume session "s": the resume token is missing`,
    ]);
  }
});
