import { assertEquals } from "@std/assert";
import { agent, compacted, ModelError, type RunHandle, tool, ToolError, user } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { retry } from "@jizai/jizai/middleware/retry";
import { type KindForm, rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { FakeTime } from "@std/testing/time";
import { batch, call, settled, weather } from "../../support/batch.ts";
import { served } from "../../support/mcp_server.ts";
import { answering, builtins, programs, warnings } from "../../support/rpc.ts";
import { asTool } from "@jizai/jizai/subagents";
import { compacting } from "../../support/compacting.ts";
import * as z from "zod";

/** An event, as hooks receive it in the version of the document. */
interface ReceivedMessage {
  readonly Kind: string;
  readonly Time: string;
  readonly Meta: { readonly Iteration: number; readonly Source: string; readonly ParentTurnID: string };
  readonly Payload: Readonly<Record<string, unknown>>;
}

/** A hook that observes everything, and its log. */
function ears() {
  const received: ReceivedMessage[] = [];
  const hook = { event: (event: object) => void received.push(event as ReceivedMessage) }; // in the form of the document's version
  return { received, hook, kinds: () => received.map(({ Kind }) => Kind) };
}

Deno.test("PicoClaw: the kind of an event is a name, a number or a dotted name", async () => {
  const reported: unknown[] = [];
  const run = async (wire: "document" | "head", kinds?: KindForm) => {
    const { stdio } = programs({
      ear({ id, method, params }, send) {
        if (id !== undefined) return send({ id, result: {} });
        reported.push([method, params.Kind ?? params.kind]);
        return undefined;
      },
    });
    const processes = {
      ear: { enabled: true, command: ["ear"], observe: ["turn_start", "agent.tool.exec_start", "error"] },
    };
    await using hooks = rpc_hooks({ processes }, { stdio, wire, ...(kinds && { kinds }) });
    await batch([call("a")], { use: [hooks] }).run().outcome;
    await settled();
  };
  await run("document");
  assertEquals(reported.splice(0), [["hook.event", "turn_start"], ["hook.event", "tool_exec_start"]]);
  await run("document", "numbers");
  assertEquals(reported.splice(0), [["hook.event", 0], ["hook.event", 8]]);
  await run("document", "dotted");
  assertEquals(reported.splice(0), [["hook.event", "agent.turn.start"], ["hook.event", "agent.tool.exec_start"]]);
  await run("head");
  assertEquals(reported, [["hook.runtime_event", "agent.turn.start"], ["hook.runtime_event", "agent.tool.exec_start"]]);
});

Deno.test("PicoClaw: an observer receives the events of a run in order", async () => {
  const { received, hook } = ears();
  const model = scripted({ reasoning: "Hm.", text: ["Let ", "me."], calls: [call("a"), call("b")] }, "Done.");
  const run = agent({
    name: "assistant",
    model,
    instructions: "Know.",
    tools: [weather(({ city }) => {
      if (city === "b") throw new Error("no b");
      return "sun";
    })],
    use: [builtins({ ear: hook })],
  }).run("Hé");
  await run.result;
  await settled();
  const payloads = received.map((
    { Kind, Payload: { Duration: _, ...rest }, Meta: { Iteration, Source } },
  ) => [Kind, Iteration, Source, rest]);
  const tool = { Tool: "weather" };
  const request = { Model: "scripted", ToolsCount: 1, MaxTokens: 0, Temperature: 0 };
  assertEquals(payloads, [
    ["turn_start", 0, "turn.start", { Channel: "jizai", ChatID: run.session, UserMessage: "Hé", MediaCount: 0 }],
    ["llm_request", 0, "turn.llm.request", { ...request, MessagesCount: 2 }],
    ["llm_delta", 0, "turn.llm.delta", { ContentDeltaLen: 0, ReasoningDeltaLen: 3 }],
    ["llm_delta", 0, "turn.llm.delta", { ContentDeltaLen: 4, ReasoningDeltaLen: 0 }],
    ["llm_delta", 0, "turn.llm.delta", { ContentDeltaLen: 3, ReasoningDeltaLen: 0 }],
    ["llm_response", 0, "turn.llm.response", { ContentLen: 7, ToolCalls: 2, HasReasoning: true }],
    ["tool_exec_start", 0, "turn.tool.start", { ...tool, Arguments: { city: "a" } }],
    ["tool_exec_start", 0, "turn.tool.start", { ...tool, Arguments: { city: "b" } }],
    ["error", 0, "turn.error", { Stage: "execute", Message: "no b" }],
    ["tool_exec_end", 0, "turn.tool.end", { ...tool, ForLLMLen: 3, ForUserLen: 0, IsError: false, Async: false }],
    ["tool_exec_end", 0, "turn.tool.end", { ...tool, ForLLMLen: 15, ForUserLen: 0, IsError: true, Async: false }],
    ["llm_request", 1, "turn.llm.request", { ...request, MessagesCount: 5 }],
    ["llm_delta", 1, "turn.llm.delta", { ContentDeltaLen: 5, ReasoningDeltaLen: 0 }],
    ["llm_response", 1, "turn.llm.response", { ContentLen: 5, ToolCalls: 0, HasReasoning: false }],
    ["turn_end", 1, "turn.end", {
      ...{ Status: "completed", Workspace: "", Iterations: 2, FinalContentLen: 5 },
      ...{ UserMessage: "Hé", FinalContent: "Done." },
    }],
  ]);
});

Deno.test("PicoClaw: an observer receives denied calls, retries and aborted runs", async () => {
  const { received, hook } = ears();
  const gate = { before_tool: () => ({ action: "deny_tool", reason: "no" }) };
  const denied = batch([call("a")], { use: [builtins({ ear: hook, gate })] });
  await denied.run().outcome;
  const reason = "Tool execution denied by hook: no";
  const skipped = () =>
    received.splice(0).flatMap(({ Kind, Payload }) =>
      ["tool_exec_start", "tool_exec_end", "tool_exec_skipped"].includes(Kind) ? [Payload] : []
    );
  await settled();
  assertEquals(skipped(), [{ Tool: "weather", Reason: reason }]);
  const fails = { error: new ModelError("busy", { recoverable: true }) };
  await agent({ model: scripted(fails, "Done."), use: [retry({ attempts: 2, delay: 0 }), builtins({ ear: hook })] })
    .run("Hi").result;
  await settled();
  assertEquals(received.splice(0).map(({ Kind }) => Kind), [
    "turn_start",
    "llm_request",
    "llm_retry",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
  ]);
  const aborting = builtins({ ear: hook, gate: { before_tool: () => ({ action: "abort_turn" }) } });
  await batch([call("a")], { use: [aborting] }).run().outcome;
  await settled();
  assertEquals(
    received.slice(-2).map(({ Kind, Payload: { Stage, Message, Status } }) => [Kind, Stage, Message, Status]),
    [
      ["error", "hook.before_tool", "hook aborted turn during before_tool: hook requested turn abort", undefined],
      ["turn_end", undefined, undefined, "error"],
    ],
  );
  received.length = 0;
  const inside = Promise.withResolvers<void>();
  const running = batch([call("a")], {
    tools: [weather((_, { signal }) => {
      inside.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    })],
    use: [builtins({ ear: hook })],
  }).run();
  await inside.promise;
  running.stop();
  await running.outcome;
  await settled();
  assertEquals(received.slice(-2).map(({ Kind, Payload: { Kind: what, Status } }) => [Kind, what ?? Status]), [
    ["interrupt_received", "hard_abort"],
    ["turn_end", "aborted"],
  ]);
});

Deno.test("PicoClaw: an observer receives subagents, compactions and steering", async () => {
  const { received, hook, kinds } = ears();
  const child = agent({ name: "child", model: scripted("Sunny.") });
  const parent = agent({
    model: scripted({ calls: [{ id: "a", name: "child", input: { prompt: "Weather?" } }] }, "Done."),
    tools: [asTool(child)],
    use: [builtins({ ear: hook })],
  });
  const { run } = await parent.run("Hi").result;
  await settled();
  assertEquals(kinds(), [
    "turn_start",
    "llm_request",
    "llm_response",
    "tool_exec_start",
    "subturn_spawn",
    "turn_start",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
    "subturn_end",
    "subturn_result_delivered",
    "tool_exec_end",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
  ]);
  assertEquals(
    received.flatMap(({ Kind, Payload }) =>
      ["subturn_spawn", "subturn_end", "subturn_result_delivered"].includes(Kind) ? [Payload] : []
    ).slice(0, 2),
    [
      { AgentID: "child", Label: "child", ParentTurnID: run },
      { AgentID: "child", Status: "completed" },
    ],
  );
  assertEquals(received[5]?.Meta.ParentTurnID, run);
  received.length = 0;
  const messages = [user("x".repeat(400)), user("y".repeat(400)), user("Hi")];
  await compacting({
    model: scripted("Done."),
    limits: { context: 50 },
    use: [builtins({ ear: hook }), { name: "short", compact: () => Promise.resolve(compacted([user("Hi")])) }],
  }).run({ messages }).result;
  await settled();
  assertEquals(received.flatMap(({ Kind, Payload }) => Kind === "context_compress" ? [Payload] : []), [
    { Reason: "proactive_budget", DroppedMessages: 2, RemainingMessages: 1 },
  ]);
  received.length = 0;
  const steered = agent({
    model: scripted({ calls: [call("a")] }, "Done."),
    tools: [weather((): unknown => handle.send("And Oslo?"))],
    use: [builtins({ ear: hook })],
  });
  const handle: RunHandle<unknown> = steered.run("Hi");
  await handle.result;
  await settled();
  assertEquals(received.flatMap(({ Kind, Payload }) => Kind === "steering_injected" ? [Payload] : []), [{
    Count: 1,
    TotalContentLen: 9,
  }]);
});

Deno.test("PicoClaw: a pause is no turn_end, and a resume no turn_start", async () => {
  const { hook, kinds } = ears();
  const started = batch([call("a")], {
    use: [builtins({ ear: hook }), {
      name: "ask",
      approval: () => Promise.resolve({ type: "ask", questions: ["Sure?"] }),
    }],
  });
  const { result } = await started.run().outcome;
  await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  await settled();
  assertEquals(kinds(), [
    "turn_start",
    "llm_request",
    "llm_response",
    "tool_exec_start",
    "tool_exec_end",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
  ]);
});

Deno.test("PicoClaw: observers do not delay a run: 64 events wait, and each hook has 500 ms", async () => {
  using time = new FakeTime();
  const received: string[] = [];
  const slow = {
    event: ({ Kind }: Readonly<Record<string, unknown>>) => {
      received.push(String(Kind));
      return new Promise(() => {});
    },
  };
  const fast: string[] = [];
  const model = scripted({ text: Array.from({ length: 100 }, () => "x") });
  const start = time.now;
  const running = agent({
    model,
    use: [builtins({ a: slow, b: { event: ({ Kind }) => void fast.push(String(Kind)) } })],
  }).run("Hi");
  const { status } = await running.result;
  assertEquals([status, time.now - start, received, fast], ["done", 0, ["turn_start"], []]);
  for (let reported = 0; reported < 65; reported++) {
    await time.tickAsync(500);
    await time.tickAsync(0);
  }
  const reported = ["turn_start", "llm_request", ...Array.from({ length: 63 }, () => "llm_delta")]; // one is delivered, 64 wait
  assertEquals([received, fast], [reported, reported]);
});

Deno.test("PicoClaw: onError receives the failure of an observer, and the other observers continue", async () => {
  const received: string[] = [];
  const hooks = builtins({
    a: {
      event({ Kind }) {
        if (Kind !== "turn_start") return;
        throw new Error("deaf");
      },
    },
    b: { event: ({ Kind }) => void received.push(String(Kind)) },
  });
  const { events, errors } = await batch([call("a")], { use: [hooks] }).run().outcome;
  await settled();
  assertEquals([received, warnings(events)], [[
    "turn_start",
    "llm_request",
    "llm_response",
    "tool_exec_start",
    "tool_exec_end",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
  ], []]);
  assertEquals(errors.map(String), ['Error: Cannot send the event turn_start to the hook "a"']);
});

Deno.test("PicoClaw: in the version head, events have a severity and a source", async () => {
  const reported: Record<string, unknown>[] = [];
  const hooks = builtins({
    ear: { event: (event) => void reported.push(event) },
    gate: { before_tool: () => ({ action: "deny_tool" }) },
  }, { wire: "head", channel: "cli" });
  const run = agent({
    name: "assistant",
    model: scripted({ calls: [call("a")] }, "Done."),
    tools: [weather()],
    use: [hooks],
  }).run({ prompt: "Hi", session: "s" });
  const { run: turn_id } = await run.result;
  await settled();
  assertEquals(reported.map(({ kind, severity }) => [kind, severity]), [
    ["agent.turn.start", "info"],
    ["agent.llm.request", "info"],
    ["agent.llm.response", "info"],
    ["agent.tool.exec_skipped", "warn"],
    ["agent.llm.request", "info"],
    ["agent.llm.delta", "info"],
    ["agent.llm.response", "info"],
    ["agent.turn.end", "info"],
  ]);
  const { id: _, time: __, payload: ___, ...rest } = reported[3] ?? {};
  assertEquals(rest, {
    kind: "agent.tool.exec_skipped",
    source: { component: "agent", name: "assistant" },
    scope: { agent_id: "assistant", session_key: "s", turn_id, channel: "cli", chat_id: "s" },
    correlation: { trace_id: "turn.tool.skipped", parent_turn_id: "" },
    severity: "warn",
    attrs: { agent_source: "runTurn", iteration: 0 },
  });
});

/** Runs an agent with two tools of a server, one of which fails, and returns the events about it. */
async function servedRun(wire: "document" | "head"): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const reported: Record<string, unknown>[] = [];
  const hooks = builtins(
    { ear: { event: (event) => void reported.push(event) } },
    { wire, channel: "cli", kinds: "dotted" },
  );
  const input = z.object({});
  const good = tool({ name: "mcp__files__read", description: "Reads", input, execute: () => "text" });
  const bad = tool({
    name: "mcp__files__write",
    description: "Writes",
    input,
    execute() {
      throw new ToolError("the disk is full");
    },
  });
  const calls = [good, bad].map(({ name }) => ({ name, input: {} }));
  const assistant = agent({
    name: "assistant",
    model: scripted({ calls }, "Done."),
    tools: [good, bad, weather()],
    use: [hooks],
  });
  await assistant.run({ prompt: "Hi", session: "s" }).result;
  await settled();
  return reported.filter(({ kind, Kind }) => String(kind ?? Kind).startsWith("mcp."));
}

Deno.test("PicoClaw: in the version head, observers receive the servers, tools and calls of MCP", async () => {
  const events = await servedRun("head");
  const read = { server: "files", tool: "read" };
  const write = { server: "files", tool: "write" };
  assertEquals(
    events.map(({ kind, severity, payload }) => [kind, severity, { ...(payload as object), duration_ms: undefined }]), // every payload is an object
    [
      ["mcp.server.connected", "info", { server: "files", tool_count: 2, duration_ms: undefined }],
      ["mcp.tool.discovered", "info", { ...read, duration_ms: undefined }],
      ["mcp.tool.discovered", "info", { ...write, duration_ms: undefined }],
      ["mcp.tool.call.start", "info", { ...read, duration_ms: undefined }],
      ["mcp.tool.call.start", "info", { ...write, duration_ms: undefined }],
      ["mcp.tool.call.end", "info", { ...read, duration_ms: undefined }],
      ["mcp.tool.call.end", "error", {
        ...write,
        is_error: true,
        error: "the disk is full",
        duration_ms: undefined,
      }],
    ],
  );
  const { id: _, time: __, payload, ...rest } = events[3] ?? {};
  assertEquals(rest, {
    kind: "mcp.tool.call.start",
    source: { component: "mcp", name: "files" },
    scope: { agent_id: "assistant", session_key: "s", channel: "cli", chat_id: "s" },
    correlation: {},
    severity: "info",
    attrs: payload,
  });
});

Deno.test("PicoClaw: in the version head, observers receive that a run connects to a server of MCP, or cannot", async () => {
  await using server = served((server) => {
    server.registerTool("read", { description: "Reads" }, () => ({ content: [] }));
  });
  for (const wire of ["head", "document"] as const) {
    const reported: Record<string, unknown>[] = [];
    const hooks = builtins(
      { ear: { event: (event) => void reported.push(event) } },
      { wire, channel: "cli", kinds: "dotted" },
    );
    const transport = () => Promise.reject(new Error("no route to host"));
    const use = [hooks, mcp({ servers: { files: { url: server.url }, gone: { transport } } })];
    await agent({ model: scripted("Done."), use }).run({ prompt: "Hi", onError: () => {} }).result;
    await settled();
    const events = reported.filter(({ kind }) => String(kind).startsWith("mcp."));
    assertEquals(
      events.map(({ kind, severity, payload }) => [kind, severity, payload]),
      wire === "document" ? [] : [
        ["mcp.server.connecting", "info", { server: "files" }],
        ["mcp.server.connecting", "info", { server: "gone" }],
        ["mcp.server.failed", "error", { server: "gone", error: "no route to host" }],
        ["mcp.server.connected", "info", { server: "files", tool_count: 1 }],
        ["mcp.tool.discovered", "info", { server: "files", tool: "read" }],
      ],
    );
  }
});

Deno.test("PicoClaw: the version of the document has no events of MCP", async () => {
  assertEquals(await servedRun("document"), []);
});

Deno.test("PicoClaw: a process that only observes is asked nothing", async () => {
  const reported: string[] = [];
  const { stdio } = programs({ ear: answering({ "hook.event": ({ Kind }) => void reported.push(`${Kind}`) }) });
  const processes = { ear: { enabled: true, command: ["ear"], observe: ["*"] } };
  await using hooks = rpc_hooks({ processes }, { stdio });
  await batch([call("a")], { use: [hooks] }).run().outcome;
  await settled();
  assertEquals(reported, [
    "turn_start",
    "llm_request",
    "llm_response",
    "tool_exec_start",
    "tool_exec_end",
    "llm_request",
    "llm_delta",
    "llm_response",
    "turn_end",
  ]);
});
