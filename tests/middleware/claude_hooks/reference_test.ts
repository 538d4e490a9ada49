/**
 * Rules of the reference of Claude Code's hooks, and published hooks with the tools that they need.
 */
import { agent, type Middleware, tool } from "@jizai/jizai";
import {
  claude_hooks,
  type HookCallback,
  type HookCallbackMatcher,
  type HookConfig,
} from "@jizai/jizai/middleware/claude_hooks";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  command,
  hooked,
  hooks,
  notices,
  ran,
  resumed,
  returning,
  returningOutput,
  shell,
  warnings,
} from "../../support/hooked.ts";
import { lines } from "../../support/transcript_lines.ts";

// Rules of the current reference of Claude Code's hooks.

const never: HookCallback = () => new Promise(() => {});
const claude = { dialect: "claude" } as const;

/** A callback that counts its runs. */
function counter(answer: HookCallback = () => {}) {
  const log: string[] = [];
  const hook: HookCallback = (...args) => {
    log.push(args[0].hook_event_name);
    return answer(...args);
  };
  return { log, hook };
}

for (
  const [event, outcome] of [
    ["PreToolUse", "denied A hook did not answer in time."],
    ["PermissionRequest", "denied A hook did not answer in time."],
    ["UserPromptSubmit", "A hook did not answer in time."],
    ["PostToolUse", "ok ran ls"],
  ] as const
) {
  Deno.test(`Claude: a callback that exceeds its timeout at ${event} ${event === "PostToolUse" ? "is ignored" : "blocks"}`, async () => {
    using time = new FakeTime();
    const config = { [event]: [{ hooks: [never], timeout: 1 }] } as HookConfig;
    const running = hooked(config, { ...claude, tools: [shell({ ask: event === "PermissionRequest" })] }).run();
    await time.tickAsync(1_100);
    const { result, lines, events } = await running.outcome;
    assertEquals([lines[1] ?? result.reason, warnings(events)], [outcome, [`A hook of ${event} failed.`]]);
  });
}

Deno.test("Claude: an invalid field voids the whole output, except a deny", async () => {
  const outcome = async (output: object) => {
    const { lines, result, events } = await ran({ PreToolUse: hooks(returning(output as never)) }, { // as untyped code returns it
      ...claude,
      tools: [shell({ ask: true })],
    });
    return [lines[1] ?? result.status, notices(events), warnings(events).length];
  };
  const specific = (fields: object) => ({ hookSpecificOutput: { hookEventName: "PreToolUse", ...fields } });
  const allow = specific({ permissionDecision: "allow", additionalContext: 5 });
  assertEquals(await outcome({ systemMessage: "Hi", ...allow }), ["paused", [], 1]);
  const deny = specific({ permissionDecision: "deny", permissionDecisionReason: "No.", updatedInput: 5 });
  assertEquals(await outcome({ systemMessage: "Hi", ...deny }), ["denied No.", [], 1]);
  assertEquals(await outcome({ decision: "block", reason: "No.", continue: "yes" }), ["denied No.", [], 1]);
});

Deno.test("Claude: defer is ignored if the response has several calls", async () => {
  const defers = returningOutput({ permissionDecision: "defer" });
  const calls = [command("a"), command("b")];
  const { result, lines } = await ran({ PreToolUse: hooks(defers) }, { ...claude, calls });
  assertEquals([result.status, lines.slice(1, 3)], ["done", ["ok ran a", "ok ran b"]]);
  assertEquals((await ran({ PreToolUse: hooks(defers) }, claude)).result.status, "paused");
});

Deno.test("Claude, Qoder: unknown tools and invalid inputs run no hook", async () => {
  for (const dialect of ["qoder", "claude"] as const) {
    const { log, hook } = counter();
    const config = { PreToolUse: hooks(hook), PostToolUse: hooks(hook), PostToolUseFailure: hooks(hook) };
    const calls = [command("a", "ls", "Unknown"), { id: "b", name: "Bash", input: { command: 1 } }];
    const { lines } = await ran(config, { dialect, calls });
    assertEquals([log, lines.slice(1, 3).map((line) => line.split(" ")[0])], [[], ["error", "error"]]);
  }
});

Deno.test("Claude: PermissionDenied fires for a classifier, never for a rule", async () => {
  const { log, hook } = counter();
  const after = [permissions({ deny: ["Bash"] })];
  await ran({ PermissionDenied: hooks(hook) }, { ...claude, after });
  assertEquals(log, []);
  const isClassifierDenial = (reason: string) => reason.includes("not permitted");
  await ran({ PermissionDenied: hooks(hook) }, { ...claude, after, isClassifierDenial });
  assertEquals(log, ["PermissionDenied"]);
});

Deno.test("Claude: only files that a matcher or watchPaths name are watched", async () => {
  const seen = async (matcher?: string, watchPaths?: readonly string[]) => {
    const files: string[] = [];
    const hook: HookCallback = (input) => void ("file_path" in input && files.push(input.file_path));
    const config: HookConfig = {
      FileChanged: [{ matcher, hooks: [hook] }],
      ...(watchPaths && { SessionStart: hooks(returningOutput({ watchPaths })) }),
    };
    const writes = ["a.md", ".env", "b.md"].map((path) => ["write_file", { path, content: "x" }] as const);
    const use = [claude_hooks(config, claude), workspace(memoryFiles())];
    await agent({ model: scripted({ calls: writes }, "Done."), use }).run("Hi").result;
    return files.toSorted();
  };
  assertEquals(await seen(), []);
  assertEquals(await seen("a.md|.env"), ["/.env", "/a.md"]);
  assertEquals(await seen(undefined, ["/b.md"]), ["/b.md"]);
  assertEquals(await seen("a.md|b.md", ["/b.md"]), ["/a.md", "/b.md"]);
});

Deno.test("Claude: systemMessage of Notification, PreCompact and SessionEnd is discarded", async () => {
  const message = hooks(returning({ systemMessage: "Psst." }));
  const config = { Notification: message, SessionEnd: message, PreCompact: message };
  const asking = { tools: [shell({ ask: true })] };
  const reported = async (dialect: "qoder" | "claude") => {
    const [first, second] = await resumed(config, [{ callId: "a", type: "approve" }], { ...asking, dialect });
    return [...notices(first.events), ...notices(second.events)];
  };
  assertEquals(await reported("claude"), []);
  assertEquals(await reported("qoder"), ["Psst.", "Psst."]);
});

Deno.test("Claude, Qoder: PreToolUse fires once for a call about which a person is asked", async () => {
  for (const dialect of ["qoder", "claude"] as const) {
    const { log, hook } = counter(returningOutput({
      permissionDecision: "ask",
      updatedInput: { command: "pwd" },
      additionalContext: "Mind it.",
    }));
    const [first, second] = await resumed({ PreToolUse: hooks(hook) }, [{ callId: "a", type: "approve" }], { dialect });
    assertEquals([first.result.status, log], ["paused", ["PreToolUse"]]);
    assertEquals(second.lines.slice(1), ["ok ran pwd", "context Mind it.", "assistant Done."]);
  }
});

Deno.test("Claude, Qoder: the outputs of nested middleware are kept apart over a pause", async () => {
  let asked = 0;
  const forA = (answer: HookCallback): HookConfig => ({
    PreToolUse: hooks((...args) => {
      if (args[1] !== "a") return;
      asked++;
      return answer(...args);
    }),
  });
  const agent = hooked(forA(returningOutput({ permissionDecision: "deny", permissionDecisionReason: "No." })), {
    before: [claude_hooks(forA(returningOutput({ permissionDecision: "allow" })))],
    calls: [command("a"), command("b")],
    tools: [shell({ ask: true })],
  });
  const { result } = await agent.run().outcome;
  assertEquals([result.status, asked], ["paused", 2]);
  const { lines } = await agent.resume(result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals([lines.slice(1, 3), asked], [["denied No.", "ok ran b"], 2]);
});

Deno.test("Claude, Qoder: a pause fires no SessionEnd, and SessionEnd fires once at the end", async () => {
  const { log, hook } = counter();
  const agent = hooked({ SessionEnd: hooks(hook), SessionStart: hooks(hook) }, { tools: [shell({ ask: true })] });
  const { result } = await agent.run().outcome;
  assertEquals([result.status, log], ["paused", ["SessionStart"]]);
  await agent.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(log, ["SessionStart", "SessionEnd"]);
});

Deno.test("Claude, Qoder: a run that fails fires StopFailure once, then SessionEnd", async () => {
  const reported: unknown[] = [];
  const hook: HookCallback = (input) => {
    reported.push(input.hook_event_name, ...input.hook_event_name === "StopFailure" ? [input.error_details] : []);
  };
  const config = { StopFailure: hooks(hook), SessionEnd: hooks(hook) };
  const breaks: Middleware = { name: "breaks", turn: () => Promise.reject(new Error("disk full")) };
  await agent({ model: scripted("Hi."), use: [claude_hooks(config), breaks] }).run("Hi").result;
  assertEquals(reported.splice(0), ["StopFailure", "disk full", "SessionEnd"]);
  await agent({ model: scripted({ error: new Error("offline") }), use: [claude_hooks(config)] }).run("Hi").result;
  assertEquals(reported, ["StopFailure", "offline", "SessionEnd"]);
});

Deno.test("Claude, Qoder: PostToolUseFailure receives the message of the error as thrown, and the model does not", async () => {
  const errors: unknown[] = [];
  const hook: HookCallback = (input) => void ("error" in input && errors.push(input.error));
  const tools = [shell({ execute: () => Promise.reject(new Error("ENOENT: no such file")) })];
  const { lines } = await ran({ PostToolUseFailure: hooks(hook) }, { tools });
  assertEquals([errors, lines[1]], [["ENOENT: no such file"], "error Bash failed."]);
});

Deno.test("Claude, Qoder: asyncTimeout aborts the signal of a callback that continues in the background", async () => {
  using time = new FakeTime();
  const reasons: unknown[] = [];
  const later = (asyncTimeout: number): HookCallback => (_, __, { signal }) => {
    signal.addEventListener("abort", () => reasons.push([asyncTimeout, signal.reason.name]));
    return { async: true, asyncTimeout };
  };
  let finish = () => {};
  const tools = [shell({ execute: () => new Promise((resolve) => finish = () => resolve("ran")) })];
  const running = hooked({ PreToolUse: hooks(later(200), later(5_000)) }, { tools }).run();
  await time.tickAsync(199);
  assertEquals(reasons, []);
  await time.tickAsync(1);
  assertEquals(reasons, [[200, "TimeoutError"]]);
  finish();
  await time.tickAsync(0);
  assertEquals((await running.outcome).result.status, "done");
  await time.tickAsync(10_000);
  assertEquals(reasons, [[200, "TimeoutError"]]);
});

Deno.test("Claude, Qoder: context of PostToolBatch is kept if a call of the batch pauses", async () => {
  const { log, hook } = counter(returningOutput({ additionalContext: "Batch done." }));
  const tools = [shell(), shell({ name: "Ask", ask: true })];
  const calls = [command("a", "x", "Ask"), command("b")];
  const [first, second] = await resumed({ PostToolBatch: hooks(hook) }, [{ callId: "a", type: "approve" }], {
    tools,
    calls,
  });
  assertEquals([first.result.status, log], ["paused", ["PostToolBatch"]]);
  assertEquals(second.lines.slice(1), ["ok ran x", "ok ran b", "context Batch done.", "assistant Done."]);
});

Deno.test("Claude, Qoder: PostToolBatch fires if an outer middleware answers a call of the batch", async () => {
  const reported: unknown[] = [];
  const hook: HookCallback = (input) => {
    if (input.hook_event_name === "PostToolBatch") {
      reported.push(input.tool_calls.map(({ tool_response }) => tool_response));
    }
  };
  const cache: Middleware = {
    name: "cache",
    tool: (ctx, next) =>
      ctx.call.id === "b"
        ? Promise.resolve({ type: "result", status: "ok", parts: [{ type: "text", text: "cached" }] })
        : next(),
  };
  await ran({ PostToolBatch: hooks(hook) }, { before: [cache], calls: [command("a"), command("b")] });
  assertEquals(reported, [["ran a", "cached"]]);
});

Deno.test("Claude: rules about paths are relative to the working directory and match absolute paths", async () => {
  const rule = {
    type: "addRules",
    behavior: "deny",
    destination: "session",
    rules: [{ toolName: "Edit", ruleContent: "src/*" }],
  };
  const decision = { behavior: "allow", updatedPermissions: [rule] } as const;
  const edit = tool({
    name: "Edit",
    description: "Edits a file",
    ask: true,
    input: z.object({ file_path: z.string() }),
    execute: ({ file_path }) => file_path,
  });
  const calls = ["/repo/a.ts", "/repo/src/a.ts", "src/b.ts", "/other/src/a.ts"].map((file_path, index) => ({
    id: String(index),
    name: "Edit",
    input: { file_path },
  }));
  const { lines } = await ran({ PermissionRequest: hooks(returningOutput({ decision })) }, {
    ...claude,
    cwd: "/repo",
    tools: [edit],
    calls,
  });
  assertEquals(lines.slice(1, 5).map((line) => line.split(" ")[0]), ["ok", "denied", "denied", "ok"]);
});

Deno.test("Claude: matchers have the type HookCallbackMatcher", async () => {
  const matcher: HookCallbackMatcher = { matcher: "Bash", hooks: [returning({ decision: "block", reason: "No." })] };
  assertEquals((await ran({ PreToolUse: [matcher] }, claude)).lines[1], "denied No.");
});

// Published hooks, and the tools that they need.

Deno.test("Claude: a tool of the workspace can have the name and the input that hooks expect", async () => {
  const files = memoryFiles({ "src/a.ts": "let x = 1;\n", ".env": "KEY=1\n" });
  const { tools = [], ...desk } = workspace(files);
  const own = tools.find(({ name }) => name === "edit_file");
  const input = z.object({ file_path: z.string(), old_string: z.string(), new_string: z.string() });
  const edit = tool({
    name: "Edit",
    description: "Edits a file",
    input,
    execute: ({ file_path, old_string: old, new_string }, ctx) =>
      own?.execute({ path: file_path.replace("/repo/", ""), old, new: new_string } as never, ctx), // as it takes it
  });
  const asked: string[] = [];
  const changes: string[] = [];
  const protect: HookCallback = (input) => {
    if (input.hook_event_name !== "PreToolUse") return {};
    const { file_path: path } = input.tool_input as { file_path: string };
    asked.push(path);
    return path.endsWith(".env") ? { decision: "block", reason: "No." } : {};
  };
  const changed: HookCallback = (input) => {
    if (input.hook_event_name === "FileChanged") changes.push(`${input.event} ${input.file_path}`);
  };
  const config = {
    PreToolUse: [{ matcher: "Edit|Write", hooks: [protect] }],
    FileChanged: [{ matcher: "a.ts", hooks: [changed] }],
  };
  const call = (file_path: string) => ["Edit", { file_path, old_string: "1", new_string: "2" }] as const;
  const { messages } = await agent({
    model: scripted({ calls: [call("/repo/src/a.ts"), call("/repo/.env")] }, "Done."),
    tools: [edit],
    use: [claude_hooks(config, { dialect: "claude", cwd: "/repo" }), desk],
  }).run("Edit").result;
  assertEquals(lines(messages).slice(2, 4), ["ok Edited.", "denied No."]);
  assertEquals([asked, changes], [["/repo/src/a.ts", "/repo/.env"], ["change /repo/src/a.ts"]]);
});

Deno.test("Claude: observing, asynchronous and blocking hooks work together", async () => {
  const seen = new Map<string | undefined, unknown>();
  const began: HookCallback = (input, id) => {
    if (input.hook_event_name === "PreToolUse") seen.set(id, input.tool_use_id);
    return Promise.resolve({ continue: true });
  };
  const ended: HookCallback = (_, id) => {
    seen.set(id, "ended");
    return Promise.resolve({ async: true, asyncTimeout: 30_000 });
  };
  const guard: HookCallback = (input) => {
    const { command = "" } = "tool_input" in input ? input.tool_input as { command?: string } : {};
    return command.includes("sleep") ? { decision: "block", stopReason: "Not here" } : {};
  };
  const config = {
    PreToolUse: [{ hooks: [began] }, { matcher: "Bash", hooks: [guard] }],
    PostToolUse: [{ hooks: [ended] }],
  };
  const calls = [command("a", "ls"), command("b", "sleep 9")];
  const { lines, events } = await ran(config, { calls, dialect: "claude" });
  assertEquals(lines.slice(1, -1), ["ok ran ls", "denied Blocked by a hook."]);
  assertEquals([[...seen], notices(events), warnings(events)], [[["a", "ended"], ["b", "b"]], [], []]);
});
