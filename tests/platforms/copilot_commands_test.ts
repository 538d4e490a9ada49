import { assertEquals, assertThrows } from "@std/assert";
import { command_hooks, type CommandHooksOptions, type CommandSettings } from "@jizai/jizai/middleware/command_hooks";
import { batch, type Outcome } from "../support/batch.ts";
import { agent } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { collect } from "@jizai/jizai/testing";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { command, notices, shell, warnings } from "../support/hooked.ts";
import { lines } from "../support/transcript_lines.ts";
import { folder } from "./folder.ts";

/** Settings as a file contains them. */
function settings(hooks: Readonly<Record<string, unknown>>): CommandSettings {
  const file: unknown = { version: 1, hooks };
  return file as CommandSettings; // as `JSON.parse` returns it
}

async function ran(hooks: Readonly<Record<string, unknown>>, cwd?: string): Promise<Outcome> {
  const use = [command_hooks(settings(hooks), { dialect: "copilot", cwd })];
  return await batch([command("a", "rm -rf dist", "bash")], { tools: [shell({ name: "bash" })], use }).run().outcome;
}

/** A command as a file contains it. */
function bash(bash: string, more: object = {}) {
  return { type: "command", bash, powershell: "exit 1", ...more };
}

Deno.test("Copilot commands: JSON or an exit code except 0 denies a call", async () => {
  const printing = (decision: object) => bash(`echo '${JSON.stringify(decision)}'`);
  const outcome = async (...commands: readonly object[]) => {
    const { lines, events } = await ran({ preToolUse: commands });
    return [lines[1], ...warnings(events)];
  };
  const deny = { permissionDecision: "deny", permissionDecisionReason: "No." };
  const denied = "denied Denied by preToolUse hook:";
  assertEquals(await outcome(printing(deny)), [`${denied} No.`]);
  assertEquals(await outcome(printing({ permissionDecision: "allow" }), printing(deny)), [`${denied} No.`]);
  assertEquals(await outcome(printing({ permissionDecision: "deny" })), [`${denied} No reason provided`]);
  const shouted = { permissionDecision: "Deny", permissionDecisionReason: "No!" };
  assertEquals(await outcome(printing(shouted), printing({ permissionDecision: "allow" })), [`${denied} No!`]);
  assertEquals(await outcome(bash("echo Threats; exit 1")), [`${denied} hook exited with code 1`]);
  assertEquals(await outcome(bash("echo Checked")), ["ok ran rm -rf dist"]);
  assertEquals(await outcome(bash("exit 1", { matcher: "ba" })), ["ok ran rm -rf dist"]);
  assertEquals(await outcome(bash("exit 1", { matcher: "ba.*|view" })), [`${denied} hook exited with code 1`]);
});

Deno.test("Copilot commands: invalid JSON is a failure, and loses no denial", async () => {
  const denying = await ran({ preToolUse: [bash(`echo '{"permissionDecision":"deny",}'`), bash("true")] });
  assertEquals(denying.lines[1], "denied Denied by preToolUse hook: No reason provided");
  const { lines, events, errors } = await ran({ preToolUse: [bash(`echo '{"permissionDecision":"allow",}'`)] });
  assertEquals([lines[1], ...warnings(events)], ["ok ran rm -rf dist", "onPreToolUse failed."]);
  const why = `expected JSON, got text that only looks like it (echo '{"permissionDecision":"allow",}')`;
  assertEquals(errors.map(String), [`Error: Cannot use the output of the hook: ${why}`]);
});

Deno.test("Copilot commands: a late command is killed and skipped", async () => {
  const late = bash("sleep 100", { timeoutSec: 0.2 });
  const { lines, events, errors } = await ran({ preToolUse: [late, bash("exit 2")] });
  assertEquals(lines[1], "denied Denied by preToolUse hook: hook exited with code 2");
  assertEquals(warnings(events), ["onPreToolUse failed."]);
  assertEquals(errors.map(String), ["TimeoutError: Not done after 200 ms"]);
});

Deno.test("Copilot commands: a command receives the arguments as a string, in the configured directory", async () => {
  await using disk = await folder();
  await Deno.mkdir(`${disk.path}/sub`);
  const cwd = await Deno.realPath(disk.path);
  const keep = (name: string) => bash(`cat > "$NAME"`, { cwd: "sub", env: { NAME: name } });
  const { result } = await ran({ preToolUse: [keep("pre")], postToolUse: [keep("post")] }, cwd);
  const reported = async (name: string) => {
    const { timestamp: _, ...rest } = JSON.parse(await Deno.readTextFile(`${cwd}/sub/${name}`));
    return rest;
  };
  const call = { sessionId: result.session, cwd, toolName: "bash", toolArgs: '{"command":"rm -rf dist"}' };
  assertEquals(await reported("pre"), call);
  const toolResult = { textResultForLlm: "ran rm -rf dist", resultType: "success" };
  assertEquals(await reported("post"), { ...call, toolResult });
});

Deno.test("Copilot commands: the context of several commands is joined", async () => {
  const send = (output: object) => bash(`echo '${JSON.stringify(output)}'`);
  const { result } = await ran({
    sessionStart: [send({ additionalContext: "One." }), bash("exit 3"), send({ additionalContext: "Two." })],
  });
  assertEquals(lines(result.messages).slice(0, 2), ["session One.\nTwo.", "user Hi"]);
});

Deno.test("Copilot commands: stopping a run kills the running command", async () => {
  await using disk = await folder();
  const hooks = { preToolUse: [bash("echo asked >> all; echo $$ > own; sleep 100"), bash("touch after")] };
  const use = [command_hooks(settings(hooks), { dialect: "copilot", cwd: disk.path })];
  const calls = [command("a", "ls", "bash"), command("b", "ls", "bash")];
  const running = batch(calls, { tools: [shell({ name: "bash" })], use }).run();
  const read = (name: string) => Deno.readTextFile(`${disk.path}/${name}`).catch(() => "");
  while (await read("own") === "") await new Promise((resolve) => setTimeout(resolve, 10));
  running.stop();
  assertEquals((await running.outcome).result.status, "aborted");
  const pid = (await read("own")).trim();
  const lives = async () => {
    const { stdout } = await new Deno.Command("ps", { args: ["-o", "stat=", "-p", pid] }).output();
    return /^[^Z]/.test(new TextDecoder().decode(stdout).trim());
  };
  while (await lives()) await new Promise((resolve) => setTimeout(resolve, 10)); // it would live for 100 seconds
  assertEquals([await read("all"), await Deno.stat(`${disk.path}/after`).catch(() => "none")], ["asked\n", "none"]);
});

Deno.test("Copilot commands: a warning reports entries that never run, and invalid entries are refused", async () => {
  const { events, lines } = await ran({
    preToolUse: [
      bash("exit 1", { matcher: "(" }),
      bash("exit 1", { matcher: "Bash(rm *)" }),
      bash("exit 1", { matcher: "Bash, Edit" }),
      { type: "agent", prompt: "Decide" },
    ],
    sessionStart: [bash("true", { matcher: "no tool" })],
    agentStop: [{ type: "prompt", prompt: "Go on" }],
    preUpload: [bash("true")],
  });
  assertEquals(lines[1], "ok ran rm -rf dist");
  assertEquals(warnings(events), [
    'Hooks of preToolUse with the matcher "(" never run: it is an invalid regular expression. What they would block is not blocked.',
    ...["Bash(rm *)", "Bash, Edit"].map((matcher) =>
      `Hooks of preToolUse with the matcher "${matcher}" never run: it matches no tool; expected its name, or a regular expression for names. What they would block is not blocked.`
    ),
    'Hooks of preToolUse with the type "agent" never run: it is unknown. What they would block is not blocked.',
    'Hooks of agentStop with the type "prompt" never run: it is for sessionStart.',
    "Hooks of preUpload never run: the event does not occur here.",
  ]);
  const insecure = [{ type: "http", url: "http://hooks.example" }, { type: "http", url: "https://localhost" }];
  for (const wrong of [{}, { bash: 7 }, { bash: "true", timeoutSec: 0 }, { exec: "true", bash: "true" }, ...insecure]) {
    const make = () => command_hooks(settings({ preToolUse: [wrong] }), { dialect: "copilot" });
    assertThrows(make, TypeError, "Cannot use the hooks of preToolUse");
  }
});

/** The outcome of one call of `bash` with hooks of a settings file. */
async function outcomeOf(hooks: Readonly<Record<string, unknown>>, options: CommandHooksOptions = {}, ask = false) {
  const use = [command_hooks(settings(hooks), { ...options, dialect: "copilot" })];
  return await batch([command("a", "ls", "bash")], { tools: [shell({ name: "bash", ask })], use }).run().outcome;
}

const denying = { permissionDecision: "deny", permissionDecisionReason: "No." };

Deno.test("Copilot commands: exec runs a program with its arguments, without a shell", async () => {
  const args = [
    "-c",
    "import json; print(json.dumps({'permissionDecision': 'deny', 'permissionDecisionReason': '$HOME'}))",
  ];
  const { lines } = await outcomeOf({ preToolUse: [{ exec: "python3", args }] });
  assertEquals(lines[1], "denied Denied by preToolUse hook: $HOME");
  const { errors } = await outcomeOf({ preToolUse: [{ type: "command", bash: "sleep 100", timeout: 0.2 }] });
  assertEquals(errors.map(String), ["TimeoutError: Not done after 200 ms"]);
});

Deno.test("Copilot commands: progress lines are shown to the person, and are no part of the output", async () => {
  const line = (more: object) => `echo '${JSON.stringify({ type: "progress", ...more })}'`;
  const hook = [
    line({ message: "Checking" }),
    line({ message: "Thinking", temporary: true }),
    `echo '${JSON.stringify(denying)}'`,
  ];
  const { lines, events } = await outcomeOf({ preToolUse: [bash(hook.join("; "))] });
  assertEquals(lines[1], "denied Denied by preToolUse hook: No.");
  assertEquals(notices(events), ["Checking"]);
  const temporary = events.flatMap((event) =>
    event.type === "data" && event.name === "copilot_hooks.progress" ? [event.data] : []
  );
  assertEquals(temporary, [{ message: "Thinking" }]);
});

Deno.test("Copilot commands: http handlers post the input, and a failure of theirs denies nothing", async () => {
  const posted: unknown[] = [];
  const answers = [Response.json(denying), new Response("down", { status: 500 }), Response.json({}, { status: 403 })];
  const http: CommandHooksOptions["http"] = {
    fetch: (url, { body, headers }) => {
      const { toolName } = JSON.parse(String(body));
      posted.push([url, toolName, new Headers(headers).get("authorization")]);
      return answers.shift() ?? Response.json({});
    },
  };
  const url = "https://93.184.215.14/hook";
  const hook = { type: "http", url, headers: { authorization: "Bearer $TOKEN" }, allowedEnvVars: ["TOKEN"] };
  const run = async () => (await outcomeOf({ preToolUse: [hook] }, { http, env: { TOKEN: "t" } })).lines[1];
  assertEquals(await run(), "denied Denied by preToolUse hook: No.");
  assertEquals([await run(), await run()], ["ok ran ls", "ok ran ls"]);
  assertEquals(posted[0], [url, "bash", "Bearer t"]);
});

Deno.test("Copilot commands: a prompt handler adds its text before the prompt of a new session", async () => {
  const { result } = await outcomeOf({ sessionStart: [{ type: "prompt", prompt: "Read the plan." }] });
  assertEquals(lines(result.messages).slice(0, 2), ["session Read the plan.", "user Hi"]);
});

Deno.test("Copilot commands: events with a capital letter have inputs as VS Code's, and matchers as Claude Code's", async () => {
  await using disk = await folder();
  const cwd = await Deno.realPath(disk.path);
  const keep = (name: string, matcher?: string) => ({
    command: `cat > ${name}`,
    ...(matcher !== undefined && { matcher }),
  });
  await outcomeOf({
    PreToolUse: [keep("a", "Bash"), keep("b", "bash|Edit"), keep("c", "Edit|Write"), keep("d", "B.*"), keep("e", "**")],
    PostToolUse: [{ matcher: "bash", hooks: [{ type: "command", ...keep("post") }] }],
    Stop: [keep("stop")],
    UserPromptSubmit: [keep("prompt")],
  }, { cwd });
  const read = async (name: string) => {
    const text = await Deno.readTextFile(`${cwd}/${name}`).catch(() => "null");
    const { session_id: _, timestamp, ...rest } = JSON.parse(text) ?? {};
    return { ...rest, isTime: Number.isNaN(Date.parse(timestamp)) ? undefined : typeof timestamp };
  };
  const call = { cwd, isTime: "string", tool_input: { command: "ls" } };
  const pre = { hook_event_name: "PreToolUse", tool_name: "Bash", ...call };
  assertEquals([await read("a"), await read("b"), await read("d"), await read("e")], [pre, pre, pre, pre]);
  assertEquals((await read("c")).hook_event_name, undefined);
  const tool_result = { result_type: "success", text_result_for_llm: "ran ls" };
  assertEquals(await read("post"), { hook_event_name: "PostToolUse", tool_name: "bash", ...call, tool_result });
  const stop = { hook_event_name: "Stop", cwd, isTime: "string", stop_reason: "end_turn", stop_hook_active: false };
  assertEquals(await read("stop"), stop);
  assertEquals(await read("prompt"), { hook_event_name: "UserPromptSubmit", cwd, isTime: "string", prompt: "Hi" });
});

Deno.test("Copilot commands: exit code 2 denies, guides or warns, as the event says", async () => {
  const two = bash("echo Careful. >&2; exit 2");
  assertEquals(
    (await outcomeOf({ preToolUse: [bash(`echo '{"permissionDecisionReason":"No."}'; exit 2`)] })).lines[1],
    "denied Denied by preToolUse hook: No.",
  );
  assertEquals(
    (await outcomeOf({ permissionRequest: [bash(`echo '{"behavior":"allow","message":"Not now."}'; exit 2`)] }))
      .lines[1],
    "denied Not now.",
  );
  const warned = await outcomeOf({ postToolUse: [two] });
  assertEquals([notices(warned.events), warnings(warned.events)], [["Careful."], []]);
  const use = [command_hooks(settings({ postToolUseFailure: [two] }), { dialect: "copilot" })];
  const failing = shell({ name: "bash", execute: () => Promise.reject(new Error("Broken")) });
  const { result } = await batch([command("a", "ls", "bash")], { tools: [failing], use }).run().outcome;
  const guidance = 'Tool "bash" failed. Additional guidance from postToolUseFailure hooks:\nCareful.';
  assertEquals(JSON.stringify(result.messages).includes(JSON.stringify(guidance).slice(1, -1)), true);
});

Deno.test("Copilot commands: permissionRequest answers in place of a person, and notification runs when one is asked", async () => {
  const allowing = bash(`echo '{"behavior":"allow"}'`);
  assertEquals((await outcomeOf({ permissionRequest: [allowing] }, {}, true)).lines[1], "ok ran ls");
  assertEquals(
    (await outcomeOf({ permissionRequest: [{ ...allowing, matcher: "edit" }] }, {}, true)).result.status,
    "paused",
  );
  assertEquals(
    (await outcomeOf(
      { permissionRequest: [allowing, bash(`echo '{"behavior":"deny","message":"Never."}'`)] },
      {},
      true,
    )).lines[1],
    "denied Never.",
  );
  const ended = await outcomeOf({
    permissionRequest: [bash(`echo '{"behavior":"deny","message":"Stop.","interrupt":true}'`)],
  });
  assertEquals([ended.result.status, ended.result.reason], ["cancelled", "Stop."]);
  await using disk = await folder();
  const cwd = await Deno.realPath(disk.path);
  const asked = await outcomeOf(
    {
      notification: [bash("cat > asked", { matcher: "permission_.*" }), bash("cat > other", { matcher: "agent_idle" })],
    },
    { cwd },
    true,
  );
  assertEquals(asked.result.status, "paused");
  const { message, notification_type } = JSON.parse(await Deno.readTextFile(`${cwd}/asked`));
  assertEquals([message, notification_type], ["Your permission is needed to use bash", "permission_prompt"]);
  assertEquals(await Deno.readTextFile(`${cwd}/other`).catch(() => "none"), "none");
});

Deno.test("Copilot commands: the context of postToolUse is joined by empty lines, and has at most 10 KB", async () => {
  const send = (text: string) => bash(`echo '${JSON.stringify({ additionalContext: text })}'`);
  const context = async (...texts: readonly string[]) => {
    const { result } = await outcomeOf({ postToolUse: texts.map(send) });
    return lines(result.messages).find((line) => line.startsWith("context"))?.slice("context ".length);
  };
  assertEquals(await context("One.", "Two."), "One.\n\nTwo.");
  assertEquals(await context("é".repeat(6_000)), "é".repeat(5_120));
});

Deno.test("Copilot commands: hooks of subagents add context, keep them going and rewrite their answers", async () => {
  const child = agent({ name: "explore", description: "Explores", model: scripted("First.", "Second.") });
  const hooks = {
    subagentStart: [bash(`echo '{"additionalContext":"Be brief."}'`, { matcher: "explore" })],
    subagentStop: [
      bash(`grep -q First && echo '{"decision":"block","reason":"Again."}' || echo '{"modifiedResponse":"Short."}'`),
    ],
  };
  const model = scripted({ calls: [["explore", { prompt: "Look" }]] }, "Done.");
  const use = [command_hooks(settings(hooks), { dialect: "copilot" }), subagents([child])];
  const { result } = await collect(agent({ model, use }).run("Go"));
  assertEquals(lines(result.messages).slice(1, 3), ["call explore", "ok Short."]);
});
