/**
 * The hooks of all systems around a run, compared.
 */
import { agent, compacted, type Middleware, ModelError, user } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { Message, OnPromptSubmitResult, OnTurnEndResult, yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { batch, call, settled, weather } from "../../support/batch.ts";
import { hooks, returning, returningOutput } from "../../support/hooked.ts";
import { builtins } from "../../support/rpc.ts";
import { ended, observer, under } from "../../support/systems.ts";
import { asTool } from "@jizai/jizai/subagents";
import { compaction } from "@jizai/jizai/middleware/compaction";

const one = [{ calls: [call("a")] }, "Done."] as const;
const busy: ScriptedAnswer = { error: new ModelError("busy", { recoverable: true }) };

Deno.test("Table: session hooks run around everything else", async () => {
  const log: string[] = [];
  const systems = {
    claude: claude_hooks({
      SessionStart: hooks(() => void log.push("start")),
      SessionEnd: hooks(() => void log.push("end")),
    }),
    copilot: copilot_hooks({
      onSessionStart: () => void log.push("start"),
      onSessionEnd: () => void log.push("end"),
    }),
    rpc: observer(log, "agent.turn.start", "agent.turn.end"),
  };
  const inner: Middleware = {
    name: "inner",
    async session(_, next) {
      log.push("session");
      const result = await next();
      log.push("out");
      return result;
    },
    async prompt(_, next) {
      await settled(); // so that observers have run
      log.push("prompt");
      return await next();
    },
  };
  const outcome = await under(systems, async (hooks) => {
    await ended(hooks, one, { use: [inner] });
    return log.splice(0);
  });
  const around = ["start", "session", "prompt", "out", "end"];
  assertEquals(outcome, {
    claude: around,
    copilot: around,
    rpc: ["session", "agent.turn.start", "prompt", "out", "agent.turn.end"],
  });
});

Deno.test("Table: prompt hooks change the prompt, add context, or refuse it", async () => {
  const changing = {
    yoi: yoi_hooks({
      on_prompt_submit(message) {
        message.content = "Hello";
        return OnPromptSubmitResult.Continue;
      },
    }),
    claude: claude_hooks({ UserPromptSubmit: hooks(returningOutput({ additionalContext: "Be brief." })) }),
    copilot: copilot_hooks({
      onUserPromptSubmitted: () => ({ modifiedPrompt: "Hello", additionalContext: "Be brief." }),
    }),
  };
  assertEquals(await under(changing, async (hooks) => (await ended(hooks, ["Done."])).lines), {
    yoi: ["user Hello", "assistant Done."],
    claude: ["user Hi", "prompt Be brief.", "assistant Done."],
    copilot: ["user Hello", "prompt Be brief.", "assistant Done."],
  });
  const refusing = {
    yoi: yoi_hooks({ on_prompt_submit: () => OnPromptSubmitResult.Cancel("No.") }),
    claude: claude_hooks({ UserPromptSubmit: hooks(returning({ decision: "block", reason: "No." })) }),
  };
  const refused = await under(refusing, async (hooks) => {
    const { result, lines, requests } = await ended(hooks, ["Done."]);
    return [result.status, result.reason, lines, requests];
  });
  assertEquals(refused, { yoi: ["cancelled", "No.", [], []], claude: ["cancelled", "No.", [], []] });
});

Deno.test("Table: stop hooks finish, pause, or continue with a message", async () => {
  let left = 0;
  const once = <T>(answer: T) => () => left-- > 0 ? answer : undefined;
  const going = {
    yoi: yoi_hooks({ on_turn_end: once(OnTurnEndResult.ContinueWithMessages([Message.user("Go on.")])) }),
    claude: claude_hooks({ Stop: hooks(once({ decision: "block", reason: "Go on." } as const)) }),
    copilot: copilot_hooks({ onAgentStop: once({ decision: "block", reason: "Go on." } as const) }),
  };
  const went = await under(going, async (hooks) => {
    left = 1;
    return (await ended(hooks, ["One.", "Two."])).lines;
  });
  const on = (from: string) => ["user Hi", "assistant One.", `${from} Go on.`, "assistant Two."];
  assertEquals(went, { yoi: on("yoi_hooks"), claude: on("stop"), copilot: on("copilot_hooks") });
  const result = { for_llm: "sent", response_handled: true };
  const stopping = {
    "yoi Finish": yoi_hooks({ on_turn_end: () => OnTurnEndResult.Finish }),
    "yoi Paused": yoi_hooks({ on_turn_end: () => OnTurnEndResult.Paused }),
    rpc: builtins({ a: { before_tool: () => ({ action: "respond", result }) } }),
  };
  const stopped = await under(stopping, async (hooks) => {
    const { result: { status }, requests } = await ended(hooks, one);
    return [status, requests.length];
  });
  assertEquals(stopped, { "yoi Finish": ["done", 2], "yoi Paused": ["paused", 2], rpc: ["done", 1] });
});

Deno.test("Table: abort hooks fire for a run that is cut short", async () => {
  const log: string[] = [];
  const systems = {
    yoi: yoi_hooks({ on_abort: (reason) => void log.push(reason) }),
    claude: claude_hooks({
      PreToolUse: hooks((_, __, { signal }) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            log.push("signal");
            resolve({});
          })
        )
      ),
      StopFailure: hooks(() => void log.push("StopFailure")),
    }),
    copilot: copilot_hooks({
      onErrorOccurred: ({ error }) => void log.push(error),
      onSessionEnd: ({ reason }) => void log.push(reason),
    }),
    rpc: observer(log, "agent.interrupt.received"),
  };
  const tools = [
    weather((_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject("late")))),
  ];
  const outcome = await under(systems, async (hooks) => {
    const running = batch([call("a")], { tools, use: [hooks] }).run();
    await settled();
    running.stop();
    const { result } = await running.outcome;
    await settled();
    return [result.status, ...log.splice(0)];
  });
  assertEquals(outcome, {
    yoi: ["aborted", "Cancelled"],
    claude: ["aborted", "signal"],
    copilot: ["aborted", "abort"],
    rpc: ["aborted", "agent.interrupt.received"],
  });
  const failed = await under(systems, async (hooks) => {
    const { result } = await ended(hooks, [busy]);
    return [result.status, ...log.splice(0)];
  });
  assertEquals(failed, {
    yoi: ["failed", "busy"],
    claude: ["failed", "StopFailure"],
    copilot: ["failed", "busy", "error"],
    rpc: ["failed"],
  });
  const aborting = builtins({
    a: { before_llm: () => ({ action: "hard_abort" }) },
    b: { event: ({ Kind, Payload }) => void (Kind === "turn_end" && log.push(Object(Payload).Status)) },
  });
  const { result } = await ended(aborting, one);
  assertEquals([result.status, log], ["cancelled", ["aborted"]]);
});

Deno.test("Table: error hooks observe failures, and Copilot retries, skips or aborts", async () => {
  const log: string[] = [];
  const handling = (errorHandling: "retry" | "skip" | "abort") =>
    copilot_hooks({
      onErrorOccurred({ errorContext, error }) {
        log.push(`${errorContext} ${error}`);
        return { errorHandling };
      },
    });
  const systems = {
    yoi: yoi_hooks({
      pre_llm_request() {
        throw new Error("broken");
      },
      on_abort: (reason) => void log.push(reason),
    }),
    claude: claude_hooks({
      PostToolUseFailure: hooks(() => void log.push("PostToolUseFailure")),
      StopFailure: hooks(() => void log.push("StopFailure")),
    }),
    "copilot retry": handling("retry"),
    "copilot skip": handling("skip"),
    "copilot abort": handling("abort"),
    rpc: observer(log, "agent.error"),
  };
  const failing = () => {
    let left = 1;
    return [weather(({ city }) => {
      if (left-- > 0) throw new Error("no tool");
      return city;
    }, { idempotent: true })];
  };
  const outcome = await under(systems, async (hooks) => {
    const { result, lines } = await ended(hooks, [{ calls: [call("a")] }, busy, "Done."], { tools: failing() });
    return [result.status, ...lines.slice(2), ...log.splice(0)];
  });
  const tool = "tool_execution no tool";
  const model = "model_call busy";
  assertEquals(outcome, {
    yoi: ["failed", "broken"],
    claude: ["failed", "error weather failed.", "PostToolUseFailure", "StopFailure"],
    "copilot retry": ["done", "ok a", "assistant Done.", tool, model],
    "copilot skip": ["done", "error weather failed.", tool, model],
    "copilot abort": ["failed", "error weather failed.", tool],
    rpc: ["failed", "error weather failed.", "agent.error", "agent.error"],
  });
});

Deno.test("Table: compaction hooks fire around a compaction", async () => {
  const log: string[] = [];
  const systems = {
    claude: claude_hooks({
      PreCompact: hooks(() => void log.push("PreCompact")),
      PostCompact: hooks(() => void log.push("PostCompact")),
    }),
    rpc: observer(log, "agent.context.compress"),
  };
  const short: Middleware = {
    name: "short",
    compact() {
      log.push("compacted");
      return Promise.resolve(compacted([user("In short.", "summary")]));
    },
  };
  const long = { calls: [call("a", { city: "x".repeat(400) })] };
  const outcome = await under(systems, async (hooks) => {
    await ended(hooks, [long, "Done."], { use: [compaction({ summarize: false }), short], limits: { context: 150 } });
    return log.splice(0);
  });
  assertEquals(outcome, {
    claude: ["PreCompact", "compacted", "PostCompact"],
    rpc: ["compacted", "agent.context.compress"],
  });
});

Deno.test("Table: subagent hooks fire for a child run", async () => {
  const log: string[] = [];
  const systems = {
    claude: claude_hooks({
      SubagentStart: hooks(({ agent_type }) => void log.push(`start ${agent_type}`)),
      PreToolUse: hooks(({ agent_type = "parent" }) => void log.push(`call of ${agent_type}`)),
      SubagentStop: hooks(({ agent_type }) => void log.push(`stop ${agent_type}`)),
    }),
    copilot: copilot_hooks({
      onPreToolUse({ sessionId }, { sessionId: outermost }) {
        log.push(`call of ${sessionId === "s" ? "parent" : "child"} within ${outermost}`);
      },
    }),
    rpc: observer(log, "agent.subturn.spawn", "agent.subturn.end", "agent.tool.exec_start"),
  };
  const outcome = await under(systems, async (hooks) => {
    const child = agent({ name: "child", model: scripted(...one), tools: [weather()] });
    const asking = { calls: [{ id: "c", name: "child", input: { prompt: "Weather?" } }] };
    await ended(hooks, [asking, "Done."], { tools: [asTool(child)] });
    return log.splice(0);
  });
  assertEquals(outcome, {
    claude: ["call of parent", "start child", "call of child", "stop child"],
    copilot: ["call of parent within s", "call of child within s"],
    rpc: ["agent.tool.exec_start", "agent.subturn.spawn", "agent.tool.exec_start", "agent.subturn.end"],
  });
});

Deno.test("Table: CwdChanged, FileChanged and InstructionsLoaded come from workspace() and instructions()", async () => {
  const log: string[] = [];
  const systems = {
    claude: claude_hooks({
      InstructionsLoaded: hooks(() => void log.push("InstructionsLoaded")),
      CwdChanged: hooks(() => void log.push("CwdChanged")),
      FileChanged: hooks(() => void log.push("FileChanged")),
    }),
  };
  const outcome = await under(systems, async (hooks) => {
    const files = memoryFiles({ "AGENTS.md": "Be brief.", "docs/a.md": "A" });
    const steps = [
      { calls: [["change_directory", { path: "docs" }] as const] },
      { calls: [["write_file", { path: "b.md", content: "B" }] as const] },
      "Done.",
    ];
    const { events } = await ended(hooks, steps, { use: [workspace(files), instructions(files)] });
    const reported = events.flatMap(({ type }) => /^(cwd|file|instructions)/.test(type) ? [type] : []);
    return [reported, log.splice(0)];
  });
  assertEquals(outcome, {
    claude: [
      ["instructions.loaded", "cwd.changed", "file.changed"],
      ["InstructionsLoaded", "CwdChanged", "FileChanged"],
    ],
  });
});
