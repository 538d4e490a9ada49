import { agent, memory, type Middleware } from "@jizai/jizai";
import { claude_hooks, type HookCallback, type HookConfig } from "@jizai/jizai/middleware/claude_hooks";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { settled } from "../../support/batch.ts";
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
import { asTool } from "@jizai/jizai/subagents";

const denies = returningOutput({ permissionDecision: "deny", permissionDecisionReason: "Not here." });
const asks = returningOutput({ permissionDecision: "ask", permissionDecisionReason: "Sure?" });
const allows = returningOutput({ permissionDecision: "allow" });

/** A hook that answers when it is released. */
function held(answer: HookCallback) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const hook: HookCallback = async (...reported) => {
    await promise;
    return answer(...reported);
  };
  return { hook, resolve };
}

/** A configuration whose hooks log their events. */
function received(...events: readonly (keyof HookConfig)[]) {
  const log: string[] = [];
  const hook: HookCallback = ({ hook_event_name }) => void log.push(hook_event_name);
  return { log, config: Object.fromEntries(events.map((event) => [event, hooks(hook)])) as HookConfig };
}

// ── order and parallelism ──

Deno.test("Claude, Qoder: a deny does not cancel the other hooks, and their context is kept", async () => {
  const late = held(returningOutput({ additionalContext: "Late word." }));
  const running = hooked({ PreToolUse: hooks(denies, late.hook, returningOutput({ additionalContext: "Word." })) })
    .run();
  await settled();
  late.resolve();
  const { lines } = await running.outcome;
  assertEquals(lines, ["call Bash", "denied Not here.", "context Late word.Word.", "assistant Done."]);
});

Deno.test("Claude, Qoder: each hook receives its own copy of the input", async () => {
  const seen: unknown[] = [];
  const log: string[] = [];
  const changes: HookCallback = (input) => {
    if (input.hook_event_name !== "PreToolUse") return;
    (input.tool_input as { command: string }).command = "rm";
    seen.push(input.tool_input);
  };
  await ran({ PreToolUse: hooks(changes, changes, (input) => void seen.push(input)) }, { tools: [shell({ log })] });
  const [one, two, three] = seen;
  assertEquals([one, two], [{ command: "rm" }, { command: "rm" }]);
  assertEquals((three as { tool_input: unknown }).tool_input, { command: "ls" });
  assertEquals(log, ["ls"]);
});

for (
  const [dialect, ran] of [["qoder", "listed last"], ["qodercli", "listed last"], ["claude", "given last"]] as const
) {
  Deno.test(`${dialect}: of two updated inputs, the one ${ran} replaces the whole input`, async () => {
    const log: string[] = [];
    const first = held(returningOutput({ updatedInput: { command: "given last", cwd: "/" } }));
    const second = returningOutput({ updatedInput: { command: "listed last" } });
    const running = hooked({ PreToolUse: hooks(first.hook, second) }, { dialect, tools: [shell({ log })] }).run();
    await settled();
    first.resolve();
    await running.outcome;
    assertEquals(log, [ran]);
  });
}

Deno.test("Qoder: sequential hooks receive and merge the updated inputs of the hooks before them", async () => {
  const seen: unknown[] = [];
  const adds = (fields: Record<string, unknown>): HookCallback => (input) => {
    if (input.hook_event_name !== "PreToolUse") return;
    seen.push(input.tool_input);
    return returningOutput({ updatedInput: fields })(input, undefined, { signal: new AbortController().signal });
  };
  const inputs: unknown[] = [];
  const look: Middleware = {
    name: "look",
    tool(ctx, next) {
      inputs.push(ctx.input);
      return next();
    },
  };
  const PreToolUse = [{ hooks: [adds({ command: "pwd" })] }, { sequential: true, hooks: [adds({ cwd: "/" })] }];
  await ran({ PreToolUse }, { after: [look] });
  assertEquals(seen, [{ command: "ls" }, { command: "pwd" }]);
  assertEquals(inputs, [{ command: "pwd", cwd: "/" }]);
});

Deno.test("Claude, Qoder: updated outputs are not chained; each hook receives the original and the last one counts", async () => {
  const masks: HookCallback = (input) => {
    if (input.hook_event_name !== "PostToolUse") return;
    const updatedToolOutput = String(input.tool_response).replace("secret", "***");
    return { hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput } };
  };
  const cuts: HookCallback = (input) => {
    if (input.hook_event_name !== "PostToolUse") return;
    const updatedToolOutput = String(input.tool_response).slice(0, 10);
    return { hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput } };
  };
  const tools = [shell({ execute: () => "a secret of mine" })];
  const { lines } = await ran({ PostToolUse: hooks(masks, cuts) }, { tools });
  assertEquals(lines, ["call Bash", "ok a secret o", "assistant Done."]);
});

Deno.test("Claude, Qoder: deny beats ask and ask beats allow, in any order", async () => {
  const outcomes: string[] = [];
  for (
    const order of [[denies, asks, allows], [allows, asks, denies], [asks, denies, allows], [allows, asks], [
      asks,
      allows,
    ]]
  ) {
    for (const dialect of ["qoder", "claude"] as const) {
      const last = held(order[0] ?? denies);
      const running = hooked({ PreToolUse: hooks(last.hook, ...order.slice(1)) }, { dialect }).run();
      await settled();
      last.resolve();
      const { result, lines } = await running.outcome;
      outcomes.push(result.status === "paused" ? `paused ${result.questions[0]?.questions}` : lines[1] ?? "");
    }
  }
  const denied = "denied Not here.";
  const paused = "paused Sure?";
  assertEquals(outcomes, [denied, denied, denied, denied, denied, denied, paused, paused, paused, paused]);
});

Deno.test("Claude, Qoder: of two answers to a PermissionRequest the deny counts, in qodercli the last", async () => {
  const no = returningOutput({ decision: { behavior: "deny", message: "No." } });
  const yes = returningOutput({ decision: { behavior: "allow" } });
  const tools = [shell({ ask: true })];
  const outcome = async (dialect: "qoder" | "qodercli" | "claude") => {
    const { lines } = await ran({ PermissionRequest: hooks(no, yes) }, { dialect, tools });
    return lines[1];
  };
  assertEquals(await Promise.all((["qoder", "claude", "qodercli"] as const).map(outcome)), [
    "denied No.",
    "denied No.",
    "ok ran ls",
  ]);
});

// ── decisions ──

Deno.test("Claude, Qoder: a denied call fires neither PostToolUse nor PostToolUseFailure", async () => {
  const { log, config } = received("PostToolUse", "PostToolUseFailure");
  await ran({ ...config, PreToolUse: hooks(denies) });
  await ran(config, { after: [permissions({ deny: ["Bash"] })] });
  assertEquals(log, []);
});

Deno.test("Claude, Qoder: continue false is ignored by observing events and overrides decisions elsewhere", async () => {
  const stops = returning({ continue: false, stopReason: "Stop." });
  const watching = {
    SessionStart: hooks(stops),
    SessionEnd: hooks(stops),
    PreCompact: hooks(stops),
    PostCompact: hooks(stops),
  };
  const { result } = await ran({ ...watching, PermissionDenied: hooks(stops), Notification: hooks(stops) });
  assertEquals([result.status, result.reason], ["done", undefined]);

  const both = returning({ continue: false, stopReason: "Enough.", decision: "approve" });
  const log: string[] = [];
  const ended = await ran({ PreToolUse: hooks(both, denies) }, { tools: [shell({ log })] });
  assertEquals([ended.result.status, ended.result.reason, log], ["done", "Enough.", []]);
  assertEquals(ended.lines, ["call Bash", "aborted Not run: a hook stopped the run."]);

  const stopped = await ran({ Stop: hooks(returning({ continue: false, decision: "block", reason: "Go on." })) });
  assertEquals([stopped.result.status, stopped.result.reason], ["done", "Stopped by a hook."]);
});

for (const event of ["PostToolUse", "PostToolUseFailure"] as const) {
  Deno.test(`Claude, Qoder: continue false at ${event} keeps every result of the group`, async () => {
    const log: string[] = [];
    const execute = (text: string) => {
      if (event === "PostToolUseFailure" && text === "a") throw new Error("broken");
      return text;
    };
    const stops: HookCallback = (input) => ({ continue: !("tool_use_id" in input) || input.tool_use_id !== "a" });
    const calls = [command("a"), command("b")];
    const options = { calls, tools: [shell({ log, execute })] };
    const { result, lines } = await ran({ [event]: hooks(stops) }, { ...options, groups: false });
    assertEquals([result.status, log.splice(0)], ["done", ["a", "b"]]);
    const first = event === "PostToolUse" ? "ok a" : "error Bash failed.";
    assertEquals(lines, ["call Bash Bash", first, "ok b"]);
    const alone = await ran({ [event]: hooks(stops) }, options);
    assertEquals([alone.result.status, log], ["done", ["a"]]);
    assertEquals(alone.lines, ["call Bash Bash", first, "aborted Not run: a hook stopped the run."]);
  });
}

Deno.test("Claude, Qoder: block denies at PreToolUse, adds feedback at PostToolUse, and continues at Stop", async () => {
  const blocks = hooks(returning({ decision: "block", reason: "Because." }));
  assertEquals((await ran({ PreToolUse: blocks })).lines, ["call Bash", "denied Because.", "assistant Done."]);
  assertEquals((await ran({ PostToolUse: blocks })).lines, [
    "call Bash",
    "ok ran ls",
    "context Because.",
    "assistant Done.",
  ]);
  const model = scripted("One.", "Two.");
  const once: HookCallback = (input) =>
    input.hook_event_name === "Stop" && !input.stop_hook_active ? { decision: "block", reason: "Because." } : {};
  const { messages } = await agent({ model, use: [claude_hooks({ Stop: hooks(once) })] }).run("Hi").result;
  assertEquals(lines(messages), ["user Hi", "assistant One.", "stop Because.", "assistant Two."]);
});

Deno.test("Claude, Qoder: the legacy decision decides a call unless permissionDecision is present", async () => {
  const tools = [shell({ ask: true })];
  const outcome = async (...all: readonly HookCallback[]) => {
    const { result, lines } = await ran({ PreToolUse: hooks(...all) }, { tools });
    return lines[1] ?? result.status;
  };
  const specific = (permissionDecision: "allow" | "deny") => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision },
  });
  assertEquals(await outcome(returning({ decision: "block", reason: "No." })), "denied No.");
  assertEquals(await outcome(returning({ decision: "approve" })), "ok ran ls");
  assertEquals(await outcome(returning({ decision: "block", ...specific("allow") })), "ok ran ls");
  assertEquals(await outcome(returning({ decision: "approve", reason: "No.", ...specific("deny") })), "denied No.");
});

Deno.test("Claude, Qoder: a deny without a reason has a default text", async () => {
  const { lines } = await ran({ PreToolUse: hooks(returningOutput({ permissionDecision: "deny" })) });
  assertEquals(lines, ["call Bash", "denied Blocked by a hook.", "assistant Done."]);
  const asked = { tools: [shell({ ask: true })] };
  const request = await ran({ PermissionRequest: hooks(returningOutput({ decision: { behavior: "deny" } })) }, asked);
  assertEquals(request.lines[1], "denied Permission denied by hook.");
});

Deno.test("Claude, Qoder: updatedInput is not an approval, is dropped by a deny, and is validated again", async () => {
  const updatedInput = { command: "pwd" };
  const log: string[] = [];
  const asking = { tools: [shell({ ask: true, log })] };
  const paused = await ran({ PreToolUse: hooks(returningOutput({ updatedInput })) }, asking);
  assertEquals([paused.result.status, paused.result.questions.map(({ input }) => input)], ["paused", [updatedInput]]);
  await ran({ PreToolUse: hooks(returningOutput({ updatedInput, permissionDecision: "deny" })) }, asking);
  assertEquals(log.splice(0), []);
  await ran({ PreToolUse: hooks(returningOutput({ updatedInput, permissionDecision: "allow" })) }, asking);
  assertEquals(log.splice(0), ["pwd"]);

  const rules = permissions({ deny: [{ tool: "Bash", when: (input) => JSON.stringify(input).includes("pwd") }] });
  const denied = await ran({ PreToolUse: hooks(returningOutput({ updatedInput, permissionDecision: "allow" })) }, {
    after: [rules],
  });
  assertEquals(denied.lines[1], "denied Bash is not permitted here.");
  const wrong = await ran({
    PreToolUse: hooks(returningOutput({ updatedInput: { command: 1 }, permissionDecision: "allow" })),
  });
  assertEquals(
    wrong.lines[1],
    "error The input of Bash is not valid: command: Invalid input: expected string, received number",
  );
});

Deno.test("Claude, Qoder: an allow overrides no deny of a rule, and a deny counts in every mode", async () => {
  const rules = permissions({ deny: ["Bash"] });
  for (const place of ["before", "after"] as const) {
    const { lines } = await ran({ PreToolUse: hooks(allows) }, { [place]: [rules] });
    assertEquals(lines[1], "denied Bash is not permitted here.");
  }
  const bypass = returningOutput({
    decision: {
      behavior: "allow",
      updatedPermissions: [{ type: "setMode", mode: "bypassPermissions", destination: "session" }],
    },
  });
  const onlyB: HookCallback = (...reported) => reported[1] === "b" ? denies(...reported) : undefined;
  const { lines } = await ran({ PermissionRequest: hooks(bypass), PreToolUse: hooks(onlyB) }, {
    calls: [command("a"), command("b"), command("c")],
    tools: [shell({ ask: true })],
  });
  assertEquals(lines.slice(1, -1), ["ok ran a", "denied Not here.", "ok ran c"]);
});

Deno.test("Claude: an allow answers the question of the tool and not those of inner guards; Qoder: it answers all", async () => {
  const outcome = async (dialect: "qoder" | "claude", after: readonly Middleware[], ask = false) => {
    const config = { PreToolUse: hooks(allows) };
    const { result, lines } = await ran(config, { dialect, after, tools: [shell({ ask })] });
    return lines[1] ?? result.questions.map(({ questions }) => questions);
  };
  const rules = permissions({ ask: [{ tool: "Bash", why: "A rule asks." }] });
  const inner = claude_hooks({ PreToolUse: hooks(asks) }, { dialect: "claude" });
  for (const ask of [false, true]) {
    assertEquals(await outcome("qoder", [rules], ask), "ok ran ls");
    assertEquals(await outcome("claude", [rules], ask), [["A rule asks."]]);
    assertEquals(await outcome("claude", [inner], ask), [["Sure?"]]);
    assertEquals(await outcome("claude", [inner, rules], ask), [["Sure?", "A rule asks."]]);
    assertEquals(await outcome("claude", [], ask), "ok ran ls");
  }
});

Deno.test("Claude: a rule of the session that allows answers no question of an inner guard, and a PermissionRequest does", async () => {
  const updatedPermissions = [
    { type: "addRules", rules: [{ toolName: "Bash" }], behavior: "allow", destination: "session" },
  ];
  const outcome = async (dialect: "qoder" | "claude", more: object) => {
    const decision = { behavior: "allow", ...more } as const;
    const answered = { PermissionRequest: hooks(returningOutput({ decision })) };
    const calls = [command("a"), command("b")];
    const rules = permissions({ ask: [{ tool: "Bash", when: (input) => JSON.stringify(input).includes("b") }] });
    const asked: unknown[] = [];
    const look: HookCallback = (input) => void ("tool_input" in input && asked.push(input.tool_input));
    const config = { ...answered, PermissionRequest: hooks(...answered.PermissionRequest[0]?.hooks ?? [], look) };
    const { lines } = await ran(config, { dialect, calls, after: [rules], tools: [shell({ ask: true })] });
    return [lines.slice(1, 3), asked.length];
  };
  assertEquals(await outcome("qoder", { updatedPermissions }), [["ok ran a", "ok ran b"], 1]);
  assertEquals(await outcome("claude", { updatedPermissions }), [["ok ran a", "ok ran b"], 2]);
});

Deno.test("Claude, Qoder: output without its event name, or at the wrong level, is ignored with a warning, except a deny", async () => {
  const denying = [
    { hookSpecificOutput: { permissionDecision: "deny" } },
    { hookSpecificOutput: { hookEventName: "PostToolUse", permissionDecision: "deny" } },
    { permissionDecision: "deny" },
  ];
  const other = [
    { updatedInput: { command: "rm" }, additionalContext: "Beside." },
    { hookSpecificOutput: { permissionDecision: "allow", updatedInput: { command: "rm" } } },
  ];
  for (const answer of [...denying, ...other]) {
    const { lines, events } = await ran({ PreToolUse: hooks(returning(answer as never)) }); // untyped code may return this
    const outcome = denying.some((each) => each === answer) ? "denied Blocked by a hook." : "ok ran ls";
    assertEquals(lines, ["call Bash", outcome, "assistant Done."]);
    assertEquals(warnings(events).length, 1);
  }
  const reported = async (answer: unknown) =>
    warnings((await ran({ PreToolUse: hooks(returning(answer as never)) })).events); // as untyped code returns it
  assertEquals(await reported(other[1]), [
    "A hook of PreToolUse returned an invalid output: hookSpecificOutput has no hookEventName.",
  ]);
  assertEquals(await reported(denying[0]), [
    "A hook of PreToolUse returned an invalid output: hookSpecificOutput has no hookEventName, hookSpecificOutput.permissionDecision denies in the form of another system.",
  ]);
});

Deno.test("Qoder: an invalid field does not remove a deny", async () => {
  const answer = {
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: 4 },
  };
  const { lines, events } = await ran({ PreToolUse: hooks(returning(answer as never)) });
  assertEquals(lines[1], "denied Blocked by a hook.");
  assertEquals(warnings(events), [
    "A hook of PreToolUse returned an invalid output: permissionDecisionReason (Invalid input: expected string, received number).",
  ]);
});

Deno.test("Claude, Qoder: nothing, an empty object and unknown fields are no opinion", async () => {
  const answers = [undefined, null, {}, { hookSpecificOutput: null }, { mood: null, decision: null }, {
    sessionTitle: "Mine",
  }];
  const outcome = async (answer: unknown) => {
    const same = hooks(returning(answer as never)); // as untyped code returns it
    const { lines, events } = await ran({ PreToolUse: same, Stop: same });
    assertEquals(lines, ["call Bash", "ok ran ls", "assistant Done."]);
    return warnings(events);
  };
  for (const answer of answers) assertEquals(await outcome(answer), []);
  assertEquals(await outcome({ mood: "good", weather: 1, decision: null }), [
    "A hook of PreToolUse returned unknown members: mood, weather.",
    "A hook of Stop returned unknown members: mood, weather.",
  ]);
  const many = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`m${at}`, at]));
  assertEquals(
    (await outcome(many))[0]?.endsWith("unknown members: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 more."),
    true,
  );
  const echo: HookCallback = (input) => input as never;
  assertEquals((await ran({ PreToolUse: hooks(echo), Stop: hooks(echo) })).lines[1], "ok ran ls");
  for (const answer of ["yes", 1, true, ["allow"]]) {
    const { lines, events } = await ran({ PreToolUse: hooks(returning(answer as never)) });
    assertEquals([lines[1], warnings(events)], [
      "ok ran ls",
      ["A hook of PreToolUse returned an invalid output: it is no object."],
    ]);
  }
});

Deno.test("Claude, Qoder: the first answer to a PermissionRequest counts, and the other is aborted", async () => {
  const tools = [shell({ ask: true })];
  let aborted = false;
  const slow = held(returningOutput({ decision: { behavior: "deny", message: "Too late." } }));
  const hook: HookCallback = (input, id, options) => {
    options.signal.addEventListener("abort", () => aborted = true);
    return slow.hook(input, id, options);
  };
  const first = await ran({ PermissionRequest: hooks(hook) }, {
    tools,
    canUseTool: () => Promise.resolve({ behavior: "allow", updatedInput: { command: "pwd" } }),
  });
  slow.resolve();
  await settled();
  assertEquals([first.lines[1], aborted, first.errors], ["ok ran pwd", true, []]);

  let received: unknown;
  const second = await ran({
    PermissionRequest: hooks(returningOutput({ decision: { behavior: "deny", message: "No." } })),
  }, {
    tools,
    canUseTool: (name, input, { signal, suggestions, toolUseID }) => {
      received = [name, input, suggestions, toolUseID];
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const suggestions = [{ type: "addRules", rules: [{ toolName: "Bash" }], behavior: "allow", destination: "session" }];
  assertEquals([second.lines[1], second.errors], ["denied No.", []]);
  assertEquals(received, ["Bash", { command: "ls" }, suggestions, "a"]);
});

Deno.test("Claude, Qoder: updatedPermissions need an allow, message and interrupt need a deny", async () => {
  const always = { type: "addRules", rules: [{ toolName: "Bash" }], behavior: "allow", destination: "session" };
  const calls = [command("a"), command("b")];
  const asked: unknown[] = [];
  const answering = (decision: object): HookCallback => (input) => {
    asked.push(input);
    return { hookSpecificOutput: { hookEventName: "PermissionRequest", decision: decision as never } };
  };
  const options = { calls, tools: [shell({ ask: true })] };
  await ran({
    PermissionRequest: hooks(answering({ behavior: "allow", updatedPermissions: [always], message: "Never." })),
  }, options);
  assertEquals(asked.splice(0).length, 1);
  await ran({ PermissionRequest: hooks(answering({ behavior: "deny", updatedPermissions: [always] })) }, options);
  assertEquals(asked.splice(0).length, 2);
  const allowed = await ran({ PermissionRequest: hooks(answering({ behavior: "allow", interrupt: true })) }, options);
  assertEquals(allowed.result.reason, undefined);

  const log: string[] = [];
  const interrupts = answering({ behavior: "deny", message: "Stop it.", interrupt: true });
  const { result, lines } = await ran({ PermissionRequest: hooks(interrupts) }, {
    calls,
    tools: [shell({ ask: true, log })],
  });
  assertEquals([result.status, result.reason, log], ["done", "Stop it.", []]);
  assertEquals(lines, ["call Bash Bash", "denied Stop it.", "aborted Not run: a hook stopped the run."]);
});

for (
  const answer of [{ decision: "block", reason: "Not that." }, { continue: false, stopReason: "Not that." }] as const
) {
  Deno.test(`Claude, Qoder: a prompt refused by ${Object.keys(answer)[0]} is not stored`, async () => {
    const store = memory();
    const model = scripted("Hello!");
    let refuse = true;
    const hook: HookCallback = () => refuse ? answer : {};
    const assistant = agent({ model, use: [claude_hooks({ UserPromptSubmit: hooks(hook) })] });
    const { status, reason, messages, session } = await assistant.run({ prompt: "Hi", store }).result;
    assertEquals([status, reason, messages], ["cancelled", "Not that.", []]);
    refuse = false;
    const next = await assistant.run({ prompt: "Hello", session, store }).result;
    assertEquals(lines(next.messages), ["user Hello", "assistant Hello!"]);
  });
}

// ── the loop ──

Deno.test("Claude: stop_hook_active is set after a block, and eight blocks in a row are the most", async () => {
  const active: boolean[] = [];
  const hook: HookCallback = (input) => {
    if (input.hook_event_name === "Stop") active.push(input.stop_hook_active);
    return { decision: "block", reason: "More." };
  };
  const model = scripted(...Array.from({ length: 9 }, (_, index) => String(index)));
  const run = agent({ model, use: [claude_hooks({ Stop: hooks(hook) }, { dialect: "claude" })] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  const { status, text } = await run.result;
  assertEquals([status, text, model.left], ["done", "8", 0]);
  assertEquals(active, [false, true, true, true, true, true, true, true, true]);
  assertEquals(warnings(events), ["Hooks have kept the agent from stopping 8 times in a row: it stops."]);
});

Deno.test("Qoder: blocks of Stop are limited by the run", async () => {
  const blocks = hooks(returning({ decision: "block", reason: "More." }));
  const model = scripted("1", "2", "3");
  const { status, reason } = await agent({ model, use: [claude_hooks({ Stop: blocks })], limits: { continuations: 2 } })
    .run("Hi").result;
  assertEquals([status, reason], ["limit", "continuations"]);
});

Deno.test("Claude, Qoder: Stop fires for an answer without calls, never between batches", async () => {
  const { log, config } = received("PreToolUse", "Stop", "PostToolBatch");
  const model = scripted({ calls: [["Bash", { command: "a" }]] }, { calls: [["Bash", { command: "b" }]] }, "Done.");
  await agent({ model, tools: [shell()], use: [claude_hooks(config)] }).run("Hi").result;
  assertEquals(log, ["PreToolUse", "PostToolBatch", "PreToolUse", "PostToolBatch", "Stop"]);
});

Deno.test("Claude, Qoder: UserPromptSubmit and SessionStart do not fire again on resume", async () => {
  const { log, config } = received("UserPromptSubmit", "SessionStart");
  await resumed(config, [{ callId: "a", type: "approve" }], { tools: [shell({ ask: true })] });
  assertEquals(log, ["SessionStart", "UserPromptSubmit"]);
});

// ── robustness ──

Deno.test("Qoder: a timeout is in seconds, and a late hook has no opinion", async () => {
  using time = new FakeTime();
  let reason: unknown;
  const stuck: HookCallback = (_, __, { signal }) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        reason = signal.reason.name;
        reject(signal.reason);
      })
    );
  const running = hooked({ PreToolUse: [{ hooks: [stuck, denies], timeout: 2 }] }).run();
  await time.tickAsync(1_999);
  assertEquals(reason, undefined);
  await time.tickAsync(1);
  const { lines, events, errors } = await running.outcome;
  assertEquals(reason, "TimeoutError");
  assertEquals(lines[1], "denied Not here.");
  assertEquals(warnings(events), ["A hook of PreToolUse failed."]);
  assertEquals(errors.map(String), ["TimeoutError: Not done after 2000 ms"]);
});

for (
  const [dialect, event, seconds] of [
    ["qoder", "PreToolUse", 600],
    ["claude", "PreToolUse", 60],
    ["claude", "UserPromptSubmit", 30],
  ] as const
) {
  Deno.test(`${dialect}: a hook of ${event} has ${seconds} seconds by default`, async () => {
    using time = new FakeTime();
    const never: HookCallback = () => new Promise(() => {});
    const running = hooked({ [event]: hooks(never) }, { dialect, limits: { time: Infinity } }).run();
    let over = false;
    running.outcome.then(() => over = true);
    await time.tickAsync(seconds * 1_000);
    assertEquals(over, false);
    await time.tickAsync(50); // in which it may stop
    await running.outcome;
  });
}

Deno.test("Claude, Qoder: matchers differ between the dialects", async () => {
  const tools = ["Bash", "Edit", "MultiEdit", "Write", "mcp__memory__create"].map((name) => shell({ name }));
  const calls = tools.map(({ name }) => command(name, name, name));
  const matched = async (matcher: string | undefined, dialect: "qoder" | "claude") => {
    const names: string[] = [];
    const hook: HookCallback = (input) => void ("tool_name" in input && names.push(input.tool_name));
    await ran({ PreToolUse: [{ matcher, hooks: [hook] }] }, { dialect, tools, calls });
    return names.join(" ");
  };
  const all = "Bash Edit MultiEdit Write mcp__memory__create";
  const cases: readonly (readonly [string | undefined, string, string])[] = [
    [undefined, all, all],
    ["", all, all],
    ["*", all, all],
    ["Edit", "Edit MultiEdit", "Edit"],
    ["^Edit$", "Edit", "Edit"],
    ["Bash|Write", "Bash Write", "Bash Write"],
    ["Bash, Write", "", "Bash Write"],
    ["Edit|Bash", "Bash Edit MultiEdit", "Bash Edit"],
    ["mcp__.*", "mcp__memory__create", "mcp__memory__create"],
    ["mcp__memory", "mcp__memory__create", ""],
    ["bash", "", ""],
    ["(", "", ""],
    [".*", all, all],
  ];
  for (const [matcher, qoder, claude] of cases) {
    assertEquals([await matched(matcher, "qoder"), await matched(matcher, "claude")], [qoder, claude], matcher);
  }
});

Deno.test("Claude, Qoder: a warning reports matchers that match no tool, and what they would block is not blocked", async () => {
  const deny = [returning({ decision: "block" })];
  const warned = async (matcher: string, dialect: "qoder" | "claude", event = "PreToolUse") => {
    const { events } = await ran({ [event]: [{ matcher, hooks: deny }, { matcher, hooks: deny }] }, { dialect });
    return warnings(events);
  };
  const start = "Hooks of PreToolUse with the matcher";
  const end = "What they would block is not blocked.";
  for (const matcher of ["(", "Bash(", "(?i)bash", "Bash(*)"]) {
    const problem = [`${start} "${matcher}" never run: it is an invalid regular expression. ${end}`];
    assertEquals([await warned(matcher, "qoder"), await warned(matcher, "claude")], [problem, problem]);
  }
  const wrong = (matcher: string) => [
    `${start} "${matcher}" never run: it matches no tool; expected its name, or a regular expression for names. ${end}`,
  ];
  for (
    const matcher of [
      "Bash(rm *)",
      "Edit(src/.*)",
      "WebFetch(domain:a.b)",
      "Bash(npm ci|git:*)",
      "Bash rm",
      "a b|Bash:rm",
    ]
  ) {
    const problem = wrong(matcher);
    assertEquals([await warned(matcher, "qoder"), await warned(matcher, "claude")], [problem, problem]);
  }
  assertEquals([await warned("Edit, Write", "qoder"), await warned("Edit, Write", "claude")], [
    wrong("Edit, Write"),
    [],
  ]);
  const maybe = ["Edit", "mcp__(?:a|b)__.{1,9}", "[^ /]+_x", "Edit|Read file", ".*", "*", "", "Notebook(Edit|Read)"];
  const optional = ["(?i:Bash)", "Bash( .*)?", "Bash ?", "Bash:?", "^(?!mcp__x:)Bash", "Bash[\\]:]?", "Bash( *)"];
  for (const matcher of [...maybe, ...optional]) {
    assertEquals([await warned(matcher, "qoder"), await warned(matcher, "claude")], [[], []], matcher);
  }
  assertEquals([await warned("(", "qoder", "SessionStart"), await warned("(", "claude", "SessionStart")], [
    [], // compared with the text
    ['Hooks of SessionStart with the matcher "(" never run: it is an invalid regular expression.'],
  ]);
  assertEquals(await warned("(", "claude", "Stop"), []); // matchers are ignored at this event
});

Deno.test("Claude, Qoder: a warning reports unknown fields of a matcher", async () => {
  const misspelt = { matchers: "Write", onFailur: "block", hooks: [returning({})] };
  const { events } = await ran({ PreToolUse: [misspelt] } as HookConfig); // as untyped code writes it
  assertEquals(warnings(events), [
    "A matcher of PreToolUse has unknown members: matchers, onFailur; expected matcher, hooks, timeout, onFailure, sequential.",
  ]);
});

Deno.test("Claude, Qoder: a matcher is ignored at events without a value", async () => {
  const log: string[] = [];
  const hook: HookCallback = ({ hook_event_name }) => void log.push(hook_event_name);
  const never = [{ matcher: "Nothing", hooks: [hook] }];
  await ran({ UserPromptSubmit: never, Stop: never, PostToolBatch: never, SessionStart: never, PreToolUse: never });
  assertEquals(log, ["UserPromptSubmit", "PostToolBatch", "Stop"]);
});

Deno.test("Claude, Qoder: tool_use_id is the same before and after a call, and absent elsewhere", async () => {
  const ids: (string | undefined)[][] = [];
  const hook: HookCallback = (input, id) => {
    ids.push([input.hook_event_name, id, "tool_use_id" in input ? input.tool_use_id : undefined]);
  };
  const all = hooks(hook);
  const config: HookConfig = { PreToolUse: all, PostToolUse: all, UserPromptSubmit: all, Stop: all, SessionEnd: all };
  await ran(config, { calls: [command("a"), command("b")] });
  assertEquals(ids, [
    ["UserPromptSubmit", undefined, undefined],
    ["PreToolUse", "a", "a"],
    ["PostToolUse", "a", "a"],
    ["PreToolUse", "b", "b"],
    ["PostToolUse", "b", "b"],
    ["Stop", undefined, undefined],
    ["SessionEnd", undefined, undefined],
  ]);
});

Deno.test("Claude, Qoder: a callback that is registered twice runs twice", async () => {
  const log: string[] = [];
  const hook = (name: string): HookCallback => () => void log.push(name);
  const same = hook("same");
  await ran({ PreToolUse: [{ hooks: [hook("one"), same] }, { matcher: "Bash", hooks: [hook("two"), same] }] });
  assertEquals(log, ["one", "same", "two", "same"]);
});

Deno.test("Claude, Qoder: a subagent inherits the hooks, which receive its agent_id", async () => {
  const seen: unknown[] = [];
  const hook: HookCallback = (input) => {
    const { hook_event_name, agent_type, agent_id, session_id } = input;
    const stop = "stop_hook_active" in input ? [input.stop_hook_active] : [];
    seen.push([hook_event_name, agent_type, typeof agent_id, session_id, ...stop]);
    return { decision: hook_event_name === "SubagentStop" && !stop[0] ? "block" : "approve", reason: "Say more." };
  };
  const all = hooks(hook);
  const events = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
  ];
  const config = Object.fromEntries(events.map((event) => [event, all])) as HookConfig;
  const child = agent({
    name: "child",
    tools: [shell()],
    model: scripted({ calls: [["Bash", { command: "ls" }]] }, "Short.", "Long."),
  });
  const parent = agent({
    name: "parent",
    model: scripted({ calls: [["child", { prompt: "Help" }]] }, "Done."),
    tools: [asTool(child)],
    use: [
      claude_hooks({
        ...config,
        SubagentStart: [...all, { hooks: [returningOutput({ additionalContext: "Be brief." })] }],
      }),
    ],
  });
  const { messages, session } = await parent.run({ prompt: "Hi", session: "s" }).result;
  assertEquals(session, "s");
  assertEquals(lines(messages), ["user Hi", "call child", "ok Long.", "assistant Done."]);
  assertEquals(seen, [
    ["SessionStart", undefined, "undefined", "s"],
    ["UserPromptSubmit", undefined, "undefined", "s"],
    ["PreToolUse", undefined, "undefined", "s"],
    ["SubagentStart", "child", "string", "s"],
    ["PreToolUse", "child", "string", "s"],
    ["SubagentStop", "child", "string", "s", false],
    ["SubagentStop", "child", "string", "s", true],
    ["Stop", undefined, "undefined", "s", false],
    ["SessionEnd", undefined, "undefined", "s"],
  ]);
});

Deno.test("Claude, Qoder: an asynchronous output decides nothing", async () => {
  const hookSpecificOutput = {
    hookEventName: "PreToolUse",
    permissionDecision: "deny",
    additionalContext: "No.",
  } as const;
  const answer = { async: true, decision: "block", continue: false, systemMessage: "No.", hookSpecificOutput } as const;
  const { lines, events } = await ran({ PreToolUse: hooks(returning(answer)) });
  assertEquals([lines, warnings(events)], [["call Bash", "ok ran ls", "assistant Done."], []]);
});

Deno.test("Claude, Qoder: stopping a run aborts its hooks, and does not wait for them", async () => {
  const aborted: string[] = [];
  const started = Promise.withResolvers<void>();
  const watches = (name: string): HookCallback => (_, __, { signal }) => {
    signal.addEventListener("abort", () => aborted.push(name));
    started.resolve();
    return new Promise(() => {});
  };
  const running = hooked({ PreToolUse: hooks(watches("one"), watches("two")) }).run();
  await started.promise;
  running.stop();
  const { result } = await running.outcome;
  assertEquals([result.status, aborted], ["aborted", ["one", "two"]]);
});

Deno.test("Claude, Qoder: systemMessage is for the person only, additionalContext for the model only", async () => {
  const addsContext: HookCallback = (input) => ({
    systemMessage: `${input.hook_event_name} for the person`,
    hookSpecificOutput: {
      hookEventName: input.hook_event_name,
      additionalContext: `${input.hook_event_name} for the model`,
      permissionDecision: "allow",
      permissionDecisionReason: "for no reader",
    },
  });
  const stops = returning({ continue: false, stopReason: "Why, for the person" });
  const { result, events } = await ran({
    UserPromptSubmit: hooks(addsContext),
    PreToolUse: hooks(addsContext),
    PostToolUse: hooks(addsContext, stops),
  });
  assertEquals(notices(events), [
    "UserPromptSubmit for the person",
    "PreToolUse for the person",
    "PostToolUse for the person",
    "Why, for the person",
  ]);
  assertEquals(lines(result.messages).slice(1), [
    "prompt UserPromptSubmit for the model",
    "call Bash",
    "ok ran ls",
    "context PreToolUse for the modelPostToolUse for the model",
  ]);
  const reported = JSON.stringify(events.filter(({ type }) => type !== "prompt.accepted"));
  assertEquals(reported.includes("for the model") || reported.includes("for no reader"), false);
});
