/**
 * The inputs of hooks, event by event, with every field.
 */
import { agent, compacted, denied, type Middleware, ModelError, text, tool, user } from "@jizai/jizai";
import { claude_hooks, type HookConfig, type HookInput } from "@jizai/jizai/middleware/claude_hooks";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { command, hooks, ownFields, ran, shell } from "../../support/hooked.ts";
import { asTool } from "@jizai/jizai/subagents";
import { compacting } from "../../support/compacting.ts";

/** Hooks of these events, which record the fields that only their event has. */
function listening(...events: readonly HookInput["hook_event_name"][]) {
  const reported: Record<string, unknown>[] = [];
  const receive = (input: HookInput) => void reported.push(ownFields(input));
  return { reported, config: Object.fromEntries(events.map((event) => [event, hooks(receive)])) as HookConfig };
}

const call = { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "a" };
const stopping = { stop_hook_active: false, background_tasks: [], session_crons: [] };

Deno.test("every input has the session, the directory, the prompt, the model and the mode", async () => {
  const reported: HookInput[] = [];
  const files = memoryFiles({ "docs/a.md": "A" });
  const model = scripted({ calls: [["change_directory", { path: "docs" }]] }, {
    calls: [["read_file", { path: "a.md" }]],
  }, "Done.");
  const receive = claude_hooks({ PreToolUse: hooks((input) => void reported.push(input)) }, { cwd: "/home/me" });
  const use = [workspace(files), receive];
  const { run, session } = await agent({ model, use }).run("Hi").result;
  const base = {
    session_id: session,
    transcript_path: "",
    prompt_id: run,
    model: "scripted",
    permission_mode: "default",
    hook_event_name: "PreToolUse",
  };
  assertEquals(reported as unknown[], [
    { ...base, cwd: "/home/me", tool_name: "change_directory", tool_input: { path: "docs" }, tool_use_id: "call_1" },
    { ...base, cwd: "/home/me/docs", tool_name: "read_file", tool_input: { path: "docs/a.md" }, tool_use_id: "call_2" },
  ]);
});

Deno.test("SessionStart, UserPromptSubmit, Stop and SessionEnd fire for a new and for a known session", async () => {
  const { reported, config } = listening("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd");
  const assistant = agent({ model: scripted("One.", "Two."), use: [claude_hooks(config)] });
  const { session } = await assistant.run({ session: "s", prompt: "Hi" }).result;
  const image = { type: "media", mediaType: "image/png", url: "https://example.com/a.png" } as const;
  await assistant.run({ session, messages: [{ ...user("Again"), parts: [...user("Again").parts, image] }] }).result;
  assertEquals(reported, [
    { hook_event_name: "SessionStart", source: "startup" },
    { hook_event_name: "UserPromptSubmit", prompt: "Hi", source: "sdk" },
    { hook_event_name: "Stop", ...stopping, last_assistant_message: "One." },
    { hook_event_name: "SessionEnd", reason: "other" },
    { hook_event_name: "SessionStart", source: "resume" },
    { hook_event_name: "UserPromptSubmit", prompt: "Again", source: "sdk", image_urls: ["https://example.com/a.png"] },
    { hook_event_name: "Stop", ...stopping, last_assistant_message: "Two." },
    { hook_event_name: "SessionEnd", reason: "other" },
  ]);
});

Deno.test("PostToolUse and PostToolUseFailure receive the call as it ran, its result and its error as thrown", async () => {
  const { reported, config } = listening("PostToolUse", "PostToolUseFailure", "PostToolBatch");
  const calls = [
    command("a", "ls"),
    command("b", "fail"),
    command("c", "late"),
    command("d", "json"),
    command("e", "media"),
  ];
  const execute = (text: string) => {
    if (text === "fail") throw new Error("internal");
    if (text === "late") throw new DOMException("late", "TimeoutError");
    if (text === "json") return { stdout: "out", code: 0 };
    if (text === "media") return [{ type: "media", mediaType: "image/png", data: "AA==" }];
    return `ran ${text}`;
  };
  const tools = [shell({
    execute(text) {
      const result = execute(text);
      return Array.isArray(result) ? { type: "result", status: "ok", parts: result } : result;
    },
  })];
  const upper: Middleware = {
    name: "upper",
    tool: (ctx, next) => next(ctx.call.id === "a" ? { input: { command: "LS" } } : {}),
  };
  await ran(config, { calls, tools, after: [upper], dialect: "claude" });
  const made = [["a", "LS"], ["b", "fail"], ["c", "late"], ["d", "json"], ["e", "media"]] as const;
  const of = (index: number) => ({
    tool_name: "Bash",
    tool_input: { command: made[index]?.[1] },
    tool_use_id: made[index]?.[0],
  });
  const timed = reported.map(({ duration_ms, ...rest }): unknown =>
    duration_ms === undefined ? rest : { ...rest, timed: true }
  );
  assertEquals(timed, [
    { hook_event_name: "PostToolUse", ...of(0), tool_response: "ran LS", timed: true },
    { hook_event_name: "PostToolUseFailure", ...of(1), error: "internal", is_interrupt: false, timed: true },
    {
      hook_event_name: "PostToolUseFailure",
      ...of(2),
      error: "late",
      is_interrupt: false,
      timed: true,
    },
    { hook_event_name: "PostToolUse", ...of(3), tool_response: { stdout: "out", code: 0 }, timed: true },
    {
      hook_event_name: "PostToolUse",
      ...of(4),
      tool_response: [{ type: "image", data: "AA==", mimeType: "image/png" }],
      timed: true,
    },
    {
      hook_event_name: "PostToolBatch",
      tool_calls: [
        { ...of(0), tool_response: "ran LS" },
        { ...of(1), tool_response: "Bash failed." },
        { ...of(2), tool_response: "Bash did not finish in time." },
        { ...of(3), tool_response: '{"stdout":"out","code":0}' },
        { ...of(4), tool_response: "" },
      ],
    },
  ]);
});

Deno.test("Qoder: a result that is JSON is received as text", async () => {
  const { reported, config } = listening("PostToolUse");
  await ran(config, { tools: [shell({ execute: () => ({ stdout: "out" }) })] });
  assertEquals(reported.map(({ tool_response }) => tool_response), ['{"stdout":"out"}']);
});

Deno.test("Qoder: PermissionRequest and Notification fire when a person is asked, PermissionDenied when a guard denies", async () => {
  const { reported, config } = listening("PermissionRequest", "Notification", "PermissionDenied");
  const calls = [command("a", "ls", "mcp__box__run"), command("b")];
  const tools = [shell({ name: "mcp__box__run", ask: true }), shell()];
  await ran(config, { calls, tools, after: [permissions({ deny: ["Bash"] })], groups: false });
  const mcp_server = { name: "box", source: "dynamic" };
  const reason = "Bash is not permitted here.";
  assertEquals(reported, [
    {
      hook_event_name: "PermissionRequest",
      tool_name: "mcp__box__run",
      tool_input: { command: "ls" },
      mcp_server,
      permission_suggestions: [
        { type: "addRules", rules: [{ toolName: "mcp__box__run" }], behavior: "allow", destination: "session" },
      ],
    },
    {
      hook_event_name: "Notification",
      notification_type: "permission_prompt",
      title: "Permission needed",
      message: "Your permission is needed to use mcp__box__run",
    },
    {
      hook_event_name: "PermissionDenied",
      tool_name: "Bash",
      tool_input: { command: "b" },
      tool_use_id: "b",
      reason,
      denial_reason: reason,
    },
  ]);
});

Deno.test("PermissionDenied does not fire for a denial of a person or a hook", async () => {
  const { reported, config } = listening("PermissionDenied");
  const no = { hookEventName: "PermissionRequest", decision: { behavior: "deny" } } as const;
  await ran({ ...config, PreToolUse: hooks(() => ({ decision: "block" })) });
  await ran({ ...config, PermissionRequest: hooks(() => ({ hookSpecificOutput: no })) }, {
    tools: [shell({ ask: true })],
  });
  assertEquals(reported, []);
  await ran(config, { after: [{ name: "own", tool: () => Promise.resolve(denied("Not now.")) }] });
  assertEquals(reported.map(({ reason }) => reason), ["Not now."]);
});

Deno.test("SubagentStart and SubagentStop fire for a subagent", async () => {
  const { reported, config } = listening("SubagentStart", "SubagentStop", "PreToolUse");
  const child = agent({
    name: "child",
    model: scripted({ calls: [["Bash", { command: "ls" }]] }, "Helped."),
    tools: [shell()],
  });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  await agent({ model, tools: [asTool(child)], use: [claude_hooks(config)] }).run("Hi").result;
  const id = reported[1]?.agent_id;
  const own = { agent_id: id, agent_type: "child" };
  assertEquals(reported, [
    { hook_event_name: "PreToolUse", tool_name: "child", tool_input: { prompt: "Help" }, tool_use_id: "call_1" },
    { hook_event_name: "SubagentStart", ...own },
    { hook_event_name: "PreToolUse", ...own, ...call, tool_use_id: "call_1" },
    {
      hook_event_name: "SubagentStop",
      ...own,
      ...stopping,
      agent_transcript_path: "",
      last_assistant_message: "Helped.",
    },
  ]);
  assertEquals(typeof id, "string");
});

Deno.test("CwdChanged, FileChanged and InstructionsLoaded fire for events of the workspace and the instructions", async () => {
  const { reported, config } = listening("CwdChanged", "FileChanged", "InstructionsLoaded");
  const files = memoryFiles({ "AGENTS.md": "Be brief.", "docs/AGENTS.md": "Be long.", "docs/a.md": "A" });
  const model = scripted(
    { calls: [["change_directory", { path: "docs" }], ["write_file", { path: "b.md", content: "B" }]] },
    { calls: [["write_file", { path: "a.md", content: "AA" }]] },
    "Done.",
  );
  const use = [claude_hooks(config, { cwd: "/repo" }), workspace(files), instructions(files)];
  await agent({ model, use }).run("Hi").result;
  assertEquals(reported.toSorted((a, b) => String(a.hook_event_name).localeCompare(String(b.hook_event_name))), [
    { hook_event_name: "CwdChanged", old_cwd: "/repo", new_cwd: "/repo/docs" },
    { hook_event_name: "FileChanged", file_path: "/repo/b.md", event: "add" },
    { hook_event_name: "FileChanged", file_path: "/repo/docs/a.md", event: "change" },
    {
      hook_event_name: "InstructionsLoaded",
      file_path: "/repo/AGENTS.md",
      memory_type: "Project",
      load_reason: "session_start",
    },
    {
      hook_event_name: "InstructionsLoaded",
      file_path: "/repo/docs/AGENTS.md",
      memory_type: "Project",
      load_reason: "nested_traversal",
    },
  ]);
});

Deno.test("PreCompact, PostCompact and SessionStart fire around a compaction", async () => {
  const { reported, config } = listening("PreCompact", "PostCompact", "SessionStart");
  const summarizes: Middleware = {
    name: "summarizes",
    compact: ({ transcript }) => Promise.resolve(compacted([user("In short.", "summary"), ...transcript.slice(-1)])),
  };
  const assistant = compacting({
    model: scripted("One.", "Two."),
    use: [claude_hooks(config), summarizes],
    limits: { context: 30 },
  });
  const { session } = await assistant.run({ session: "s", prompt: "Hi" }).result;
  await assistant.run({ session, prompt: "x".repeat(100) }).result;
  assertEquals(reported.slice(1), [
    { hook_event_name: "SessionStart", source: "resume" },
    { hook_event_name: "PreCompact", trigger: "auto", custom_instructions: null },
    { hook_event_name: "PostCompact", trigger: "auto", compact_summary: "In short." },
    { hook_event_name: "SessionStart", source: "compact" },
  ]);
});

Deno.test("StopFailure fires instead of Stop when the model fails, with the kind of failure", async () => {
  const kinds: unknown[] = [];
  for (const status of [401, 402, 403, 404, 429, 503, 529, undefined]) {
    const { reported, config } = listening("StopFailure", "Stop");
    const error = new ModelError("Refused", status === undefined ? {} : { status });
    await agent({ model: scripted({ error }), use: [claude_hooks(config)] }).run("Hi").result;
    assertEquals(reported.map(({ error_details }) => error_details), ["Refused"]);
    kinds.push(reported[0]?.error);
  }
  assertEquals(kinds, [
    "authentication_failed",
    "billing_error",
    "authentication_failed",
    "invalid_request",
    "rate_limit",
    "server_error",
    "server_error",
    "unknown",
  ]);
});

Deno.test("MessageDisplay receives whole lines, and the rest at the end", async () => {
  const { reported, config } = listening("MessageDisplay");
  const model = scripted({ text: ["One\nTw", "o\nThree\nFo", "ur"] });
  const { run } = await agent({ model, use: [claude_hooks(config)] }).run("Hi").result;
  const [{ message_id } = {}] = reported;
  const own = { hook_event_name: "MessageDisplay", turn_id: run, message_id };
  assertEquals(reported, [
    { ...own, index: 0, final: false, delta: "One\n" },
    { ...own, index: 1, final: false, delta: "Two\nThree\n" },
    { ...own, index: 2, final: true, delta: "Four" },
  ]);
});

Deno.test("UserPromptExpansion fires for a prompt that is a command, before UserPromptSubmit", async () => {
  const { reported, config } = listening("UserPromptExpansion", "UserPromptSubmit");
  const run = async (prompt: string) => {
    await agent({ model: scripted("Done."), use: [claude_hooks(config)] }).run(prompt).result;
    return reported.splice(0);
  };
  const submitted = (prompt: string) => ({ hook_event_name: "UserPromptSubmit", prompt, source: "sdk" });
  assertEquals(await run("/review pr 12\nsoon"), [
    {
      hook_event_name: "UserPromptExpansion",
      expansion_type: "slash_command",
      command_name: "review",
      command_args: "pr 12\nsoon",
      prompt: "/review pr 12\nsoon",
    },
    submitted("/review pr 12\nsoon"),
  ]);
  assertEquals(await run("/etc/hosts is a file"), [submitted("/etc/hosts is a file")]);
});

Deno.test("PostModelSwitch fires when another model answers than the requested one", async () => {
  const { reported, config } = listening("PostModelSwitch");
  const broken = { ...scripted({ error: new ModelError("Down", { recoverable: true }) }), id: "first" };
  const second = { ...scripted({ text: "Hello!", usage: { input: 10, output: 2, cached: 4 } }), id: "second" };
  await agent({ model: broken, use: [claude_hooks(config), fallback([second])] }).run("Hi").result;
  assertEquals(reported, [{
    hook_event_name: "PostModelSwitch",
    from_model: "first",
    to_model: "second",
    requested_model: null,
    source: "auto",
    context_tokens: 12,
    prompt_cache_warm: true,
    cache_ttl: "5m",
    estimated_cache_write_usd: 0,
    pricing: "default",
  }]);
});

Deno.test("WorktreeCreate and WorktreeRemove fire for EnterWorktree and ExitWorktree", async () => {
  const { reported, config } = listening("WorktreeCreate", "WorktreeRemove");
  const made = [{
    hooks: [() => ({ hookSpecificOutput: { hookEventName: "WorktreeCreate", worktreePath: "/trees/one" } })],
  }];
  const inputs: unknown[] = [];
  const enters = tool({
    name: "EnterWorktree",
    description: "Enters a worktree",
    input: z.object({ name: z.string(), path: z.string().optional() }),
    execute: (input) => void inputs.push(input),
  });
  const leaves = tool({
    name: "ExitWorktree",
    description: "Leaves a worktree",
    input: z.object({ action: z.string() }),
    execute: () => text("left"),
  });
  const model = scripted(
    { calls: [["EnterWorktree", { name: "one" }]] },
    { calls: [["ExitWorktree", { action: "remove" }]] },
    "Done.",
  );
  const use = [claude_hooks({ ...config, WorktreeCreate: [...config.WorktreeCreate ?? [], ...made] })];
  await agent({ model, tools: [enters, leaves], use }).run("Hi").result;
  assertEquals(reported, [
    { hook_event_name: "WorktreeCreate", name: "one" },
    { hook_event_name: "WorktreeRemove", worktree_path: "/trees/one" },
  ]);
  assertEquals(inputs, [{ name: "one", path: "/trees/one" }]);
});

Deno.test("a warning reports hooks of events that do not occur here", async () => {
  const log: string[] = [];
  const never = [{ hooks: [() => void log.push("asked")] }];
  const config = { Setup: never, Elicitation: [], PreToolUSE: never, Anything: never };
  const { events } = await ran(config);
  assertEquals([log, events.filter(({ type }) => type === "warning")], [
    [],
    [
      "Hooks of Setup never run: the event does not occur here.",
      "Hooks of PreToolUSE never run: unknown event; did you mean PreToolUse?",
      "Hooks of Anything never run: unknown event.",
    ].map((message) => ({
      type: "warning",
      code: "hook.skipped",
      message,
      middleware: "claude_hooks",
      point: "session",
    })),
  ]);
});
