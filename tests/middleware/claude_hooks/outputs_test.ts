/**
 * The outputs of hooks that are about calls, and their effects.
 */
import { agent, allow, continueWith, type Middleware, text } from "@jizai/jizai";
import { claude_hooks, type HookCallback, type HookConfig } from "@jizai/jizai/middleware/claude_hooks";
import { human } from "@jizai/jizai/middleware/human";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
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

const events = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PostToolBatch",
  "PermissionRequest",
  "PermissionDenied",
  "UserPromptSubmit",
  "UserPromptExpansion",
  "SessionStart",
  "SessionEnd",
  "Stop",
  "StopFailure",
  "SubagentStart",
  "SubagentStop",
  "PreCompact",
  "PostCompact",
  "CwdChanged",
  "FileChanged",
  "InstructionsLoaded",
  "Notification",
  "MessageDisplay",
  "PostModelSwitch",
  "WorktreeCreate",
  "WorktreeRemove",
] as const;

for (const dialect of ["qoder", "qodercli", "claude"] as const) {
  Deno.test(`claude_hooks() keeps the laws of middleware, in ${dialect}`, async () => {
    const config = Object.fromEntries(events.map((event) => [event, hooks(returning({}))])) as HookConfig;
    await testMiddleware(() => claude_hooks(config, { dialect }));
  });
}

Deno.test("claude_hooks() without hooks keeps the laws of middleware", async () => {
  await testMiddleware(() => claude_hooks({}));
});

Deno.test("an invalid configuration is refused with the name of its event", () => {
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ PreToolUse: {} }, "Cannot use the hooks of PreToolUse: expected a list of matchers"],
    [{ Stop: [{ hooks: ["rm"] }] }, "Cannot use the hooks of Stop: expected `hooks`, a list of functions"],
    [null, "Cannot use hooks: expected an object with a list of matchers for each event"],
    [{ Stop: [null] }, "Cannot use the hooks of Stop: expected `hooks`, a list of functions"],
    [
      { Stop: [{ onFailure: "deny", hooks: [] }] },
      'Cannot use the hooks of Stop: expected "continue" or "block" as `onFailure`, got "deny"',
    ],
    [{ Stop: [{}] }, "Cannot use the hooks of Stop: expected `hooks`, a list of functions"],
    [
      { PreToolUse: [{ matcher: /Bash/, hooks: [] }] },
      "Cannot use the hooks of PreToolUse: expected a string as `matcher`",
    ],
    [
      { Stop: [{ timeout: 0, hooks: [] }] },
      "Cannot use the hooks of Stop: expected a `timeout` of more than 0 seconds, got 0",
    ],
  ];
  for (const [config, message] of wrong) {
    assertThrows(() => claude_hooks(config as HookConfig), TypeError, message); // as untyped code writes it
  }
  assertThrows(() => claude_hooks({}, { dialect: "other" as never }), TypeError, 'Cannot use hooks of "other"');
});

// ── calls ──

Deno.test("neither an inner guard, an outer cache nor a changed input bypasses a deny", async () => {
  const log: string[] = [];
  const asked: unknown[] = [];
  const guard: HookCallback = (input) => {
    if (input.hook_event_name !== "PreToolUse") return {};
    asked.push(input.tool_input);
    return JSON.stringify(input.tool_input).includes("rm") ? { decision: "block" } : {};
  };
  const tools = [shell({ log })];
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("cached")) };
  const above = await ran({ PreToolUse: hooks(guard) }, { tools, before: [cache], calls: [command("a", "rm")] });
  assertEquals(above.lines[1], "denied Blocked by a hook.");
  const rewrite: Middleware = { name: "rewrite", tool: (_, next) => next({ input: { command: "rm" } }) };
  const beneath = await ran({ PreToolUse: hooks(guard) }, { tools, after: [rewrite] });
  assertEquals(beneath.lines[1], "denied Blocked by a hook.");
  const edit: Middleware = { name: "edit", approval: () => Promise.resolve(allow({ input: { command: "rm" } })) };
  for (const place of ["before", "after"] as const) {
    const edited = await ran({ PreToolUse: hooks(guard) }, { tools, [place]: [edit] });
    assertEquals(edited.lines[1], "denied Blocked by a hook.");
  }
  assertEquals(log, []);
  assertEquals(asked, [
    { command: "rm" },
    ...Array.from({ length: 3 }, () => [{ command: "ls" }, { command: "rm" }]).flat(),
  ]);
});

Deno.test("a question of a hook is answered by a person, or pauses the run", async () => {
  const asks = returningOutput({ permissionDecision: "ask", permissionDecisionReason: "Really?" });
  const config = { PreToolUse: hooks(asks) };
  const asked: unknown[] = [];
  const person = human(({ questions, input }) => {
    asked.push([questions, input]);
    return true;
  });
  assertEquals((await ran(config, { before: [person], tools: [shell({ ask: true })] })).lines[1], "ok ran ls");
  assertEquals(asked, [[["Really?", "Run Bash?"], { command: "ls" }]]);
  const [first, second] = await resumed(config, [{ callId: "a", type: "approve" }]);
  assertEquals([first.result.status, second.lines[1]], ["paused", "ok ran ls"]);
});

Deno.test("Claude: defer pauses the run and asks the hook again on resume; Qoder: defer is not a decision", async () => {
  const log: string[] = [];
  let known = false;
  const defers: HookCallback = () => {
    log.push("asked");
    if (known) return {};
    const permissionDecision = "defer";
    return {
      hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, updatedInput: { command: "never" } },
    };
  };
  assertEquals((await ran({ PreToolUse: hooks(defers) })).lines[1], "ok ran never");
  const agent = hooked({ PreToolUse: hooks(defers) }, { dialect: "claude", calls: [command("a")] });
  const { result } = await agent.run().outcome;
  assertEquals([result.status, result.questions.map(({ questions }) => questions)], ["paused", [["Run Bash?"]]]);
  known = true;
  const { lines } = await agent.resume(result.session).outcome;
  assertEquals(lines, ["call Bash", "ok ran a", "assistant Done."]);
  assertEquals(log.length, 3);
});

Deno.test("Claude: deny beats defer, and defer beats ask", async () => {
  const send = (permissionDecision: "deny" | "defer" | "ask") =>
    returningOutput({ permissionDecision, permissionDecisionReason: permissionDecision });
  const denied = await ran({ PreToolUse: hooks(send("defer"), send("deny"), send("ask")) }, { dialect: "claude" });
  assertEquals(denied.lines[1], "denied deny");
  const deferred = await ran({ PreToolUse: hooks(send("ask"), send("defer")) }, { dialect: "claude" });
  assertEquals(deferred.result.questions.map(({ callId, questions }) => [callId, questions]), [[undefined, ["defer"]]]);
});

Deno.test("an allow answers a question of the tool, not of an outer guard", async () => {
  const config = { PreToolUse: hooks(returningOutput({ permissionDecision: "allow" })) };
  assertEquals((await ran(config, { tools: [shell({ ask: true })] })).lines[1], "ok ran ls");
  assertEquals((await ran(config, { before: [permissions({ ask: ["Bash"] })] })).result.status, "paused");
});

Deno.test("a PermissionRequest with updatedInput runs PreToolUse again, and not itself", async () => {
  const reported: unknown[] = [];
  const longer: HookCallback = (input) => {
    if (input.hook_event_name !== "PermissionRequest") return;
    const { command } = input.tool_input as { command: string };
    reported.push(command);
    const decision = { behavior: "allow", updatedInput: { command: `${command} -l` } } as const;
    return { hookSpecificOutput: { hookEventName: "PermissionRequest", decision } };
  };
  const before: HookCallback = (input) => void ("tool_input" in input && reported.push(input.tool_input));
  const config = { PermissionRequest: hooks(longer), PreToolUse: hooks(before) };
  const { lines } = await ran(config, { tools: [shell({ ask: true })] });
  assertEquals(lines[1], "ok ran ls -l");
  assertEquals(reported, [{ command: "ls" }, "ls", { command: "ls -l" }]);
});

Deno.test("rules in updatedPermissions hold for the session and match commands", async () => {
  const asked: string[] = [];
  const rule = (behavior: "allow" | "deny" | "ask", ...contents: (string | undefined)[]) => ({
    type: "addRules",
    behavior,
    destination: "projectSettings",
    rules: contents.map((ruleContent) => ({ toolName: "Bash", ...(ruleContent !== undefined && { ruleContent }) })),
  });
  const updatedPermissions = [rule("allow", "git *", "npm run:*"), rule("deny", "git push*"), { type: "unknown" }];
  const hook: HookCallback = (input) => {
    if (input.hook_event_name !== "PermissionRequest") return;
    asked.push((input.tool_input as { command: string }).command);
    const decision = { behavior: "allow", updatedPermissions } as const;
    return { hookSpecificOutput: { hookEventName: "PermissionRequest", decision } };
  };
  const commands = [
    "first",
    "git status",
    "git push origin",
    "git status && git push",
    "npm run test",
    "npm run",
    "npm runner",
    "git log && rm -rf /",
    "git log $(rm -rf /)",
    "git log > /etc/passwd",
  ];
  const calls = commands.map((text, index) => command(String(index), text));
  const { lines, events } = await ran({ PermissionRequest: hooks(hook) }, { calls, tools: [shell({ ask: true })] });
  assertEquals(asked, ["first", "npm runner", "git log && rm -rf /", "git log $(rm -rf /)", "git log > /etc/passwd"]);
  assertEquals(lines.slice(1, -1).map((line) => line.split(" ")[0]), [
    "ok",
    "ok",
    "denied",
    "denied",
    ...Array.from({ length: 6 }, () => "ok"),
  ]);
  assertEquals(
    new Set(warnings(events)),
    new Set([
      "A hook of PermissionRequest returned an invalid output: unknown change in updatedPermissions.",
    ]),
  );
});

Deno.test("setMode changes the default decision and permission_mode", async () => {
  const modes: unknown[] = [];
  const outcome = async (mode: string) => {
    const decision = {
      behavior: "allow",
      updatedPermissions: [{ type: "setMode", mode, destination: "session" }],
    } as const;
    const first: HookCallback = (_, id) =>
      id === "a" ? { hookSpecificOutput: { hookEventName: "PermissionRequest", decision } } : {};
    const look: HookCallback = (input, id) => void (id === "b" && modes.push(input.permission_mode));
    const { result, lines } = await ran({ PermissionRequest: hooks(first), PreToolUse: hooks(look) }, {
      calls: [command("a"), command("b")],
      tools: [shell({ ask: true })],
    });
    return lines[2] ?? result.status;
  };
  assertEquals([await outcome("bypassPermissions"), await outcome("dontAsk"), await outcome("plan")], [
    "ok ran b",
    "denied This session asks no questions.",
    "paused",
  ]);
  assertEquals(modes, ["bypassPermissions", "dontAsk", "plan"]);
});

Deno.test("Qoder: an empty updated output is ignored; qodercli and Claude: it counts", async () => {
  const outputs = hooks(returningOutput({ updatedToolOutput: "first" }), returningOutput({ updatedToolOutput: "" }));
  const outcome = async (dialect: "qoder" | "qodercli" | "claude") =>
    (await ran({ PostToolUse: outputs }, { dialect })).lines[1];
  assertEquals([await outcome("qoder"), await outcome("qodercli"), await outcome("claude")], ["ok first", "ok", "ok"]);
});

Deno.test("an updated output may be a text, content blocks or JSON; updatedMCPToolOutput is for MCP tools", async () => {
  const outcome = async (output: Parameters<typeof returningOutput>[0], name = "Bash") => {
    const { lines } = await ran({ PostToolUse: hooks(returningOutput(output)) }, {
      calls: [command("a", "ls", name)],
      tools: [shell({ name })],
    });
    return lines[1];
  };
  const blocks = [{ type: "text", text: "one" }, { type: "text", text: " two" }];
  assertEquals(await outcome({ updatedToolOutput: blocks }), "ok one two");
  assertEquals(await outcome({ updatedToolOutput: { content: blocks } }), "ok one two");
  assertEquals(await outcome({ updatedToolOutput: { stdout: "out" } }), 'ok {"stdout":"out"}');
  assertEquals(await outcome({ updatedMCPToolOutput: "mcp" }), "ok ran ls");
  assertEquals(await outcome({ updatedMCPToolOutput: "mcp" }, "mcp__box__run"), "ok mcp");
  assertEquals(await outcome({ updatedMCPToolOutput: "mcp", updatedToolOutput: "any" }, "mcp__box__run"), "ok any");
});

Deno.test("Qoder: a block at PostToolUseFailure replaces an error result; otherwise it adds context", async () => {
  const tools = [
    shell({
      execute: (how) => how === "throws" ? Promise.reject(new Error("x")) : { ...text("It failed."), status: "error" },
    }),
  ];
  const outcome = async (how: string, dialect: "qoder" | "claude") => {
    const blocking = hooks(returning({ decision: "block", reason: "Try ls." }));
    return (await ran({ PostToolUseFailure: blocking }, { tools, dialect, calls: [command("a", how)] })).lines.slice(
      1,
      -1,
    );
  };
  assertEquals(await outcome("says", "qoder"), ["error Try ls."]);
  assertEquals(await outcome("throws", "qoder"), ["error Bash failed.", "context Try ls."]);
  assertEquals(await outcome("says", "claude"), ["error It failed.", "context Try ls."]);
});

Deno.test("Qoder: suppressOutput hides the result and the message from the person; Claude: it has no effect", async () => {
  const quiet = hooks(returning({ suppressOutput: true, systemMessage: "Psst." }));
  const text = [{ type: "text", text: "ran ls" }];
  for (const [dialect, seen, reported] of [["qoder", [], []], ["claude", text, ["Psst."]]] as const) {
    const { lines, events } = await ran({ PostToolUse: quiet }, { dialect });
    const shown = events.flatMap((event) => event.type === "tool.finished" ? [event.result.parts] : []);
    assertEquals([lines[1], shown, notices(events)], ["ok ran ls", [seen], reported]);
  }
});

Deno.test("Qoder: retry at PermissionDenied tells the model to try again", async () => {
  const { lines } = await ran({ PermissionDenied: hooks(returningOutput({ retry: true })) }, {
    after: [permissions({ deny: ["Bash"] })],
  });
  assertEquals(lines.slice(1), [
    "denied Bash is not permitted here.",
    "context A hook says that you may try the denied call again.",
    "assistant Done.",
  ]);
});

Deno.test("Claude, Qoder: context of PostToolBatch is kept in the transcript, and a block ends the run", async () => {
  const once = returningOutput({ additionalContext: "All done?" });
  const model = scripted({ calls: [["Bash", { command: "a" }]] }, "One.", "Two.");
  const more = ["More"];
  const retrying: Middleware = {
    name: "again",
    stop(_, next) {
      const [text] = more.splice(0);
      return text === undefined ? next() : Promise.resolve(continueWith(text));
    },
  };
  await agent({ model, tools: [shell()], use: [claude_hooks({ PostToolBatch: hooks(once) }), retrying] }).run("Hi")
    .result;
  assertEquals(model.requests.map(({ messages }) => lines(messages).slice(3)), [
    [],
    ["context All done?"],
    ["context All done?", "assistant One.", "stop More"],
  ]);
  const blocks = returning({ decision: "block", reason: "Enough." });
  const { result, lines: reported } = await ran({ PostToolBatch: hooks(blocks) });
  assertEquals([result.status, result.reason, reported], ["done", "Enough.", ["call Bash", "ok ran ls"]]);
});

Deno.test("the run's reason is that of the middleware that ends it", async () => {
  const stops = claude_hooks({ PostToolUse: hooks(returning({ continue: false, stopReason: "Enough." })) });
  const other = claude_hooks({ PostToolUse: hooks(returning({})) });
  for (const use of [{ before: [other], after: [stops] }, { before: [stops], after: [other] }]) {
    const { result } = await ran({}, use);
    assertEquals([result.status, result.reason], ["done", "Enough."]);
  }
});

Deno.test("null in a configuration counts as absent", async () => {
  const deny: HookCallback = () => ({ decision: "block", reason: "No." });
  const config = { PreToolUse: [{ matcher: null, timeout: null, hooks: [deny] }] };
  assertEquals((await ran(config as never)).lines[1], "denied No.");
});

Deno.test("a warning names the invalid fields of an output and the expected values", async () => {
  const specific = {
    hookEventName: "PreToolUse",
    permissionDecision: "maybe",
    updatedInput: "ls",
    additionalContext: 5,
  };
  const { events } = await ran({ PreToolUse: hooks(returning({ hookSpecificOutput: specific } as never)) });
  assertEquals(warnings(events), [
    'A hook of PreToolUse returned an invalid output: permissionDecision (Invalid option: expected one of "allow"|"deny"|"ask"|"defer"), ' +
    "updatedInput (Invalid input: expected object, received string), additionalContext (Invalid input: expected string, received number).",
  ]);
});
