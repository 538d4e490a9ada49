import {
  agent,
  type AnyTool,
  type Event,
  type Message as Kept,
  type Middleware,
  type RunHandle,
  text,
  textOf,
  user,
  when,
} from "@jizai/jizai";
import { optional } from "@jizai/jizai/middleware/optional";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { within } from "@jizai/jizai/middleware/within";
import {
  Message,
  OnPromptSubmitResult,
  OnTurnEndResult,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
  yoi_hooks,
  type YoiHook,
} from "@jizai/jizai/middleware/yoi_hooks";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { batch, call, drop, gauge, runBatch, settled, three, weather } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

/** Creates an agent with hooks, and its scripted model. */
function worker(
  steps: readonly ScriptedAnswer[],
  hooks: YoiHook | readonly YoiHook[],
  tools: readonly AnyTool[] = [weather()],
) {
  const model = scripted(...steps);
  return { model, assistant: agent({ model, tools, use: [yoi_hooks(hooks)], limits: { grace: 100 } }) };
}

/** Returns the outcome of a run. */
async function ended({ events, result }: Pick<RunHandle<unknown>, "events" | "result">) {
  const all = await Array.fromAsync(events);
  return { ...await result, events: all, warnings: all.flatMap(warningOf), open: all.flatMap(openOf) };
}

function warningOf(event: Event): string[] {
  return event.type === "warning" ? [`${event.point} ${event.message}`] : [];
}

function openOf(event: Event): unknown[] {
  return event.type === "data" && event.name === "yoi_hooks.open" ? [event.data] : [];
}

/** A hook that logs calls. */
function loggingHook(log: string[], name = ""): YoiHook {
  return {
    pre_tool_call: ({ call }) => void log.push(`pre${name} ${call.id}`),
    post_tool_call: ({ call }) => void log.push(`post${name} ${call.id}`),
  };
}

/** A hook with an answer for one call. */
function before(id: string, result: PreToolCallResult): YoiHook {
  return { pre_tool_call: ({ call }) => call.id === id ? result : PreToolCallResult.Continue };
}

const notNow = "skipped Not run now: it is submitted again later.";

Deno.test("yoi_hooks() keeps the laws of middleware", async () => {
  await testMiddleware(() =>
    yoi_hooks({
      on_prompt_submit: () => OnPromptSubmitResult.Continue,
      pre_llm_request: () => PreLlmRequestResult.Continue,
      pre_tool_call: () => PreToolCallResult.Continue,
      post_tool_call: () => PostToolCallResult.Continue,
      on_turn_end: () => OnTurnEndResult.Finish,
      on_abort: () => {},
    })
  );
});

Deno.test("yoi_hooks() uses only the points that its hooks need", () => {
  const points = (hook: YoiHook) => Object.keys(yoi_hooks(hook)).filter((key) => key !== "name" && key !== "inherit");
  assertEquals(points({}), []);
  assertEquals(points({ on_prompt_submit: () => {} }), ["prompt"]);
  assertEquals(points({ pre_llm_request: () => {} }), ["model"]);
  assertEquals(points({ on_turn_end: () => {} }), ["stop"]);
  assertEquals(points({ on_abort: () => {} }), ["session", "error", "abort"]);
  assertEquals(points({ post_tool_call: () => {} }), ["session", "model", "tool"]);
});

// ── the hooks of the document, unchanged ──

class InputValidator implements YoiHook {
  // deno-lint-ignore require-await
  async on_prompt_submit(message: Message) {
    if (typeof message.content === "string") {
      if (message.content.trim() === "") return OnPromptSubmitResult.Cancel("Empty input");
    }
    return OnPromptSubmitResult.Continue;
  }
}

class TimestampHook implements YoiHook {
  // deno-lint-ignore require-await
  async pre_llm_request(context: Message[]) {
    const timestamp = new Date().toISOString();
    context.splice(0, 0, Message.user(`[${timestamp}]`));
    return PreLlmRequestResult.Continue;
  }
}

class ToolBlocker implements YoiHook {
  readonly blocked_tools: Set<string>;
  constructor(blocked_tools: Set<string>) {
    this.blocked_tools = blocked_tools;
  }
  // deno-lint-ignore require-await
  async pre_tool_call(ctx: Parameters<NonNullable<YoiHook["pre_tool_call"]>>[0]) {
    if (this.blocked_tools.has(ctx.call.name)) return PreToolCallResult.Skip;
    return PreToolCallResult.Continue;
  }
}

class ResultFormatter implements YoiHook {
  // deno-lint-ignore require-await
  async post_tool_call(ctx: Parameters<NonNullable<YoiHook["post_tool_call"]>>[0]) {
    if (!ctx.result.is_error) ctx.result.content = `[OK] ${ctx.result.content}`;
    return PostToolCallResult.Continue;
  }
}

class JsonValidator implements YoiHook {
  // deno-lint-ignore require-await
  async on_turn_end(messages: Message[]) {
    const last = messages.findLast((m) => m.role === "assistant");
    if (last && typeof last.content === "string") {
      try {
        JSON.parse(last.content);
      } catch {
        return OnTurnEndResult.ContinueWithMessages([Message.user("Invalid JSON. Please fix and try again.")]);
      }
    }
    return OnTurnEndResult.Finish;
  }
}

class CountingHook implements YoiHook {
  count = 0;
  // deno-lint-ignore require-await
  async pre_tool_call() {
    this.count += 1;
    return PreToolCallResult.Continue;
  }
}

const sanitizer: YoiHook = {
  pre_tool_call(ctx) {
    Object.assign(ctx.call.input as object, { sanitized: true });
    return PreToolCallResult.Continue;
  },
};

Deno.test("yoi: the documented InputValidator cancels an empty prompt, which is not stored", async () => {
  const { assistant, model } = worker([], [new InputValidator()]);
  const { status, reason, messages } = await assistant.run("  ").result;
  assertEquals([status, reason, messages, model.requests.length], ["cancelled", "Empty input", [], 0]);
});

Deno.test("yoi: the documented TimestampHook adds the time to every request, and to nothing else", async () => {
  using _ = new FakeTime(0);
  const { assistant, model } = worker([{ calls: [call("a")] }, "Done."], [new TimestampHook()]);
  const { messages } = await assistant.run("Hi").result;
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [
    ["user [1970-01-01T00:00:00.000Z]", "user Hi"],
    ["user [1970-01-01T00:00:00.000Z]", "user Hi", "call weather", "ok sun in a"],
  ]);
  assertEquals(lines(messages), ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
});

Deno.test("yoi: the documented ToolBlocker skips a tool and ResultFormatter marks results", async () => {
  const log: string[] = [];
  const { lines } = await runBatch([call("a", { name: "drop" }), call("b")], {
    tools: [drop(log), weather()],
    use: [yoi_hooks([new ToolBlocker(new Set(["drop"])), new ResultFormatter()])],
  });
  assertEquals(lines, ["call drop weather", notNow, "ok [OK] sun in b", "assistant Done."]);
  assertEquals(log, []);
});

Deno.test("yoi: the documented JsonValidator continues until the answer is JSON", async () => {
  const { assistant } = worker(["no", "{", "{}"], [new JsonValidator()]);
  assertEquals(lines((await assistant.run("Hi").result).messages), [
    "user Hi",
    "assistant no",
    "yoi_hooks Invalid JSON. Please fix and try again.",
    "assistant {",
    "yoi_hooks Invalid JSON. Please fix and try again.",
    "assistant {}",
  ]);
});

Deno.test("yoi: the documented CountingHook counts calls over runs", async () => {
  const counting = new CountingHook();
  const { assistant } = worker([{ calls: three }, "Done.", { calls: [call("d")] }, "Done."], counting);
  await assistant.run("Hi").result;
  await assistant.run("Hi").result;
  assertEquals(counting.count, 4);
});

Deno.test("yoi: an input changed in place runs, and the transcript keeps the original", async () => {
  const inputs: unknown[] = [];
  const look: Middleware = {
    name: "look",
    async tool(ctx, next) {
      inputs.push(ctx.input);
      return await next();
    },
  };
  const { result } = await runBatch([call("a")], { use: [yoi_hooks(sanitizer), look] });
  assertEquals(inputs, [{ city: "a", sanitized: true }]);
  const calls = result.messages.flatMap((message) => message.role === "assistant" ? message.parts : []);
  assertEquals(calls[0], { type: "call", ...call("a") });
});

// ── answers of hooks, and their effects ──

Deno.test("yoi: answers may be words, tagged objects, or absent", async () => {
  const cases: [unknown, string][] = [
    ["Continue", "ok sun in a"],
    [undefined, "ok sun in a"],
    [null, "ok sun in a"],
    [{}, "ok sun in a"],
    [{ type: "Continue" }, "ok sun in a"],
    ["Skip", notNow],
    [{ Skip: null }, notNow],
    [{ type: "Skip" }, notNow],
    [Promise.resolve("Skip"), notNow],
  ];
  for (const [result, line] of cases) {
    const given = result as PreToolCallResult; // a hook may return this
    const { lines, events } = await runBatch([call("a")], { use: [yoi_hooks({ pre_tool_call: () => given })] });
    assertEquals([lines[1], events.flatMap(warningOf)], [line, []]);
  }
});

Deno.test("yoi: Abort counts without a reason", async () => {
  const cases: [unknown, string][] = [
    [{ Abort: "no" }, "no"],
    [{ type: "Abort", reason: "no" }, "no"],
    ["Abort", "A hook gave no reason."],
    [{ Abort: 7 }, "A hook gave no reason."],
    [{ Abort: null }, "A hook gave no reason."],
  ];
  for (const [result, reason] of cases) {
    const given = result as PreToolCallResult; // a hook may return this
    const { result: came_ } = await runBatch([call("a")], { use: [yoi_hooks({ pre_tool_call: () => given })] });
    assertEquals([came_.status, came_.reason], ["failed", reason]);
  }
});

Deno.test("yoi: invalid answers and drafts are ignored with a warning", async () => {
  const hooks: YoiHook = {
    pre_tool_call(ctx) {
      ctx.call.name = 7 as never; // a hook written in JavaScript may do this
      return "Maybe" as never;
    },
    post_tool_call(ctx) {
      ctx.result.content = "changed";
      return { Skip: true } as never;
    },
    on_turn_end: () => ({ ContinueWithMessages: [{ role: "robot" }] }) as never,
  };
  const { events, lines } = await runBatch([call("a")], { use: [yoi_hooks(hooks)] });
  assertEquals(lines, ["call weather", "ok changed", "assistant Done."]);
  assertEquals(events.flatMap(warningOf), [
    "tool pre_tool_call returned an invalid output: call.name: Invalid input: expected string, received number",
    "tool pre_tool_call returned an invalid output: Invalid input",
    "tool post_tool_call returned an invalid output: Invalid input",
    "stop on_turn_end returned an invalid output: Invalid input",
  ]);
});

Deno.test("yoi: hooks run in their order, also after a call", async () => {
  const log: string[] = [];
  await runBatch([call("a"), call("b")], { use: [yoi_hooks([loggingHook(log, " 1"), loggingHook(log, " 2")])] });
  assertEquals(log, [
    ...["pre 1 a", "pre 2 a", "pre 1 b", "pre 2 b"],
    ...["post 1 a", "post 2 a", "post 1 b", "post 2 b"],
  ]);
});

Deno.test("yoi: with outward onion, hooks after a call run in reverse order", async () => {
  const log: string[] = [];
  const hook = (name: string): YoiHook => ({
    ...loggingHook(log, name),
    on_turn_end: () => void log.push(`end${name}`),
  });
  await runBatch([call("a")], { use: [yoi_hooks([hook(" 1"), hook(" 2")], { outward: "onion" })] });
  assertEquals(log, ["pre 1 a", "pre 2 a", "post 2 a", "post 1 a", "end 2", "end 1"]);
});

Deno.test("yoi: each hook sees the changes of those before it, and the first decision ends the chain", async () => {
  const seen: unknown[] = [];
  const move = (to: string): YoiHook => ({
    pre_tool_call({ call }) {
      seen.push(call.input);
      call.input = { city: to };
    },
    post_tool_call({ result, call }) {
      seen.push(`${result.content} ${JSON.stringify(call.input)}`);
      result.content = `${result.content}!`;
    },
  });
  const { lines } = await runBatch([call("a")], { use: [yoi_hooks([move("b"), move("c")])] });
  assertEquals(seen, [{ city: "a" }, { city: "b" }, `sun in c {"city":"c"}`, `sun in c! {"city":"c"}`]);
  assertEquals(lines[1], "ok sun in c!!");
  const log: string[] = [];
  await runBatch([call("a"), call("b")], { use: [yoi_hooks([before("a", "Skip"), loggingHook(log)])] });
  assertEquals(log, ["pre b", "post b"]);
});

Deno.test("yoi: a hook can send a call to another tool", async () => {
  const hook: YoiHook = {
    pre_tool_call({ call, meta, tool }) {
      assertEquals([meta.name, meta.description, tool.name], ["weather", "About a city", "weather"]);
      assertEquals(meta.input_schema.required, ["city"]);
      call.name = "forecast";
    },
  };
  const tools = [weather(), weather(({ city }) => `rain in ${city}`, { name: "forecast" })];
  assertEquals((await runBatch([call("a")], { tools, use: [yoi_hooks(hook)] })).lines[1], "ok rain in a");
});

Deno.test("yoi: post_tool_call can turn a result into an error and back", async () => {
  const flip: YoiHook = {
    post_tool_call: ({ result }) => {
      result.is_error = !result.is_error;
    },
  };
  const tools = [weather(({ city }) => {
    if (city === "b") throw new Error("broken");
    return text([{ type: "text", text: city }, { type: "media", mediaType: "image/png", data: "" }]);
  })];
  const { lines } = await runBatch([call("a"), call("b")], { tools, use: [yoi_hooks(flip)] });
  assertEquals(lines, ["call weather weather", "error a", "ok weather failed.", "assistant Done."]);
});

Deno.test("yoi: post_tool_call receives the message of the error as thrown, and the model does not", async () => {
  const seen: unknown[] = [];
  const hooks = yoi_hooks({ post_tool_call: ({ result }) => void seen.push([result.content, result.is_error]) });
  const { lines } = await runBatch([call("a")], {
    tools: [weather(() => Promise.reject(new Error("socket closed")))],
    use: [hooks],
  });
  assertEquals([seen, lines[1]], [[["socket closed", true]], "error weather failed."]);
});

Deno.test("yoi: a denial stays a denial", async () => {
  const flip: YoiHook = {
    post_tool_call({ result }) {
      result.is_error = false;
      result.content = "fine";
    },
  };
  const { lines } = await runBatch([call("a")], { use: [yoi_hooks(flip), permissions({ deny: ["weather"] })] });
  assertEquals(lines[1], "denied fine");
});

Deno.test("yoi: unknown tools run no hook", async () => {
  const log: string[] = [];
  const { lines } = await runBatch([call("a", { name: "nothing" })], { use: [yoi_hooks(loggingHook(log))] });
  assertEquals([log, lines[1]], [[], `error There is no tool "nothing". The tools are: weather`]);
});

Deno.test("yoi: a changed prompt is stored with its media", async () => {
  const mask: YoiHook = {
    on_prompt_submit(message) {
      if (typeof message.content === "string") message.content = message.content.replace(/secret/, "***");
      else for (const part of message.content) if (part.type === "text") part.text = "masked";
    },
  };
  const { assistant } = worker(["Hello.", "Hello."], mask);
  assertEquals(lines((await assistant.run("A secret").result).messages), ["user A ***", "assistant Hello."]);
  const picture = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const { messages } = await assistant.run({
    messages: [{ role: "user", parts: [{ type: "text", text: "A secret" }, picture] }],
  }).result;
  assertEquals(messages[0], { role: "user", parts: [{ type: "text", text: "masked" }, picture] });
});

Deno.test("yoi: unchanged messages of a request are sent unchanged", async () => {
  const thought = { type: "reasoning", text: "hm", meta: { signature: "s" } } as const;
  const before: Kept[] = [
    user("Hi"),
    { role: "assistant", parts: [thought, { type: "text", text: "key=1" }, { type: "call", ...call("x") }] },
    {
      role: "tool",
      results: [{ callId: "x", name: "weather", status: "denied", parts: [{ type: "text", text: "key=2" }] }],
    },
    { role: "assistant", parts: [{ type: "text", text: "No." }] },
    user("And?", "someone"),
  ];
  const filter: YoiHook = {
    pre_llm_request(context) {
      for (const message of context) {
        if (typeof message.content === "string") message.content = message.content.replace("Hi", "Ho");
        else {
          for (const part of message.content) {
            if (part.type === "text") part.text = part.text.replace(/\d/, "*");
            if (part.type === "tool_result") part.content = part.content.replace(/\d/, "*");
          }
        }
      }
      context.push(Message.system("Be brief."), Message.user("Now."));
    },
  };
  const { assistant, model } = worker(["Done."], filter);
  const { messages } = await assistant.run({ messages: before }).result;
  const [first, second, third, fourth, fifth, last] = model.requests[0]?.messages ?? [];
  assertEquals(lines([first, fourth, fifth, last].flatMap((message) => message ?? [])), [
    "user Ho",
    "assistant No.",
    "someone And?",
    "user Now.",
  ]);
  assertEquals(second, {
    role: "assistant",
    parts: [thought, { type: "text", text: "key=*" }, { type: "call", ...call("x") }],
  });
  assertEquals(third, {
    role: "tool",
    results: [{ callId: "x", name: "weather", status: "denied", parts: [{ type: "text", text: "key=*" }] }],
  });
  assertEquals(model.requests[0]?.instructions, "Be brief.");
  assert(fourth === before[3] && fifth === before[4]);
  assertEquals(messages.slice(0, -1), before);
});

Deno.test("yoi: Cancel before a request ends the run as cancelled and keeps the prompt", async () => {
  const log: string[] = [];
  const { assistant, model } = worker([], {
    pre_llm_request: () => PreLlmRequestResult.Cancel("too late"),
    on_abort: (reason) => void log.push(reason),
  });
  const { status, reason, messages } = await assistant.run("Hi").result;
  assertEquals([status, reason, lines(messages)], ["cancelled", "too late", ["user Hi"]]);
  assertEquals([log, model.requests.length], [["too late"], 0]);
});

Deno.test("yoi: ContinueWithMessages continues, and later hooks are not asked", async () => {
  const log: string[] = [];
  const once: YoiHook = {
    on_turn_end: (messages) => {
      log.push(...messages.map(({ content }) => String(content)));
      messages.length = 0; // of no effect
      return messages.length === log.length || log.length > 2 ? "Finish" : { ContinueWithMessages: ["More." as never] };
    },
  };
  const { assistant } = worker(["1", "2"], [once, { on_turn_end: () => void log.push("second") }]);
  const { messages } = await assistant.run("Hi").result;
  assertEquals(lines(messages), ["user Hi", "assistant 1", "yoi_hooks More.", "assistant 2"]);
  assertEquals(log, ["Hi", "1", "Hi", "1", "More.", "2", "second"]);
});

// ── skip, pause, abort ──

Deno.test("yoi: a skipped call is answered, listed as open, and submitted again by the next run", async () => {
  let patience = 2;
  const log: string[] = [];
  const later: YoiHook = {
    pre_tool_call({ call }) {
      log.push(`pre ${(call.input as { city: string }).city}`);
      return call.id !== "a" && (call.input as { city: string }).city !== "a" || patience-- <= 0 ? "Continue" : "Skip";
    },
  };
  const { assistant, model } = worker(
    [{ calls: [call("a"), call("b")] }, "Not yet.", "Still not.", "There.", "Nothing."],
    later,
  );
  const first = await ended(assistant.run({ prompt: "Hi", session: "s" }));
  assertEquals(lines(first.messages), ["user Hi", "call weather weather", notNow, "ok sun in b", "assistant Not yet."]);
  assertEquals(first.open, [[{ id: "a", name: "weather", input: { city: "a" } }]]);
  const second = await ended(assistant.run({ prompt: "Now?", session: "s" }));
  assertEquals(lines(second.messages.slice(4)), [
    "user Now?",
    "call weather",
    notNow,
    "assistant Still not.",
  ]);
  const third = await ended(assistant.run({ prompt: "And now?", session: "s" }));
  assertEquals(lines(third.messages.slice(8)), ["user And now?", "call weather", "ok sun in a", "assistant There."]);
  assertEquals(third.open, []);
  const fourth = await ended(assistant.run({ prompt: "Thanks", session: "s" }));
  assertEquals(lines(fourth.messages.slice(12)), ["user Thanks", "assistant Nothing."]);
  const ids = fourth.messages.flatMap((message) =>
    message.role === "assistant" ? message.parts.flatMap((part) => part.type === "call" ? [part.id] : []) : []
  );
  assertEquals([ids.length, new Set(ids).size, ids.slice(0, 2)], [4, 4, ["a", "b"]]);
  assertEquals(log, ["pre a", "pre b", "pre a", "pre a"]);
  assertEquals([second, third].map(({ warnings }) => warnings), [[], []]);
  const ready = third.events.flatMap((event) => event.type === "call.ready" ? [event.call.input] : []);
  assertEquals(ready, [{ city: "a" }]);
  model.done();
});

Deno.test("yoi: no person is asked about a skipped call, and a guard may deny it", async () => {
  const log: string[] = [];
  const skip = yoi_hooks(before("a", "Skip"));
  const calls = [call("a", { name: "drop" })];
  assertEquals((await runBatch(calls, { tools: [drop(log)], use: [skip] })).lines[1], notNow);
  const denied = await runBatch(calls, { tools: [drop(log)], use: [skip, permissions({ deny: ["drop"] })] });
  assertEquals([denied.lines[1], log], ["denied drop is not permitted here.", []]);
});

Deno.test("yoi: a call skipped while another one waits is submitted again on resume", async () => {
  let allowed = false;
  const started = batch([call("a"), call("b", { name: "drop" })], {
    tools: [weather(), drop()],
    use: [yoi_hooks({ pre_tool_call: ({ call }) => allowed || call.name === "drop" ? "Continue" : "Skip" })],
  });
  const { result } = await started.run().outcome;
  assertEquals(result.status, "paused");
  allowed = true;
  const { lines } = await started.resume(result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals(lines, ["call weather drop", notNow, "ok dropped b", "call weather", "ok sun in a", "assistant Done."]);
});

Deno.test("yoi: Skip ends the chain for its own call only", async () => {
  const log: string[] = [];
  const { lines } = await runBatch(three, { use: [yoi_hooks([before("b", "Skip"), loggingHook(log)])] });
  assertEquals(log, ["pre a", "pre c", "post a", "post c"]);
  assertEquals(lines.slice(1), ["ok sun in a", notNow, "ok sun in c", "assistant Done."]);
});

Deno.test("yoi: a skipped call leaves no request without a result, and the next run submits it again", async () => {
  const { assistant, model } = worker([{ calls: [call("a")] }, "Later.", "Done."], before("a", "Skip"));
  await assistant.run({ prompt: "Hi", session: "s" }).result;
  await assistant.run({ prompt: "Now", session: "s" }).result;
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [
    ["user Hi"],
    ["user Hi", "call weather", notNow],
    ["user Hi", "call weather", notNow, "assistant Later.", "user Now", "call weather", "ok sun in a"],
  ]);
});

Deno.test("yoi: Abort at the third call prevents the first two, and the next run submits all three", async () => {
  const log: string[] = [];
  const aborts: string[] = [];
  let enough = true;
  const hook: YoiHook = {
    pre_tool_call: ({ call }) => enough && call.id === "b" ? PreToolCallResult.Abort("enough") : "Continue",
    on_abort: (reason) => void aborts.push(reason),
  };
  const { assistant } = worker([{ calls: three }, "Done."], hook, [weather(({ city }) => log.push(city))]);
  const first = await ended(assistant.run({ prompt: "Hi", session: "s" }));
  assertEquals([first.status, first.reason, log, aborts], ["failed", "enough", [], ["enough"]]);
  assertEquals(lines(first.messages).slice(2), [
    "aborted Not run: enough.",
    "aborted Not run: enough.",
    "aborted Not run: enough.",
  ]);
  enough = false;
  const second = await ended(assistant.run({ prompt: "Again", session: "s" }));
  assertEquals(lines(second.messages).slice(5), [
    "user Again",
    "call weather weather weather",
    "ok 1",
    "ok 2",
    "ok 3",
    "assistant Done.",
  ]);
});

Deno.test("yoi: Abort after a call keeps no result of the batch", async () => {
  const log: string[] = [];
  const aborts: string[] = [];
  const hook: YoiHook = {
    post_tool_call({ call }) {
      log.push(`post ${call.id}`);
      return call.id === "b" ? PostToolCallResult.Abort("leak") : "Continue";
    },
    on_abort: (reason) => void aborts.push(reason),
  };
  const { assistant } = worker([{ calls: three }], hook);
  const { status, reason, messages, open } = await ended(assistant.run({ prompt: "Hi", session: "s" }));
  assertEquals([status, reason, log, aborts], ["failed", "leak", ["post a", "post b"], ["leak"]]);
  assertEquals(lines(messages).slice(2), Array(3).fill("error Withheld: leak."));
  assertEquals(open, [three.map(({ id, name, input }) => ({ id, name, input }))]);
});

Deno.test("yoi: Pause at the third call runs nothing, and all calls enter again in a new batch", async () => {
  const log: string[] = [];
  let waiting = true;
  const hook: YoiHook = {
    pre_tool_call({ call, context }) {
      log.push(`${context.batch_id.replace(/.*:/, "batch ")} ${call.id} ${context.call_index}`);
      return waiting && call.id === "c" ? "Pause" : "Continue";
    },
    on_abort: () => void log.push("abort"),
  };
  const started = batch(three, { tools: [weather(({ city }) => log.push(`run ${city}`))], use: [yoi_hooks(hook)] });
  const { result } = await started.run().outcome;
  assertEquals(result.questions.map(({ questions }) => questions), [[
    "A hook paused the run before weather. Go on?",
  ]]);
  assertEquals([result.status, log.splice(0)], ["paused", ["batch 1 a 0", "batch 1 b 1", "batch 1 c 2"]]);
  waiting = false;
  await started.resume(result.session).outcome;
  assertEquals(log, ["batch 2 a 0", "batch 2 b 1", "batch 2 c 2", "run a", "run b", "run c"]);
});

Deno.test("yoi: Paused at the end continues with the reply of a person", async () => {
  let waiting = true;
  const { assistant } = worker(["1", "2", "3"], { on_turn_end: () => waiting ? "Paused" : "Finish" });
  const first = await assistant.run({ prompt: "Hi", session: "s" }).result;
  assertEquals([first.status, first.questions.map(({ questions }) => questions)], ["paused", [[
    "A hook paused the run before it finished. Go on?",
  ]]]);
  const second = await assistant.resume({ session: "s", answers: [{ type: "reply", text: "Shorter." }] }).result;
  assertEquals([second.status, lines(second.messages)], [
    "paused",
    ["user Hi", "assistant 1", "user Shorter.", "assistant 2"],
  ]);
  waiting = false;
  const third = await assistant.resume({ session: "s", answers: [] }).result;
  assertEquals([third.status, lines(third.messages).slice(3)], ["done", ["assistant 2", "assistant 3"]]);
});

// ── being cut short ──

Deno.test("yoi: on_abort fires for a stop, a failure and a refusal, not for a pause or an end", async () => {
  const log: string[] = [];
  const noted: YoiHook = { on_abort: (reason) => void log.push(reason) };
  const hang = weather((_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  const stopped = worker([{ calls: [call("a")] }], noted, [hang]).assistant.run("Hi");
  await settled();
  stopped.stop("enough");
  await stopped.result;
  await worker([{ error: new Error("offline") }], noted).assistant.run("Hi").result;
  await worker([], [new InputValidator(), noted]).assistant.run("").result;
  await worker(["1"], [{ on_turn_end: () => "Paused" }, noted]).assistant.run("Hi").result;
  await worker(["Done."], noted).assistant.run("Hi").result;
  assertEquals(log, ["Cancelled", "offline", "Empty input"]);
});

Deno.test("yoi: an error in on_abort hides neither the first error nor the other hooks", async () => {
  const log: string[] = [];
  const broken: YoiHook = {
    on_abort() {
      throw new Error("broken");
    },
  };
  const { assistant } = worker([{ error: new Error("offline") }], [broken, { on_abort: (why) => void log.push(why) }]);
  const { status, error, warnings } = await ended(assistant.run("Hi"));
  assertEquals([status, String(error), warnings, log], ["failed", "Error: offline", ["abort on_abort failed."], [
    "offline",
  ]]);
});

Deno.test("yoi: a cancelled prompt is not stored, and on_abort fires", async () => {
  const log: string[] = [];
  const { assistant } = worker(["Hello."], [new InputValidator(), { on_abort: (reason) => void log.push(reason) }]);
  await assistant.run({ prompt: "Hi", session: "s" }).result;
  const { messages } = await assistant.run({ prompt: "", session: "s" }).result;
  assertEquals([lines(messages), log], [["user Hi", "assistant Hello."], ["Empty input"]]);
});

Deno.test("yoi: on_turn_end fires for an answer without calls, never between batches", async () => {
  const log: string[] = [];
  const { assistant } = worker([{ text: "Let me see.", calls: [call("a")] }, { calls: [call("b")] }, "Done."], {
    on_turn_end: (messages) => void log.push(String(messages.at(-1)?.content)),
  });
  await assistant.run("Hi").result;
  assertEquals(log, ["Done."]);
});

Deno.test("yoi: on_prompt_submit fires once, not on resume; pre_llm_request fires for every request", async () => {
  const log: string[] = [];
  const hook: YoiHook = {
    on_prompt_submit: () => void log.push("prompt"),
    pre_llm_request: (context) => void log.push(`request ${context.length}`),
  };
  const started = batch([call("a", { name: "drop" })], { tools: [drop()], use: [yoi_hooks(hook)] });
  const { result } = await started.run().outcome;
  await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(log, ["prompt", "request 1", "request 3"]);
});

Deno.test("yoi: additions to one request are not in the next", async () => {
  let turn = 0;
  const { assistant, model } = worker([{ calls: [call("a")] }, "Done."], {
    pre_llm_request: (context) => void context.push(Message.user(`request ${++turn}`)),
  });
  await assistant.run("Hi").result;
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [
    ["user Hi", "yoi_hooks request 1"].map((line) => line.replace("yoi_hooks", "user")),
    ["user Hi", "call weather", "ok sun in a", "user request 2"],
  ]);
});

Deno.test("yoi: hooks see the whole result before it is truncated", async () => {
  const lengths: number[] = [];
  const { lines } = await runBatch([call("a")], {
    tools: [weather(() => "x".repeat(100))],
    limits: { output: 10 },
    use: [yoi_hooks({ post_tool_call: ({ result }) => void lengths.push(result.content.length) })],
  });
  assertEquals([lengths, lines[1]], [[100], "ok xxxxxxxxxx\n[cut: 10 of 100 characters]"]);
});

// ── the tool execution context ──

Deno.test("yoi: calls of one response share a batch id and have increasing indexes", async () => {
  const seen: string[] = [];
  const tool = weather((_, { callId, batchId, callIndex }) => {
    seen.push(`${callId} ${batchId.replace(/.*:/, "")} ${callIndex}`);
    return "ok";
  });
  const { assistant } = worker([{ calls: three }, { calls: [call("d")] }, "Done."], loggingHook([]), [tool]);
  await assistant.run("Hi").result;
  assertEquals(seen, ["a 1 0", "b 1 1", "c 1 2", "d 2 0"]);
});

Deno.test("yoi: of three calls, one skipped and one answered, the indexes stay and two come out", async () => {
  const log: string[] = [];
  const answering: Middleware = {
    name: "answering",
    tool: (ctx, next) => ctx.call.id === "b" ? Promise.resolve(text("cached")) : next(),
  };
  const { lines } = await runBatch(three, {
    tools: [weather((_, { callId, callIndex }) => log.push(`run ${callId} ${callIndex}`))],
    use: [yoi_hooks([loggingHook(log), before("a", "Skip")]), answering],
  });
  assertEquals(log, ["pre a", "pre b", "pre c", "run c 2", "post b", "post c"]);
  assertEquals(lines.slice(1), [notNow, "ok cached", "ok 4", "assistant Done."]);
});

Deno.test("yoi: calls run in parallel, and their hooks never overlap", async () => {
  using time = new FakeTime();
  const tools = gauge();
  const hooks = gauge();
  const slow = weather(({ city }) => tools.during(() => new Promise((done) => setTimeout(() => done(city), 100))));
  const hook: YoiHook = {
    pre_tool_call: () => hooks.during(() => Promise.resolve("Continue" as const)),
    post_tool_call: () => hooks.during(() => Promise.resolve("Continue" as const)),
  };
  const running = batch(three, { tools: [slow], use: [yoi_hooks(hook)] }).run();
  const { start } = time;
  await time.tickAsync(100);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), ["ok a", "ok b", "ok c", "assistant Done."]);
  assertEquals([tools.peak, hooks.peak, time.now - start], [3, 1, 100]);
});

Deno.test("yoi: post_tool_call waits for the slowest tool", async () => {
  const log: string[] = [];
  const slowest = Promise.withResolvers<string>();
  const running = batch([call("a"), call("b")], {
    tools: [weather(({ city }) => city === "b" ? slowest.promise : "quick")],
    use: [yoi_hooks(loggingHook(log))],
  }).run();
  await settled();
  assertEquals(log, ["pre a", "pre b"]);
  slowest.resolve("slow");
  await running.outcome;
  assertEquals(log, ["pre a", "pre b", "post a", "post b"]);
});

Deno.test("yoi: a lock that one hook waits for and another call holds is released when the run stops", async () => {
  const log: string[] = [];
  let held = false;
  const lock: YoiHook = {
    pre_tool_call(_, { signal }) {
      if (!held) return void (held = true);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  const running = batch([call("a"), call("b")], {
    tools: [weather(() => log.push("run"))],
    use: [yoi_hooks(lock)],
  }).run();
  await settled();
  running.stop();
  assertEquals([(await running.outcome).result.status, log], ["aborted", []]);
});

Deno.test("yoi: a subagent submits its skipped calls again on resume", async () => {
  const hooks = yoi_hooks({ pre_tool_call: ({ call }) => call.id === "a" ? "Skip" : "Continue" });
  const child = agent({
    name: "child",
    model: scripted({ calls: [call("a")] }, "Child done."),
    tools: [weather()],
    use: [hooks],
  });
  const model = scripted({ calls: [call("a"), { id: "b", name: "child", input: { prompt: "Go" } }] }, "Done.");
  const { messages, open } = await ended(agent({ model, tools: [weather(), asTool(child)], use: [hooks] }).run("Hi"));
  assertEquals(lines(messages), ["user Hi", "call weather child", notNow, "ok Child done.", "assistant Done."]);
  assertEquals(open, [[{ id: "a", name: "weather", input: { city: "a" } }]]);
});

// ── questions that the document leaves open ──

const broken = new Error("broken");

Deno.test("yoi: a hook that throws fails the run, runs nothing of its batch, and on_abort fires", async () => {
  const log: string[] = [];
  const hook: YoiHook = {
    pre_tool_call: ({ call }) => call.id === "b" ? Promise.reject(broken) : "Continue",
    on_abort: (reason) => void log.push(reason),
  };
  const tools = [weather(() => log.push("run"))];
  const { result } = await runBatch(three, { tools, use: [yoi_hooks(hook)] });
  assertEquals([result.status, result.error, log.splice(0)], ["failed", broken, ["broken"]]);
  const without = await runBatch(three, { tools, use: [optional(yoi_hooks(hook))] });
  assertEquals([without.result.status, log], ["done", ["run", "run", "run"]]);
});

Deno.test("yoi: the order of hooks decides what each of them sees", async () => {
  const upper: YoiHook = { post_tool_call: ({ result }) => void (result.content = result.content.toUpperCase()) };
  const quote: YoiHook = { post_tool_call: ({ result }) => void (result.content = `says ${result.content}`) };
  const one = await runBatch([call("a")], { use: [yoi_hooks([upper, quote])] });
  const two = await runBatch([call("a")], { use: [yoi_hooks([quote, upper])] });
  assertEquals([one.lines[1], two.lines[1]], ["ok says SUN IN A", "ok SAYS SUN IN A"]);
});

Deno.test("yoi: a hook has a signal, and is abandoned if it ignores the signal", async () => {
  using time = new FakeTime();
  const reasons: string[] = [];
  const slow: YoiHook = {
    pre_tool_call: (_, { signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason.name);
          reject(signal.reason);
        })
      ),
  };
  const late = batch([call("a")], { use: [within(50, yoi_hooks(slow))] }).run();
  await time.tickAsync(50);
  assertEquals([(await late.outcome).result.status, reasons.splice(0)], ["failed", ["TimeoutError"]]);
  const ignoresSignal: YoiHook = { pre_tool_call: () => new Promise(() => {}) };
  const stuck = batch([call("a")], { use: [yoi_hooks(ignoresSignal)], limits: { grace: 100 } }).run();
  await time.tickAsync();
  stuck.stop();
  await time.tickAsync(300);
  assertEquals((await stuck.outcome).result.status, "aborted");
});

Deno.test("yoi: a changed prompt is seen by all later hooks, a changed request by this request only", async () => {
  const seen: string[] = [];
  const look: Middleware = {
    name: "look",
    async prompt(ctx, next) {
      seen.push(textOf(ctx.prompt));
      return await next();
    },
  };
  const hook: YoiHook = {
    on_prompt_submit: (message) => void (message.content = "Hello"),
    pre_llm_request: (context) => void context.shift(),
  };
  const model = scripted({ calls: [call("a")] }, "Done.");
  const { messages } = await agent({ model, tools: [weather()], use: [yoi_hooks(hook), look] }).run("Hi").result;
  assertEquals(seen, ["Hello"]);
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [[], ["call weather", "ok sun in a"]]);
  assertEquals(lines(messages), ["user Hello", "call weather", "ok sun in a", "assistant Done."]);
});

Deno.test("yoi: hooks that always continue are stopped by the limits", async () => {
  const model = scripted("1", "2", "3", "4");
  const tireless = yoi_hooks({ on_turn_end: () => ({ ContinueWithMessages: [Message.user("More.")] }) });
  const { status, reason } = await agent({ model, use: [tireless], limits: { continuations: 3 } }).run("Hi").result;
  assertEquals([status, reason, model.left], ["limit", "continuations", 0]);
});

Deno.test("yoi: continuations count as turns, so the limit of turns bounds them", async () => {
  const tireless = yoi_hooks({ on_turn_end: () => ({ ContinueWithMessages: [Message.user("More.")] }) });
  const { status, reason } = await agent({ model: scripted("1", "2"), use: [tireless], limits: { turns: 2 } }).run("Hi")
    .result;
  assertEquals([status, reason], ["limit", "turns"]);
});

Deno.test("yoi: the first hook runs first, in the list and in use", async () => {
  const log: string[] = [];
  const hook = (name: string): YoiHook => ({ pre_tool_call: () => void log.push(name) });
  await runBatch([call("a")], { use: [yoi_hooks([hook("1"), hook("2")]), yoi_hooks(hook("3"))] });
  assertEquals(log, ["1", "2", "3"]);
});

Deno.test("yoi: when() makes hooks conditional", async () => {
  const log: string[] = [];
  const model = scripted({ calls: [call("a")] }, { calls: [call("b")] }, "Done.");
  const first = when(({ run }) => run.used.turns < 2, yoi_hooks(loggingHook(log)));
  await agent({ model, tools: [weather()], use: [first] }).run("Hi").result;
  assertEquals(log, ["pre a", "post a"]);
});

Deno.test("yoi: a hook is an object that can be called alone", async () => {
  const blocker = new ToolBlocker(new Set(["weather"]));
  const tool = weather();
  const { name, description, schema } = tool.definition;
  const given = await blocker.pre_tool_call({
    call: { id: "a", name: "weather", input: {} },
    meta: { name, description, input_schema: schema },
    tool,
    context: { call_id: "a", batch_id: "1", call_index: 0 },
  });
  assertEquals(given, "Skip");
  await testMiddleware(() => yoi_hooks(new CountingHook()));
});

Deno.test("yoi: a method that is not a function is refused by its name", () => {
  const make = () => yoi_hooks([{}, { pre_tool_call: "Skip" as never }]); // as untyped code writes it
  assertThrows(make, TypeError, "Cannot use pre_tool_call: expected a function, received string");
});

Deno.test("yoi: hooks in camel case and values that are no hooks are refused, and a warning reports unknown hooks", async () => {
  class Guard {
    preToolCall() {
      return "Skip";
    }
  }
  for (const hook of [new Guard(), { preToolCall: () => "Skip", post_tool_call() {} }]) {
    const error = "Cannot use preToolCall: unknown hook; expected pre_tool_call";
    assertThrows(() => yoi_hooks(hook as YoiHook), TypeError, error);
  }
  const both = { pre_tool_call: () => "Skip", preToolCall: () => "Skip" };
  for (const hook of [both, { onAbort: undefined }, { preToolCall: 5 }]) yoi_hooks(hook as YoiHook);
  for (const none of [undefined, null, "Skip", [null]]) {
    const error = "Cannot use hooks: expected an object with `pre_tool_call` and others";
    assertThrows(() => yoi_hooks(none as never), TypeError, error);
  }
  const hook = { pre_tool_cal: () => "Skip", on_stream_chunk: () => {}, note: () => {}, pre_tool_call: () => {} };
  const { warnings } = await ended(worker(["Hello."], hook).assistant.run("Hi"));
  assertEquals(warnings, [
    "session pre_tool_cal never runs: unknown hook.",
    "session on_stream_chunk never runs: unknown hook.",
  ]);
});
