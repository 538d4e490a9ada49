import {
  agent,
  type AgentOptions,
  denied,
  deny,
  type Event,
  type Message,
  type Middleware,
  ModelError,
  type RunHandle,
  type Schema,
  skipped,
  text,
  tool,
  ToolError,
} from "@jizai/jizai";
import {
  copilot_hooks,
  metaOf,
  type PostToolUseHookInput,
  type SessionHooks,
  type ToolResultObject,
} from "@jizai/jizai/middleware/copilot_hooks";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { collect, testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { at, batch, call, drop, three, weather } from "../support/batch.ts";
import { compacting } from "../support/compacting.ts";
import { warnings } from "../support/hooked.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

type Options = Partial<AgentOptions<unknown, Schema>>;

/** Runs a prompt with hooks. */
async function runWith(steps: readonly ScriptedAnswer[], hooks: SessionHooks, options: Options = {}) {
  return await under(steps, [copilot_hooks(hooks)], options);
}

/** Runs a prompt with middleware. */
async function under(steps: readonly ScriptedAnswer[], use: readonly Middleware[], options: Options = {}) {
  const model = scripted(...steps);
  const assistant = agent({ model, tools: [weather()], ...options, use });
  return { model, assistant, ...await ended(assistant.run({ prompt: "Hi", session: "s" })) };
}

async function ended({ events, result }: Pick<RunHandle<unknown>, "events" | "result">) {
  const all = await Array.fromAsync(events);
  const { messages, ...rest } = await result;
  return { ...rest, messages, events: all, lines: lines(messages), warnings: all.flatMap(warningOf) };
}

function warningOf(event: Event): string[] {
  return event.type === "warning" ? [`${event.point} ${event.message}`] : [];
}

/** Returns the events of one type. */
function eventsOfType<T extends Event["type"]>(events: readonly Event[], type: T): Extract<Event, { type: T }>[] {
  return events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
}

function inputsOf(messages: readonly Message[]): unknown[] {
  return messages.flatMap((message) =>
    message.role === "assistant" ? message.parts.flatMap((part) => part.type === "call" ? [part.input] : []) : []
  );
}

const one = [{ calls: [call("a")] }, "Done."] as const;
const busy = new ModelError("busy", { recoverable: true });

Deno.test("copilot_hooks() keeps the laws of middleware", async () => {
  const nothing = () => null;
  await testMiddleware(() =>
    copilot_hooks({
      onSessionStart: nothing,
      onUserPromptSubmitted: nothing,
      onUserPromptTransformed: nothing,
      onPreToolUse: nothing,
      onPreMcpToolCall: nothing,
      onPostToolUse: nothing,
      onPostToolUseFailure: nothing,
      onErrorOccurred: nothing,
      onAgentStop: nothing,
      onSessionEnd: nothing,
    })
  );
});

Deno.test("copilot_hooks() uses only the points that its hooks need", () => {
  const points = (hooks: SessionHooks) =>
    Object.keys(copilot_hooks(hooks)).filter((key) => key !== "name" && key !== "inherit" && key !== "groups");
  const nothing = () => null;
  assertEquals(points({}), []);
  assertEquals(points({ onPreToolUse: nothing }), ["tool", "approval"]);
  assertEquals(points({ onPostToolUse: nothing }), ["tool"]);
  assertEquals(points({ onSessionEnd: nothing }), ["session"]);
  assertEquals(points({ onErrorOccurred: nothing }), ["error"]);
});

// ── the hooks of the document, unchanged ──

const documented: SessionHooks = {
  onSessionStart: (input) => ({ additionalContext: `Project root: ${input.cwd}` }),

  onUserPromptSubmitted: (input) => {
    if (input.prompt.startsWith("/fix")) return { modifiedPrompt: "現在のエラーを修正して、変更点を要約して。" };
    return null;
  },

  onPreToolUse: (input) => {
    const blocked = ["bash", "shell", "delete_file"];
    if (blocked.includes(input.toolName)) {
      return {
        permissionDecision: "deny",
        permissionDecisionReason: `${input.toolName} はこの環境では許可されていません`,
      };
    }
    return { permissionDecision: "allow" };
  },

  onPostToolUse: (input) => {
    if (input.toolName === "read_file") {
      return { additionalContext: "必要なら関連ファイルも探索して比較してください。" };
    }
    return null;
  },

  onErrorOccurred: (input) => {
    if (input.errorContext === "model_call" && input.recoverable) {
      return {
        errorHandling: "retry",
        retryCount: 2,
        userNotification: "一時的なモデルエラーのためリトライします。",
      };
    }
    return null;
  },

  onSessionEnd: (input) => {
    if (input.reason !== "complete") return { sessionSummary: `Session ended with reason: ${input.reason}` };
    return null;
  },
};

const retrying = "一時的なモデルエラーのためリトライします。";

Deno.test("Copilot: the documented hooks work unchanged", async () => {
  const model = scripted(
    { error: busy },
    { calls: [call("a", { name: "bash" }), call("b", { name: "read_file" })] },
    { error: busy },
    { error: busy },
    "Done.",
    { error: busy },
    { error: busy },
    { error: busy },
  );
  const tools = [weather(undefined, { name: "bash" }), weather(undefined, { name: "read_file", ask: true })];
  const assistant = agent({ model, tools, use: [copilot_hooks(documented)] });
  const first = await ended(assistant.run({ prompt: "/fix it", session: "s" }));
  assertEquals(first.lines, [
    "session Project root: /",
    "user 現在のエラーを修正して、変更点を要約して。",
    "call bash read_file",
    "denied Denied by preToolUse hook: bash はこの環境では許可されていません",
    "ok sun in b",
    "context 必要なら関連ファイルも探索して比較してください。",
    "assistant Done.",
  ]);
  assertEquals(eventsOfType(first.events, "notice").map(({ text }) => text), [retrying, retrying, retrying]);
  assertEquals(eventsOfType(first.events, "data"), []);
  const second = await ended(assistant.run({ prompt: "And?", session: "s" }));
  assertEquals([second.status, second.warnings], ["failed", []]);
  assertEquals(eventsOfType(second.events, "data"), [{
    type: "data",
    name: "copilot_hooks.session_end",
    data: { sessionSummary: "Session ended with reason: error" },
  }]);
});

// ── session and prompt ──

Deno.test("Copilot: context of onSessionStart is before the prompt of a new session, and after the prompt of a known one", async () => {
  const seen: unknown[] = [];
  const hooks: SessionHooks = {
    onSessionStart: ({ source, initialPrompt }) => {
      seen.push(source, initialPrompt);
      return { additionalContext: `It is ${source}.` };
    },
    onSessionEnd: ({ reason, finalMessage }) => void seen.push([reason, finalMessage]),
  };
  const { assistant } = await runWith(["Hello.", "Hello again."], hooks);
  const { lines } = await ended(assistant.run({ prompt: "And?", session: "s" }));
  assertEquals(lines, [
    ...["session It is startup.", "user Hi", "assistant Hello."],
    ...["user And?", "prompt It is resume.", "assistant Hello again."],
  ]);
  assertEquals(seen, [
    ...["startup", "Hi", ["complete", "Hello."]],
    ...["resume", undefined, ["complete", "Hello again."]],
  ]);
});

Deno.test("Copilot: a pause fires no onSessionEnd, and a resume no onSessionStart", async () => {
  const seen: string[] = [];
  const started = batch([call("a", { name: "drop" })], {
    tools: [drop()],
    use: [copilot_hooks({
      onSessionStart: () => void seen.push("start"),
      onUserPromptSubmitted: () => void seen.push("prompt"),
      onSessionEnd: () => void seen.push("end"),
    })],
  });
  const { result } = await started.run().outcome;
  assertEquals(seen, ["start", "prompt"]);
  await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(seen, ["start", "prompt", "end"]);
});

Deno.test("Copilot: modifiedConfig changes the instructions, the tools and the model", async () => {
  const other = scripted("Other.", "Other.", "Other.");
  const requests = [];
  for (
    const modifiedConfig of [
      { model: "other", systemMessage: "Be brief.", excludedTools: ["drop"] },
      { model: "other", systemMessage: { mode: "replace", content: "Be brief." }, availableTools: ["drop"] },
      { model: "other", systemMessage: { content: "Be brief." } },
    ]
  ) {
    const use = [copilot_hooks({ onSessionStart: () => ({ modifiedConfig }) }, { models: { other } })];
    const { warnings } = await under([], use, { instructions: "Be kind.", tools: [weather(), drop()] });
    assertEquals(warnings, []);
    const { instructions, tools } = other.requests.at(-1) ?? {};
    requests.push([instructions, tools?.map(({ name }) => name).join()]);
  }
  assertEquals(requests, [
    ["Be kind.\n\nBe brief.", "weather"],
    ["Be brief.", "drop"],
    ["Be kind.\n\nBe brief.", "weather,drop"],
  ]);
});

Deno.test("Copilot: a warning reports fields of modifiedConfig that have no effect", async () => {
  const { warnings, status } = await runWith(["Done."], {
    onSessionStart: () => ({ modifiedConfig: { model: "gpt-5", availableTools: "all", reasoningEffort: "high" } }),
  });
  const left = "session onSessionStart returned an invalid output: modifiedConfig.";
  assertEquals(warnings, [
    `${left}availableTools has no effect.`,
    `${left}reasoningEffort has no effect.`,
    `${left}model has no effect.`,
  ]);
  assertEquals(status, "done");
});

Deno.test("Copilot: a prompt is modified, then transformed, then stored with its media", async () => {
  const seen: unknown[] = [];
  const hooks = copilot_hooks({
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}!`, additionalContext: "He is loud." }),
    onUserPromptTransformed: ({ prompt, transformedPrompt }) => {
      seen.push(prompt, transformedPrompt);
      return { modifiedTransformedPrompt: `<${transformedPrompt}>` };
    },
  });
  const model = scripted("Hello.");
  const picture = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const { messages } = await agent({ model, use: [hooks] }).run({
    messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }, picture] }],
  }).result;
  assertEquals(seen, ["Hi!", "Hi!"]);
  assertEquals(messages[0], { role: "user", parts: [{ type: "text", text: "<Hi!>" }, picture] });
  assertEquals(lines(messages).slice(1), ["prompt He is loud.", "assistant Hello."]);
});

Deno.test("Copilot: suppressOutput of a prompt hides the answer from the person and keeps it in the transcript", async () => {
  const { text, lines, events } = await runWith([{ reasoning: "hm", text: ["Se", "cret"] }], {
    onUserPromptSubmitted: () => ({ suppressOutput: true }),
  });
  assertEquals([text, lines], ["", ["user Hi", "assistant Secret"]]);
  assertEquals(JSON.stringify(events).match(/Se|cret|hm/g), null);
});

Deno.test("Copilot: suppressOutput of a prompt also hides the answer after a pause", async () => {
  const started = batch([call("a", { name: "drop" })], {
    tools: [drop()],
    use: [copilot_hooks({ onUserPromptSubmitted: () => ({ suppressOutput: true }) })],
  });
  const { result: { session } } = await started.run().outcome;
  const { result, events } = await started.resume(session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals([result.text, JSON.stringify(events).includes("Done.")], ["", false]);
});

Deno.test("Copilot: suppressOutput of onSessionEnd hides the final answer, also while it streams", async () => {
  const { text, lines, events } = await runWith(["Bye."], { onSessionEnd: () => ({ suppressOutput: true }) });
  assertEquals([text, lines], ["", ["user Hi", "assistant Bye."]]);
  assertEquals(eventsOfType(events, "run.finished").map(({ text }) => text), [""]);
  assertEquals(JSON.stringify(events).includes("Bye."), false);
  const shown = await runWith([{ text: ["First."], calls: [call("a")] }, { text: ["Se", "cond."] }], {
    onSessionEnd: () => null,
  });
  assertEquals(eventsOfType(shown.events, "text.delta").map(({ text }) => text), ["First.", "Se", "cond."]);
});

Deno.test("Copilot: onSessionEnd receives the reason and the error", async () => {
  const seen: unknown[] = [];
  const hooks: SessionHooks = { onSessionEnd: ({ reason, error }) => void seen.push(error ? [reason, error] : reason) };
  const hang = weather((_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  await runWith(["Done."], hooks);
  await runWith([{ error: new Error("offline") }], hooks);
  for (const reason of [undefined, "client-gone"]) {
    const running = agent({ model: scripted(...one), tools: [hang], use: [copilot_hooks(hooks)] }).run("Hi");
    for await (const event of running.events) if (event.type === "tool.started") running.stop(reason);
  }
  await runWith([...one], hooks, { tools: [hang], limits: { time: 5 } });
  await runWith([...one], hooks, { limits: { turns: 1 } });
  assertEquals(seen, ["complete", ["error", "offline"], "abort", "user_exit", "timeout", "complete"]);
});

// ── before a call ──

Deno.test("Copilot: modifiedArgs replace the input in the call and in the transcript", async () => {
  const seen: unknown[] = [];
  const look: Middleware = {
    name: "look",
    tool(ctx, next) {
      seen.push(ctx.call.input);
      return next();
    },
  };
  const hooks = copilot_hooks({
    onPreToolUse: ({ toolArgs }) => {
      seen.push(toolArgs);
      return { modifiedArgs: { city: "Kyoto" } };
    },
    onPostToolUse: ({ toolArgs }) => void seen.push(toolArgs),
  });
  const { lines, messages, events, model } = await under([...one], [look, hooks]);
  assertEquals(lines, ["user Hi", "call weather", "ok sun in Kyoto", "assistant Done."]);
  assertEquals(seen, [{ city: "a" }, { city: "a" }, { city: "Kyoto" }]);
  assertEquals([inputsOf(messages), inputsOf(model.requests[1]?.messages ?? [])], [
    [{ city: "Kyoto" }],
    [{ city: "Kyoto" }],
  ]);
  assertEquals(eventsOfType(events, "call.ready").map(({ call }) => call.input), [{ city: "a" }, { city: "Kyoto" }]);
});

Deno.test("Copilot: ask asks a person once, also over a pause, with the modified input", async () => {
  const seen: string[] = [];
  const started = batch([call("a"), call("b")], {
    use: [copilot_hooks({
      onPreToolUse: ({ toolArgs }) => {
        const { city } = toolArgs as { city: string };
        seen.push(city);
        return city === "a"
          ? { permissionDecision: "ask", permissionDecisionReason: "Really?", modifiedArgs: { city: "c" } }
          : { permissionDecision: "ask" };
      },
    }, { groups: false })],
  });
  const { result } = await started.run().outcome;
  assertEquals(result.questions.map(({ questions, input }) => [questions, input]), [
    [["Really?"], { city: "c" }],
    [["Run weather?"], { city: "b" }],
  ]);
  const { lines } = await started.resume(result.session, [
    { callId: "a", type: "approve" },
    { callId: "b", type: "deny" },
  ]).outcome;
  assertEquals([lines.slice(1), seen], [["ok sun in c", "denied A person said no.", "assistant Done."], ["a", "b"]]);
});

Deno.test("Copilot: a call that waits for a person keeps its modified input over a pause, and the next call waits for it", async () => {
  const seen: string[] = [];
  const started = batch([call("a"), call("b")], {
    use: [copilot_hooks({
      onPreToolUse: ({ toolArgs }) => {
        const { city } = toolArgs as { city: string };
        seen.push(city);
        return city === "a" ? { permissionDecision: "ask", modifiedArgs: { city: "c" } } : {};
      },
    })],
  });
  const { result } = await started.run().outcome;
  assertEquals([result.questions.map(({ input }) => input), seen], [[{ city: "c" }], ["a"]]);
  const resumed = await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(resumed.lines.slice(1), ["ok sun in c", "ok sun in b", "assistant Done."]);
  assertEquals([inputsOf(resumed.result.messages), seen], [[{ city: "c" }, { city: "b" }], ["a", "b"]]);
});

Deno.test("Copilot: a guard against overwriting denies the second of two calls for one file in one response", async () => {
  const disk = new Set<string>();
  const hooks = copilot_hooks({
    onPreToolUse: ({ toolArgs }) =>
      disk.has((toolArgs as { city: string }).city) ? { permissionDecision: "deny" } : { permissionDecision: "allow" },
  });
  const tools = [weather(({ city }) => void disk.add(city))];
  const { lines } = await batch([call("a"), call("b", { city: "a" })], { tools, use: [hooks] }).run().outcome;
  assertEquals(lines.slice(1, 3), ["ok", "denied Denied by preToolUse hook: No reason provided"]);
});

Deno.test("Copilot: suppressOutput of onPreToolUse withholds the result and keeps the context", async () => {
  const { lines, events } = await runWith([...one], {
    onPreToolUse: () => ({ permissionDecision: "allow", suppressOutput: true, additionalContext: "It is a secret." }),
  });
  const withheld = "The output was withheld by a hook.";
  assertEquals(lines.slice(2), [`ok ${withheld}`, "context It is a secret.", "assistant Done."]);
  assertEquals(JSON.stringify(events).includes("sun in"), false);
});

Deno.test("Copilot: calls of a response that another middleware made are decided about too", async () => {
  const hooks: SessionHooks = {
    onPreToolUse: ({ toolName }) =>
      toolName === "drop" ? { permissionDecision: "deny" } : { modifiedArgs: { city: "Kyoto" } },
  };
  const calls = [call("a"), call("b", { name: "drop" })].map((call) => ({ type: "call" as const, ...call }));
  const replay: Middleware = {
    name: "replay",
    model: (ctx, next) =>
      ctx.turn > 1
        ? next()
        : Promise.resolve({ parts: calls, finish: "calls", usage: { input: 0, output: 0 }, model: "", attempts: 0 }),
  };
  const { lines } = await under(["Done."], [replay, copilot_hooks(hooks)], { tools: [weather(), drop()] });
  assertEquals(lines.slice(2, 4), ["ok sun in Kyoto", "denied Denied by preToolUse hook: No reason provided"]);
  const cache = at("b", { tool: () => Promise.resolve(text("cached")) });
  const cached = await under(["Done."], [replay, cache, copilot_hooks(hooks)], { tools: [weather(), drop()] });
  assertEquals(cached.lines[3], "denied Denied by preToolUse hook: No reason provided");
});

Deno.test("Copilot: a denial is final", async () => {
  const hooks = copilot_hooks({ onPreToolUse: () => ({ permissionDecision: "deny", suppressOutput: true }) });
  const bypass = permissions({ allow: ["*"] });
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("cached")) };
  for (const use of [[hooks, bypass], [bypass, hooks], [cache, hooks]]) {
    assertEquals((await under([...one], use)).lines[2], "denied Denied by preToolUse hook: No reason provided");
  }
});

Deno.test("Copilot: a denial without a reason has the text of the home system", async () => {
  for (const permissionDecisionReason of [undefined, ""]) {
    const { lines } = await runWith([...one], {
      onPreToolUse: () => ({
        permissionDecision: "deny",
        ...(permissionDecisionReason !== undefined && { permissionDecisionReason }),
      }),
    });
    assertEquals(lines[2], "denied Denied by preToolUse hook: No reason provided");
  }
});

Deno.test("Copilot: modifiedArgs are no approval, are dropped by a denial, and are validated", async () => {
  const steps = [{ calls: [call("a", { name: "drop" })] }, "Done."];
  const log: string[] = [];
  const tools = [drop(log)];
  const asked = await runWith(steps, { onPreToolUse: () => ({ modifiedArgs: { city: "oslo" } }) }, { tools });
  assertEquals(asked.questions.map(({ input }) => input), [{ city: "oslo" }]);
  const denied = await runWith(
    steps,
    { onPreToolUse: () => ({ permissionDecision: "deny", modifiedArgs: { city: "oslo" } }) },
    { tools },
  );
  assertEquals(inputsOf(denied.messages), [{ city: "a" }]);
  const wrong = await runWith(
    steps,
    { onPreToolUse: () => ({ permissionDecision: "allow", modifiedArgs: { town: "oslo" } }) },
    { tools },
  );
  assertEquals(
    wrong.lines[2],
    "error The input of drop is not valid: city: Invalid input: expected string, received undefined",
  );
  const noOslo = permissions({ deny: [{ when: (input) => JSON.stringify(input).includes("oslo"), why: "no oslo" }] });
  const allowed = copilot_hooks({
    onPreToolUse: () => ({ permissionDecision: "allow", modifiedArgs: { city: "oslo" } }),
  });
  assertEquals((await under(steps, [allowed, noOslo], { tools })).lines[2], "denied no oslo");
  assertEquals(log, []);
});

Deno.test("Copilot: allow answers questions of inner layers and overrides no denial", async () => {
  const steps = [{ calls: [call("a", { name: "drop" })] }, "Done."];
  const hooks = copilot_hooks({ onPreToolUse: () => ({ permissionDecision: "allow" }) });
  const asks = permissions({ ask: ["*"] });
  const rule: Middleware = { name: "rule", approval: () => Promise.resolve(deny("by rule")) };
  const results = [];
  for (const use of [[hooks], [hooks, asks], [asks, hooks], [hooks, rule], [rule, hooks]]) {
    const { status, lines } = await under(steps, use, { tools: [drop()] });
    results.push(status === "paused" ? status : lines[2]);
  }
  assertEquals(results, ["ok dropped a", "ok dropped a", "paused", "denied by rule", "denied by rule"]);
});

Deno.test("Copilot: metaToUse replaces, removes or keeps the metadata of an MCP call", async () => {
  const seen: unknown[] = [];
  const mcp = (name: string) =>
    tool({
      name,
      description: "Of a server",
      input: z.object({ q: z.string() }),
      execute(_, ctx) {
        const meta = metaOf(ctx);
        return meta ? JSON.stringify(meta) : String(meta);
      },
    });
  const names = ["mcp__docs__find_all", "mcp__docs__drop", "mcp__web__get", "plain"];
  const { lines } = await runWith([{ calls: names.map((name) => [name, { q: name }] as const) }, "Done."], {
    onPreMcpToolCall: ({ toolCallId, serverName, toolName, arguments: args }) => {
      seen.push([toolCallId, serverName, toolName, args]);
      if (serverName === "web") return null;
      return { metaToUse: toolName === "drop" ? null : { tenant: "t" } };
    },
  }, { tools: names.map(mcp) });
  assertEquals(lines.slice(2, 6), [`ok {"tenant":"t"}`, "ok null", "ok undefined", "ok undefined"]);
  assertEquals(seen, [
    ["call_1", "docs", "find_all", { q: "mcp__docs__find_all" }],
    ["call_2", "docs", "drop", { q: "mcp__docs__drop" }],
    ["call_3", "web", "get", { q: "mcp__web__get" }],
  ]);
});

Deno.test("Copilot: the option mcp names the server of a tool", async () => {
  const seen: string[] = [];
  const mcp = (name: string) => ({ serverName: "sky", toolName: name });
  const hooks = {
    onPreMcpToolCall: (input: { serverName: string; toolName: string }) => void seen.push(input.serverName),
  };
  await under([...one], [copilot_hooks(hooks, { mcp })]);
  assertEquals(seen, ["sky"]);
});

// ── after a call ──

Deno.test("Copilot: toolResult has the text, the images and the type of the result", async () => {
  const seen: ToolResultObject[] = [];
  const picture = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const { messages } = await runWith([...one], {
    onPostToolUse: ({ toolResult }) => {
      seen.push(toolResult);
      return { modifiedResult: { ...toolResult, textResultForLlm: "changed" }, additionalContext: "Compare." };
    },
  }, { tools: [weather(() => text([{ type: "text", text: "sun" }, picture]))] });
  assertEquals(seen, [{
    textResultForLlm: "sun",
    resultType: "success",
    binaryResultsForLlm: [{ data: "AAAA", mimeType: "image/png", type: "image" }],
  }]);
  const [result] = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals([result?.status, result?.parts], ["ok", [{ type: "text", text: "changed" }, picture]]);
  assertEquals(lines(messages).slice(3), ["context Compare.", "assistant Done."]);
});

Deno.test("Copilot: modifiedResult may be an object, a part of one, a text, or JSON", async () => {
  const results: [unknown, string][] = [
    [{ textResultForLlm: "no", resultType: "failure" }, "error no"],
    [{ textResultForLlm: "no", resultType: "rejected" }, "denied no"],
    [{ textResultForLlm: "no", resultType: "denied" }, "denied no"],
    [{ textResultForLlm: "late", resultType: "timeout" }, "timeout late"],
    [{ resultType: "failure" }, "error sun in a"],
    [{ textResultForLlm: "" }, "ok"],
    ["redacted", "ok redacted"],
    [{ summary: "Found 2" }, `ok {"summary":"Found 2"}`],
    [[1, 2], "ok [1,2]"],
    [{ resultForAssistant: ["sun", { text: " and rain" }], textResultForLlm: "no" }, "ok sun and rain"],
    [{ resultForAssistant: [{ type: "x", n: 1 }] }, `ok {"type":"x","n":1}`],
    [{ resultForAssistant: [], textResultForLlm: "text" }, "ok text"],
    [null, "ok sun in a"],
    [undefined, "ok sun in a"],
  ];
  for (const [modifiedResult, line] of results) {
    const { lines, warnings } = await runWith([...one], { onPostToolUse: () => ({ modifiedResult }) });
    assertEquals([lines[2], warnings], [line, []]);
  }
});

Deno.test("Copilot: suppressOutput of onPostToolUse withholds the result from the conversation", async () => {
  const { lines, events } = await runWith([...one], { onPostToolUse: () => ({ suppressOutput: true }) });
  assertEquals(lines[2], "ok The output was withheld by a hook.");
  assertEquals(JSON.stringify(events).includes("sun in"), false);
});

Deno.test("Copilot: with the option document, suppressOutput of onPostToolUse hides the result from the person only", async () => {
  const hooks = copilot_hooks({ onPostToolUse: () => ({ suppressOutput: true }) }, { document: true });
  const { lines, events } = await under([...one], [hooks]);
  assertEquals(lines[2], "ok sun in a");
  assertEquals(JSON.stringify(events).includes("sun in"), false);
});

Deno.test("Copilot: suppressOutput of onErrorOccurred hides a failed result from the person", async () => {
  const tools = [weather(() => Promise.reject(new ToolError("It rains.")))];
  const { lines, events } = await runWith([...one], {
    onErrorOccurred: () => ({ suppressOutput: true }),
    onPostToolUseFailure: () => null,
  }, { tools });
  assertEquals(lines[2], "error It rains.");
  assertEquals(JSON.stringify(events).includes("It rains."), false);
});

Deno.test("Copilot: onPostToolUseFailure receives the message of the error as thrown", async () => {
  const seen: string[] = [];
  const tools = [weather(() => Promise.reject(new Error("socket closed")))];
  const { lines } = await runWith([...one], { onPostToolUseFailure: ({ error }) => void seen.push(error) }, {
    tools,
  });
  assertEquals([seen, lines[2]], [["socket closed"], "error weather failed."]);
});

Deno.test("Copilot: cleanupActions may be texts and objects", async () => {
  const cleanupActions = ["closed", { action: "delete", path: "/tmp/a" }];
  const { events } = await runWith(["Done."], { onSessionEnd: () => ({ cleanupActions }) });
  assertEquals(eventsOfType(events, "data").map(({ data }) => data), [{ cleanupActions }]);
});

Deno.test("Copilot: sessionLog is a text for the person", async () => {
  const { events, lines } = await runWith([...one], {
    onPostToolUse: ({ toolResult }) => ({ modifiedResult: { ...toolResult, sessionLog: "It rained." } }),
  });
  assertEquals(eventsOfType(events, "notice").map(({ text }) => text), ["It rained."]);
  assertEquals(lines[2], "ok sun in a");
});

Deno.test("Copilot: guidance about a failure has the text of the home system", async () => {
  const seen: unknown[] = [];
  const { lines } = await runWith([...one], {
    onPostToolUse: () => void seen.push("success"),
    onPostToolUseFailure: ({ toolName, toolArgs, error }) => {
      seen.push([toolName, toolArgs, error]);
      return { additionalContext: "Ask for the town." };
    },
  }, {
    tools: [weather(() => {
      throw new ToolError("There is no such city.");
    })],
  });
  assertEquals(seen, [["weather", { city: "a" }, "There is no such city."]]);
  assertEquals(lines.slice(2), [
    "error There is no such city.",
    `context Tool "weather" failed. Additional guidance from postToolUseFailure hooks:\nAsk for the town.`,
    "assistant Done.",
  ]);
});

Deno.test("Copilot: a call that was denied, skipped or late fires neither post hook", async () => {
  const seen: string[] = [];
  const hooks = copilot_hooks({
    onPreToolUse: ({ toolArgs }) =>
      JSON.stringify(toolArgs).includes("a") ? { permissionDecision: "deny" } : { permissionDecision: "allow" },
    onPostToolUse: () => void seen.push("success"),
    onPostToolUseFailure: () => void seen.push("failure"),
  });
  const { lines } = await under([{ calls: [...three, call("d")] }, "Done."], [
    hooks,
    at("b", { tool: () => Promise.resolve(skipped("not now")) }),
    at("c", { tool: () => Promise.resolve(denied("no")) }),
  ], { tools: [weather(() => Promise.reject(new DOMException("late", "TimeoutError")))] });
  assertEquals(lines.slice(2, 6), [
    "denied Denied by preToolUse hook: No reason provided",
    "skipped not now",
    "denied no",
    "timeout weather did not finish in time.",
  ]);
  assertEquals(seen, []);
});

// ── failures ──

Deno.test("Copilot: retryCount is the most retries in a row, and is reset by a success", async () => {
  const seen: unknown[] = [];
  const hooks: SessionHooks = {
    onErrorOccurred: ({ error, errorContext, recoverable }) => {
      seen.push([error, errorContext, recoverable]);
      return { errorHandling: "retry", retryCount: 2, userNotification: "Again." };
    },
  };
  const { status, model, events } = await runWith([
    ...[{ error: busy }, { error: busy }, { calls: [call("a")] }],
    ...[{ error: busy }, { error: busy }, "Done."],
  ], hooks);
  assertEquals([status, model.left, seen], ["done", 0, Array(4).fill(["busy", "model_call", true])]);
  assertEquals(eventsOfType(events, "notice").length, 4);
  const failed = await runWith([{ error: busy }, { error: busy }, { error: busy }], hooks);
  assertEquals([failed.status, failed.model.left], ["failed", 0]);
});

Deno.test("Copilot: a call is retried, and a skipped call is answered", async () => {
  let tries = 0;
  const flaky = weather(({ city }) => {
    if (city === "b" || ++tries < 3) throw new Error("broken");
    return "sun";
  }, { idempotent: true });
  const seen: string[] = [];
  const { lines, status } = await runWith([{ calls: [call("a"), call("b")] }, "Done."], {
    onErrorOccurred: ({ errorContext }) => {
      seen.push(errorContext);
      return seen.length <= 3 ? { errorHandling: "retry", retryCount: 2 } : { errorHandling: "skip" };
    },
  }, { tools: [flaky] });
  assertEquals([status, lines.slice(2)], ["done", ["ok sun", "error weather failed.", "assistant Done."]]);
  assertEquals(new Set(seen), new Set(["tool_execution"]));
});

Deno.test("Copilot: a call of a tool that is not idempotent is not retried", async () => {
  let tries = 0;
  const tools = [weather(() => Promise.reject(new Error(`broken ${++tries}`)))];
  const { lines } = await runWith([...one], { onErrorOccurred: () => ({ errorHandling: "retry" }) }, { tools });
  assertEquals([tries, lines[2]], [1, "error weather failed."]);
});

Deno.test("Copilot: abort fails the run, skip continues, and no answer changes nothing", async () => {
  const tools = [weather(() => Promise.reject(new Error("broken")))];
  const abort = await runWith([...one], { onErrorOccurred: () => ({ errorHandling: "abort" }) }, { tools });
  assertEquals([abort.status, String(abort.error)], ["failed", "Error: broken"]);
  assertEquals((await runWith([...one], { onErrorOccurred: () => null }, { tools })).status, "done");
  const skip = await runWith([{ error: busy }], { onErrorOccurred: () => ({ errorHandling: "skip" }) });
  assertEquals([skip.status, skip.lines], ["done", ["user Hi"]]);
});

Deno.test("Copilot: retry without retryCount retries once, after the delay of the provider", async () => {
  using time = new FakeTime();
  const slow = new ModelError("busy", { recoverable: true, retryAfter: 500 });
  const hooks = copilot_hooks({ onErrorOccurred: () => ({ errorHandling: "retry" }) });
  const model = scripted({ error: slow }, "Done.");
  const { result } = agent({ model, use: [hooks] }).run("Hi");
  await time.tickAsync(499);
  assertEquals(model.left, 1);
  await time.tickAsync(1);
  assertEquals((await result).status, "done");
  const twice = agent({ model: scripted({ error: busy }, { error: busy }), use: [hooks] }).run("Hi");
  await time.tickAsync(0);
  assertEquals((await twice.result).status, "failed");
});

Deno.test("Copilot: userNotification is for the person only, additionalContext for the model only", async () => {
  const { events, messages } = await runWith([{ error: busy }, { calls: [call("a")] }, "Done."], {
    onErrorOccurred: () => ({ errorHandling: "retry", userNotification: "One moment." }),
    onPostToolUse: () => ({ additionalContext: "Mind the rain." }),
  });
  assertEquals(eventsOfType(events, "notice").map(({ text }) => text), ["One moment."]);
  assertEquals(JSON.stringify(messages).includes("One moment."), false);
  assertEquals(JSON.stringify(events).includes("Mind the rain."), false);
});

// ── stopping ──

Deno.test("Copilot: a block of onAgentStop continues with its reason and sets stopHookActive", async () => {
  const seen: unknown[] = [];
  const { lines, status } = await runWith(["1", { calls: [call("a")] }, "2"], {
    onAgentStop: ({ stopReason, stopHookActive }) => {
      seen.push([stopReason, stopHookActive]);
      return stopHookActive ? null : { decision: "block", reason: "Go on." };
    },
  });
  assertEquals(lines, ["user Hi", "assistant 1", "copilot_hooks Go on.", "call weather", "ok sun in a", "assistant 2"]);
  assertEquals([status, seen], ["done", [["end_turn", false], ["end_turn", true]]]);
  const tireless = await runWith(["1", "2", "3"], { onAgentStop: () => ({ decision: "block" }) }, {
    limits: { continuations: 2 },
  });
  assertEquals([tireless.status, tireless.reason], ["limit", "continuations"]);
});

// ── handlers ──

Deno.test("Copilot: each hook has one handler, the last one registered", async () => {
  const seen: string[] = [];
  const note = (name: string) => () => void seen.push(name);
  const hooks = copilot_hooks([
    { onSessionStart: note("start 1"), onPreToolUse: note("pre 1") },
    { onPreToolUse: note("pre 2") },
  ]);
  await under([...one], [hooks]);
  assertEquals(seen, ["start 1", "pre 2"]);
});

Deno.test("Copilot: calls of a subagent fire the hooks of its caller with the subagent's session", async () => {
  const seen: string[][] = [];
  const note = (name: string) => (input: { sessionId: string; toolName?: string }, it: { sessionId: string }) =>
    void seen.push([name, input.toolName ?? "", input.sessionId === "s" ? "s" : "other", it.sessionId]);
  const child = agent({
    name: "child",
    model: scripted({ calls: [call("x"), call("y", { name: "drop" })] }, "Child done."),
    tools: [weather(), drop()],
  });
  const pre = note("pre");
  const { lines } = await runWith([{ calls: [{ id: "c", name: "child", input: { prompt: "Go" } }] }, "Done."], {
    onSessionStart: note("start"),
    onUserPromptSubmitted: note("prompt"),
    onPreToolUse: (input, invocation) => {
      pre(input, invocation);
      return input.toolName === "drop" ? { permissionDecision: "deny" } : null;
    },
    onPostToolUse: note("post"),
    onAgentStop: note("stop"),
    onSessionEnd: note("end"),
  }, { tools: [asTool(child)] });
  assertEquals(seen, [
    ["start", "", "s", "s"],
    ["prompt", "", "s", "s"],
    ["pre", "child", "s", "s"],
    ["pre", "weather", "other", "s"],
    ["post", "weather", "other", "s"],
    ["pre", "drop", "other", "s"],
    ["post", "child", "s", "s"],
    ["stop", "", "s", "s"],
    ["end", "", "s", "s"],
  ]);
  assertEquals(lines.slice(2), ["ok Child done.", "assistant Done."]);
});

Deno.test("Copilot: the time is in milliseconds, or a Date in the dialect node, where a session begins as new", async () => {
  using _ = new FakeTime(1_000);
  const seen: unknown[] = [];
  await runWith(["Done."], {
    onSessionStart: (input) => void seen.push(input),
  });
  const hooks = copilot_hooks({
    onSessionStart: (input: { timestamp: Date; workingDirectory: string; source: string }) =>
      void seen.push(input.timestamp, input.workingDirectory, input.source),
  }, { dialect: "node", cwd: "/home/ada" });
  await under(["Done."], [hooks]);
  assertEquals(seen, [
    { sessionId: "s", timestamp: 1_000, cwd: "/", workingDirectory: "/", source: "startup", initialPrompt: "Hi" },
    new Date(1_000),
    "/home/ada",
    "new",
  ]);
});

Deno.test("Copilot: cwd is the working directory of the agent", async () => {
  const seen: string[] = [];
  const files = workspace(memoryFiles({ "src/a.ts": "" }));
  const hooks = copilot_hooks({ onPreToolUse: ({ cwd }) => void seen.push(cwd) }, { cwd: "/repo/" });
  await under([
    { calls: [["change_directory", { path: "src" }]] },
    { calls: [["list_files", { path: "." }]] },
    "Done.",
  ], [files, hooks]);
  assertEquals(seen, ["/repo/", "/repo/src"]);
});

Deno.test("Copilot: transcriptPath is the file of transcript()", async () => {
  const seen: unknown[] = [];
  const keeper: Middleware = {
    name: "transcript",
    session(ctx, next) {
      ctx.run.state.set("transcript.path", "/tmp/s.jsonl");
      return next();
    },
  };
  const hooks = copilot_hooks({ onAgentStop: ({ transcriptPath }) => void seen.push(transcriptPath) });
  await under(["Done."], [keeper, hooks]);
  await under(["Done."], [hooks]);
  assertEquals(seen, ["/tmp/s.jsonl", undefined]);
});

Deno.test("Copilot: nothing, an empty object, unknown fields and the input itself are no opinion", async () => {
  const outputs = [
    null,
    undefined,
    {},
    { permissionDecision: undefined, modifiedArgs: null, additionalContext: null },
    { hookSpecificOutput: null, more: undefined },
    "input",
  ];
  for (const output of outputs) {
    const same = (input: unknown) => (output === "input" ? input : output) as null; // a hook may return this
    const { lines, warnings, status } = await runWith([...one], {
      onSessionStart: same,
      onUserPromptSubmitted: same,
      onUserPromptTransformed: same,
      onPreToolUse: same,
      onPreMcpToolCall: same,
      onPostToolUse: same,
      onPostToolUseFailure: same,
      onErrorOccurred: same,
      onAgentStop: same,
      onSessionEnd: same,
    });
    assertEquals(lines, ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
    assertEquals([warnings, status], [[], "done"]);
  }
});

Deno.test("Copilot: a warning reports unknown fields of an output", async () => {
  const output = () => ({ hookSpecificOutput: {}, more: 1 }) as object;
  const { lines, warnings } = await runWith([...one], { onPreToolUse: output, onAgentStop: output });
  assertEquals(lines, ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
  assertEquals(warnings, [
    "tool onPreToolUse returned unknown members: hookSpecificOutput, more.",
    "stop onAgentStop returned unknown members: hookSpecificOutput, more.",
  ]);
});

Deno.test("Copilot: a handler that fails changes nothing, and a warning reports it", async () => {
  const errors: unknown[] = [];
  const broken = new Error("broken");
  const fail = () => Promise.reject(broken);
  const hooks = copilot_hooks({
    onSessionStart: () => {
      throw broken;
    },
    onUserPromptSubmitted: fail,
    onPreToolUse: fail,
    onPostToolUse: fail,
    onAgentStop: fail,
    onSessionEnd: fail,
  });
  const model = scripted(...one);
  const { lines, warnings } = await ended(
    agent({ model, tools: [weather()], use: [hooks] }).run({ prompt: "Hi", onError: (error) => errors.push(error) }),
  );
  assertEquals(lines, ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
  assertEquals(warnings, [
    "session onSessionStart failed.",
    "prompt onUserPromptSubmitted failed.",
    "tool onPreToolUse failed.",
    "tool onPostToolUse failed.",
    "stop onAgentStop failed.",
    "session onSessionEnd failed.",
  ]);
  assertEquals(errors, Array(6).fill(broken));
});

Deno.test("Copilot: an invalid field is ignored and does not remove a denial", async () => {
  const outputs: [unknown, string, string[]][] = [
    [
      { permissionDecision: "deny", permissionDecisionReason: 7 },
      "denied Denied by preToolUse hook: No reason provided",
      [
        "permissionDecisionReason: Invalid input: expected string, received number",
      ],
    ],
    [
      { permissionDecision: " Deny", additionalContext: ["x"], suppressOutput: "yes" },
      "denied Denied by preToolUse hook: No reason provided",
      [
        "additionalContext: Invalid input: expected string, received array",
        "suppressOutput: Invalid input: expected boolean, received string",
      ],
    ],
    [{ permissionDecision: "maybe" }, "ok sun in a", [
      `permissionDecision: Invalid option: expected one of "allow"|"deny"|"ask"`,
    ]],
    ["allow", "ok sun in a", ["expected an object, received string"]],
    [[], "ok sun in a", ["expected an object, received object"]],
  ];
  for (const [output, line, complaints] of outputs) {
    const { lines, warnings } = await runWith([...one], { onPreToolUse: () => output as null }); // a hook may return this
    assertEquals([lines[2], warnings], [
      line,
      complaints.map((complaint) => `tool onPreToolUse returned an invalid output: ${complaint}`),
    ]);
  }
});

Deno.test("Copilot: changes that a handler makes in its input are lost", async () => {
  const { lines, messages } = await runWith([...one], {
    onPreToolUse: (input) => {
      Object.assign(input.toolArgs as object, { city: "Kyoto" });
      input.toolName = "drop";
    },
    onPostToolUse: (input: PostToolUseHookInput) => {
      input.toolResult.textResultForLlm = "changed";
    },
  });
  assertEquals([lines[2], inputsOf(messages)], ["ok sun in a", [{ city: "a" }]]);
});

Deno.test("Copilot: a handler may be a method of an object", async () => {
  class Counter implements SessionHooks {
    count = 0;
    onPreToolUse() {
      this.count++;
    }
  }
  const counter = new Counter();
  await under([{ calls: three }, "Done."], [copilot_hooks(counter)]);
  assertEquals(counter.count, 3);
});

Deno.test("Copilot: a warning reports unknown hooks, and a handler has to be a function", async () => {
  const deny = () => ({ permissionDecision: "deny" });
  const hooks = { onNotice: () => {}, onPreTooluse: deny, preToolUse: deny, onposttooluse: deny, note: () => {} };
  const { events } = await runWith(["Hello."], hooks as SessionHooks);
  assertEquals(eventsOfType(events, "warning").map(({ code, message, point }) => [code, message, point]), [
    ["hook.skipped", "onNotice never runs: unknown hook.", "session"],
    ["hook.skipped", "onPreTooluse never runs: unknown hook.", "session"],
    ["hook.skipped", "preToolUse never runs: unknown hook.", "session"],
    ["hook.skipped", "onposttooluse never runs: unknown hook.", "session"],
  ]);
  assertThrows(
    () => copilot_hooks({ onPreToolUse: "deny" as never }),
    TypeError,
    "Cannot use onPreToolUse: expected a function, received string",
  );
  for (const none of [undefined, null, "deny", [null]]) {
    const error = "Cannot use hooks: expected an object with `onPreToolUse` and others";
    assertThrows(() => copilot_hooks(none as never), TypeError, error); // as untyped code passes it
  }
});

Deno.test("Copilot: no output of its own refuses a prompt, and a denial in the form of another system does", async () => {
  const outcome = async (output: object) => {
    const { lines, status, warnings } = await runWith(["Hello."], { onUserPromptSubmitted: () => output });
    return [lines, status, warnings];
  };
  const briefly = ["user Hi", "prompt Be brief.", "assistant Hello."];
  assertEquals(await outcome({ additionalContext: "Be brief." }), [briefly, "done", []]);
  for (const [output, member] of [[{ decision: "block" }, "decision"], [{ continue: false }, "continue"]] as const) {
    assertEquals(await outcome(output), [[], "cancelled", [
      `prompt onUserPromptSubmitted denies in the form of another system: ${member}.`,
    ]]);
  }
});

Deno.test("Copilot: a denial of onPreMcpToolCall in the form of another system denies the call", async () => {
  const tools = [weather(undefined, { name: "mcp__sky__look" })];
  const hooks = copilot_hooks({ onPreMcpToolCall: () => ({ approved: false, reason: "Not here." }) as object });
  const { lines } = await batch([call("a", { name: "mcp__sky__look" })], { tools, use: [hooks] }).run().outcome;
  assertEquals(lines[1], "denied Denied by preMcpToolCall hook: Not here.");
});

Deno.test("Copilot: a handler that never answers does not keep a stopped run open", async () => {
  using time = new FakeTime();
  for (const name of ["onSessionStart", "onUserPromptSubmitted", "onPreToolUse", "onPostToolUse", "onAgentStop"]) {
    const hooks = copilot_hooks({ [name]: () => new Promise<never>(() => {}) });
    const running = batch([call("a")], { use: [hooks], limits: { grace: 100 } }).run();
    await time.tickAsync();
    running.stop("enough");
    await time.tickAsync(300);
    const { result, events } = await running.outcome;
    assertEquals([name, result.status, events.at(-1)?.type], [name, "aborted", "run.aborted"]);
  }
});

Deno.test("Copilot: a denial stays, whatever nested middleware of the same kind decide", async () => {
  const deciding = (permissionDecision: "allow" | "ask" | "deny") =>
    copilot_hooks({ onPreToolUse: () => ({ permissionDecision, permissionDecisionReason: `${permissionDecision}.` }) });
  const outcome = async (...use: readonly Middleware[]) => {
    const tool = weather();
    const { lines, result } = await batch([call("a")], { tools: [tool], use }).run().outcome;
    return [lines[1]?.split(" ")[0], result.status];
  };
  assertEquals(await outcome(deciding("deny"), deciding("allow")), ["denied", "done"]);
  assertEquals(await outcome(deciding("allow"), deciding("deny")), ["denied", "done"]);
  assertEquals((await outcome(deciding("allow"), deciding("ask")))[1], "paused");
  assertEquals(
    (await outcome(deciding("allow"), copilot_hooks({ onPreToolUse: () => {} }), deciding("allow")))[0],
    "ok",
  );
  const asks: Middleware = { name: "asks", approval: () => Promise.resolve({ type: "ask", questions: ["Sure?"] }) };
  assertEquals((await outcome(copilot_hooks({ onPreToolUse: () => {} }), asks, deciding("allow")))[1], "paused");
  const withholds = copilot_hooks({ onPreToolUse: () => ({ suppressOutput: true }) });
  const { lines } = await batch([call("a")], { tools: [weather()], use: [deciding("allow"), withholds] }).run().outcome;
  assertEquals(lines[1], "ok The output was withheld by a hook.");
});

Deno.test("Copilot: hooks of subagents add context before their prompt, keep them going, and rewrite their answers", async () => {
  const inputs: unknown[] = [];
  const childModel = scripted("First.", "Second.");
  const child = agent({ name: "explore", description: "Explores", model: childModel });
  const hooks: SessionHooks = {
    onSubagentStart({ agentName, transcriptPath }) {
      inputs.push([agentName, transcriptPath]);
      return { additionalContext: "Be brief." };
    },
    onSubagentStop({ response, agentType, agentName, stopReason }) {
      inputs.push([response, agentType, agentName, stopReason]);
      return response === "First."
        ? { decision: "block", reason: "Again.", modifiedResponse: "No." }
        : { modifiedResponse: "Short." };
    },
    onAgentStop: () => ({ decision: "allow" }),
  };
  const model = scripted({ calls: [["explore", { prompt: "Look" }]] }, "Done.");
  const { messages } = await agent({ model, use: [copilot_hooks(hooks), subagents([child])] }).run("Go").result;
  assertEquals(inputs, [
    ["explore", ""],
    ["First.", "explore", "explore", "end_turn"],
    ["Second.", "explore", "explore", "end_turn"],
  ]);
  assertEquals(lines(childModel.requests[1]?.messages ?? []), [
    "session Be brief.",
    "user Look",
    "assistant First.",
    "copilot_hooks Again.",
  ]);
  assertEquals(lines(messages).slice(1, 3), ["call explore", "ok Short."]);
});

Deno.test("Copilot: an agent is kept going eight times in a row", async () => {
  const active: unknown[] = [];
  const onAgentStop = ({ stopHookActive }: { stopHookActive?: boolean }) => {
    active.push(stopHookActive);
    return { decision: "block" as const, reason: "More." };
  };
  const model = scripted(...Array.from({ length: 10 }, (_, index) => `Answer ${index}.`));
  const use = [copilot_hooks({ onAgentStop })];
  const { events, result } = await collect(agent({ model, use, limits: { continuations: 20 } }).run("Go"));
  assertEquals([result.status, result.text], ["done", "Answer 8."]);
  assertEquals(active, [false, ...Array(8).fill(true)]);
  assertEquals(warnings(events), ["Hooks have kept the agent from stopping 8 times in a row: it stops."]);
});

Deno.test("Copilot: onPreCompact runs before a compaction, and changes nothing", async () => {
  const seen: unknown[] = [];
  const onPreCompact: SessionHooks["onPreCompact"] = ({ trigger, customInstructions, transcriptPath }) => {
    seen.push([trigger, customInstructions, transcriptPath]);
  };
  const use = [copilot_hooks({ onPreCompact })];
  const assistant = compacting({ model: scripted("One.", "Two."), use, limits: { context: 30 } });
  const { session } = await assistant.run({ session: "s", prompt: "Hi" }).result;
  const { status } = await assistant.run({ session, prompt: "x".repeat(100) }).result;
  assertEquals([status, seen], ["done", [["auto", "", ""]]]);
});
