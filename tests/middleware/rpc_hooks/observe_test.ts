import { assertEquals } from "@std/assert";
import { agent, compacted, ModelError, type RunHandle, user } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { FakeTime } from "@std/testing/time";
import { batch, call, settled, weather } from "../../support/batch.ts";
import { answering, builtins, programs, warnings } from "../../support/rpc.ts";

/** An event, as hooks of the document's version are told of it. */
interface Told {
  readonly Kind: number;
  readonly Time: string;
  readonly Meta: { readonly Iteration: number; readonly Source: string; readonly ParentTurnID: string };
  readonly Payload: Readonly<Record<string, unknown>>;
}

/** A hook that hears of everything, and what it has heard. */
function ears() {
  const heard: Told[] = [];
  const hook = { event: (event: object) => void heard.push(event as Told) }; // of the document's version
  return { heard, hook, kinds: () => heard.map(({ Kind }) => Kind) };
}

Deno.test("trap 53: a kind is a number where the document's version is spoken, a text in later versions", async () => {
  const told: unknown[] = [];
  const run = async (wire: "brief" | "head") => {
    const { stdio } = programs({
      ear({ id, method, params }, say) {
        if (id !== undefined) return say({ id, result: {} });
        told.push([method, params.Kind ?? params.kind]);
        return undefined;
      },
    });
    const processes = {
      ear: { enabled: true, command: ["ear"], observe: ["turn_start", "agent.tool.exec_start", "error"] },
    };
    await using hooks = rpc_hooks({ processes }, { stdio, wire });
    await batch([call("a")], { use: [hooks] }).run().came;
    await settled();
  };
  await run("brief");
  assertEquals(told.splice(0), [["hook.event", 0], ["hook.event", 8]]);
  await run("head");
  assertEquals(told, [["hook.runtime_event", "agent.turn.start"], ["hook.runtime_event", "agent.tool.exec_start"]]);
});

Deno.test("an observer hears of a run from its start to its end, each thing where it belongs", async () => {
  const { heard, hook } = ears();
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
  const payloads = heard.map((
    { Kind, Payload: { Duration: _, ...rest }, Meta: { Iteration, Source } },
  ) => [Kind, Iteration, Source, rest]);
  const tool = { Tool: "weather" };
  const request = { Model: "scripted", ToolsCount: 1, MaxTokens: 0, Temperature: 0 };
  assertEquals(payloads, [
    [0, 0, "turn.start", { Channel: "jizai", ChatID: run.session, UserMessage: "Hé", MediaCount: 0 }],
    [2, 1, "turn.llm.request", { ...request, MessagesCount: 2 }],
    [3, 1, "turn.llm.delta", { ContentDeltaLen: 0, ReasoningDeltaLen: 3 }],
    [3, 1, "turn.llm.delta", { ContentDeltaLen: 4, ReasoningDeltaLen: 0 }],
    [3, 1, "turn.llm.delta", { ContentDeltaLen: 3, ReasoningDeltaLen: 0 }],
    [4, 1, "turn.llm.response", { ContentLen: 7, ToolCalls: 2, HasReasoning: true }],
    [8, 1, "turn.tool.start", { ...tool, Arguments: { city: "a" } }],
    [8, 1, "turn.tool.start", { ...tool, Arguments: { city: "b" } }],
    [18, 1, "turn.error", { Stage: "execute", Message: "no b" }],
    [9, 1, "turn.tool.end", { ...tool, ForLLMLen: 3, ForUserLen: 0, IsError: false, Async: false }],
    [9, 1, "turn.tool.end", { ...tool, ForLLMLen: 15, ForUserLen: 0, IsError: true, Async: false }],
    [2, 2, "turn.llm.request", { ...request, MessagesCount: 5 }],
    [3, 2, "turn.llm.delta", { ContentDeltaLen: 5, ReasoningDeltaLen: 0 }],
    [4, 2, "turn.llm.response", { ContentLen: 5, ToolCalls: 0, HasReasoning: false }],
    [1, 2, "turn.end", {
      ...{ Status: "completed", Workspace: "", Iterations: 2, FinalContentLen: 5 },
      ...{ UserMessage: "Hé", FinalContent: "Done." },
    }],
  ]);
});

Deno.test("an observer hears of calls that are denied, of retries, and of runs that are aborted", async () => {
  const { heard, hook } = ears();
  const gate = { before_tool: () => ({ action: "deny_tool", reason: "no" }) };
  const denied = batch([call("a")], { use: [builtins({ ear: hook, gate })] });
  await denied.run().came;
  const reason = "Tool execution denied by hook: no";
  const skipped = () => heard.splice(0).flatMap(({ Kind, Payload }) => [8, 9, 10].includes(Kind) ? [Payload] : []);
  await settled();
  assertEquals(skipped(), [{ Tool: "weather", Reason: reason }]);
  const fails = { error: new ModelError("busy", { recoverable: true }) };
  await agent({ model: scripted(fails, "Done."), use: [retry({ attempts: 2, delay: 0 }), builtins({ ear: hook })] })
    .run("Hi").result;
  await settled();
  assertEquals(heard.splice(0).map(({ Kind }) => Kind), [0, 2, 5, 2, 3, 4, 1]);
  const aborting = builtins({ ear: hook, gate: { before_tool: () => ({ action: "abort_turn" }) } });
  await batch([call("a")], { use: [aborting] }).run().came;
  await settled();
  assertEquals(heard.slice(-2).map(({ Kind, Payload: { Stage, Message, Status } }) => [Kind, Stage, Message, Status]), [
    [18, "hook.before_tool", "hook aborted turn during before_tool: hook requested turn abort", undefined],
    [1, undefined, undefined, "error"],
  ]);
  heard.length = 0;
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
  await running.came;
  await settled();
  assertEquals(heard.slice(-2).map(({ Kind, Payload: { Kind: what, Status } }) => [Kind, what ?? Status]), [
    [13, "hard_abort"],
    [1, "aborted"],
  ]);
});

Deno.test("an observer hears of agents beneath, of compaction, and of what a person says meanwhile", async () => {
  const { heard, hook, kinds } = ears();
  const child = agent({ name: "child", model: scripted("Sunny.") });
  const parent = agent({
    model: scripted({ calls: [{ id: "a", name: "child", input: { prompt: "Weather?" } }] }, "Done."),
    tools: [child.asTool()],
    use: [builtins({ ear: hook })],
  });
  const { run } = await parent.run("Hi").result;
  await settled();
  assertEquals(kinds(), [0, 2, 4, 8, 14, 0, 2, 3, 4, 1, 15, 16, 9, 2, 3, 4, 1]);
  assertEquals(heard.flatMap(({ Kind, Payload }) => [14, 15, 16].includes(Kind) ? [Payload] : []).slice(0, 2), [
    { AgentID: "child", Label: "child", ParentTurnID: run },
    { AgentID: "child", Status: "completed" },
  ]);
  assertEquals(heard[5]?.Meta.ParentTurnID, run);
  heard.length = 0;
  const messages = [user("x".repeat(400)), user("y".repeat(400)), user("Hi")];
  await agent({
    model: scripted("Done."),
    limits: { context: 50 },
    use: [builtins({ ear: hook }), { name: "short", compact: () => Promise.resolve(compacted([user("Hi")])) }],
  }).run({ messages }).result;
  await settled();
  assertEquals(heard.flatMap(({ Kind, Payload }) => Kind === 6 ? [Payload] : []), [
    { Reason: "proactive_budget", DroppedMessages: 2, RemainingMessages: 1 },
  ]);
  heard.length = 0;
  const steered = agent({
    model: scripted({ calls: [call("a")] }, "Done."),
    tools: [weather((): unknown => handle.send("And Oslo?"))],
    use: [builtins({ ear: hook })],
  });
  const handle: RunHandle<unknown> = steered.run("Hi");
  await handle.result;
  await settled();
  assertEquals(heard.flatMap(({ Kind, Payload }) => Kind === 11 ? [Payload] : []), [{ Count: 1, TotalContentLen: 9 }]);
});

Deno.test("a run that pauses has not ended, and goes on without starting anew", async () => {
  const { hook, kinds } = ears();
  const started = batch([call("a")], {
    use: [builtins({ ear: hook }), {
      name: "ask",
      approval: () => Promise.resolve({ type: "ask", questions: ["Sure?"] }),
    }],
  });
  const { result } = await started.run().came;
  await started.resume(result.session, [{ callId: "a", type: "approve" }]).came;
  await settled();
  assertEquals(kinds(), [0, 2, 4, 8, 9, 2, 3, 4, 1]);
});

Deno.test("trap 52: observers never hold a run up: 64 events wait, others are lost, and each takes 500 ms at most", async () => {
  using time = new FakeTime();
  const heard: number[] = [];
  const slow = {
    event: ({ Kind }: Readonly<Record<string, unknown>>) => {
      heard.push(Number(Kind));
      return new Promise(() => {});
    },
  };
  const fast: number[] = [];
  const model = scripted({ text: Array.from({ length: 100 }, () => "x") });
  const start = time.now;
  const running = agent({
    model,
    use: [builtins({ a: slow, b: { event: ({ Kind }) => void fast.push(Number(Kind)) } })],
  }).run("Hi");
  const { status } = await running.result;
  assertEquals([status, time.now - start, heard, fast], ["done", 0, [0], []]);
  for (let told = 0; told < 65; told++) {
    await time.tickAsync(500);
    await time.tickAsync(0);
  }
  const told = [0, 2, ...Array.from({ length: 63 }, () => 3)]; // one is told, 64 wait
  assertEquals([heard, fast], [told, told]);
});

Deno.test("of an observer that fails the operator is told, and the others are told of what happened all the same", async () => {
  const heard: number[] = [];
  const hooks = builtins({
    a: {
      event({ Kind }) {
        if (Kind !== 0) return;
        throw new Error("deaf");
      },
    },
    b: { event: ({ Kind }) => void heard.push(Number(Kind)) },
  });
  const { events, errors } = await batch([call("a")], { use: [hooks] }).run().came;
  await settled();
  assertEquals([heard, warnings(events)], [[0, 2, 4, 8, 9, 2, 3, 4, 1], []]);
  assertEquals(errors.map(String), ['Error: The hook "a" could not be told of turn_start']);
});

Deno.test("later versions say of an event how grave it is, and where it comes from", async () => {
  const told: Record<string, unknown>[] = [];
  const hooks = builtins({
    ear: { event: (event) => void told.push(event) },
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
  assertEquals(told.map(({ kind, severity }) => [kind, severity]), [
    ["agent.turn.start", "info"],
    ["agent.llm.request", "info"],
    ["agent.llm.response", "info"],
    ["agent.tool.exec_skipped", "warn"],
    ["agent.llm.request", "info"],
    ["agent.llm.delta", "info"],
    ["agent.llm.response", "info"],
    ["agent.turn.end", "info"],
  ]);
  const { id: _, time: __, payload: ___, ...rest } = told[3] ?? {};
  assertEquals(rest, {
    kind: "agent.tool.exec_skipped",
    source: { component: "agent", name: "assistant" },
    scope: { agent_id: "assistant", session_key: "s", turn_id, channel: "cli", chat_id: "s" },
    correlation: { trace_id: "turn.tool.skipped", parent_turn_id: "" },
    severity: "warn",
    attrs: { agent_source: "runTurn", iteration: 1 },
  });
});

Deno.test("a hook elsewhere that observes alone is asked nothing", async () => {
  const told: string[] = [];
  const { stdio } = programs({ ear: answering({ "hook.event": ({ Kind }) => void told.push(`${Kind}`) }) });
  const processes = { ear: { enabled: true, command: ["ear"], observe: ["*"] } };
  await using hooks = rpc_hooks({ processes }, { stdio });
  await batch([call("a")], { use: [hooks] }).run().came;
  await settled();
  assertEquals(told, ["0", "2", "4", "8", "9", "2", "3", "4", "1"]);
});
