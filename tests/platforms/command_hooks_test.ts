import { agent, type Event, type Model, ToolError } from "@jizai/jizai";
import {
  command_hooks,
  type CommandHook,
  type CommandHooksOptions,
  type CommandSettings,
} from "@jizai/jizai/middleware/command_hooks";
import { assertEquals, assertThrows } from "@std/assert";
import { type Batch, batch, type Outcome, settled } from "../support/batch.ts";
import { command, notices, shell, warnings } from "../support/hooked.ts";
import { lines } from "../support/transcript_lines.ts";
import { folder } from "./folder.ts";

/** Settings with commands for one event. */
function on(event: string, ...commands: readonly (string | Partial<CommandHook>)[]): CommandSettings {
  return { hooks: { [event]: [{ hooks: commands.map(hookOf) }] } };
}

function hookOf(command: string | Partial<CommandHook>): CommandHook {
  return { type: "command", command: "true", ...(typeof command === "string" ? { command } : command) };
}

interface Options extends CommandHooksOptions {
  readonly calls?: Parameters<typeof batch>[0];
  readonly tools?: readonly ReturnType<typeof shell>[];
}

/** An agent that calls `Bash` once. */
function hooked(
  settings: CommandSettings,
  { calls = [command("a", "ls")], tools = [shell()], ...options }: Options = {},
): Batch {
  return batch(calls, { tools, use: [command_hooks(settings, options)] });
}

async function ran(settings: CommandSettings, options?: Options): Promise<Outcome> {
  return await hooked(settings, options).run().outcome;
}

/** Whether a process runs. */
async function lives(pid: number): Promise<boolean> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "stat=", "-p", String(pid)] }).output();
  return /^[^Z]/.test(new TextDecoder().decode(stdout).trim());
}

/** Whether the process runs whose id is in a file. Without the file, it was killed before it could write. */
async function runs(file: string): Promise<boolean> {
  const pid = await Deno.readTextFile(file).catch(() => "");
  return pid !== "" && await lives(Number(pid));
}

/** Whether that process ends soon. It would not end by itself within this time. */
async function ends(file: string): Promise<boolean> {
  for (let look = 0; look < 2_000; look++) {
    if (!await runs(file)) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

/** Waits until `holds` returns true. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!await holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

Deno.test("a command receives the event on its standard input, and the project in its environment", async () => {
  await using disk = await folder();
  const cwd = `${Deno.cwd()}/${disk.path}`;
  const settings = on(
    "PreToolUse",
    'cat > "$CLAUDE_PROJECT_DIR/told.json"; pwd > where; echo "$QODER_PROJECT_DIR $MOOD" > env',
  );
  const { result } = await ran(settings, { cwd, env: { MOOD: "good" } });
  assertEquals(JSON.parse(await Deno.readTextFile(`${disk.path}/told.json`)), {
    session_id: result.session,
    transcript_path: "",
    cwd,
    prompt_id: result.run,
    model: "scripted",
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command: "ls" },
    tool_use_id: "a",
  });
  assertEquals((await Deno.readTextFile(`${disk.path}/where`)).trim(), cwd);
  assertEquals((await Deno.readTextFile(`${disk.path}/env`)).trim(), `${cwd} good`);
});

Deno.test("exit code 2 blocks with the standard error as the reason; any other code does not block", async () => {
  const outcome = async (command: string) => {
    const { lines, events } = await ran(on("PreToolUse", command));
    return [lines[1], warnings(events)];
  };
  assertEquals(await outcome("echo Not here. >&2; exit 2"), ["denied Not here.", []]);
  assertEquals(await outcome("exit 2"), ["denied Blocked by a hook.", []]);
  assertEquals(await outcome("echo Not here. >&2; exit 1"), ["ok ran ls", ["A hook of PreToolUse failed."]]);
  assertEquals(await outcome("nothing_of_that_name"), ["ok ran ls", ["A hook of PreToolUse failed."]]);
  assertEquals(await outcome("exit 0"), ["ok ran ls", []]);
  assertEquals(await outcome("echo plain"), ["ok ran ls", []]);
});

const allow =
  `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Why not"}}`;
const deny = allow.replace('"allow"', '"deny"');

Deno.test("Qoder: JSON decides with any exit code except 2, which blocks with the reason in the JSON", async () => {
  const outcome = async (text: string, code: number) => {
    const { lines, result, events } = await ran(on("PreToolUse", `echo '${text}'; exit ${code}`), {
      tools: [shell({ ask: true })],
    });
    return [lines[1] ?? result.status, warnings(events).length];
  };
  assertEquals(await outcome(allow, 0), ["ok ran ls", 0]);
  assertEquals(await outcome(deny, 0), ["denied Why not", 0]);
  assertEquals(await outcome(deny, 1), ["denied Why not", 0]);
  assertEquals(await outcome(allow, 2), ["denied Why not", 0]);
  assertEquals(await outcome('{"decision":"block","reason":"No."}', 0), ["denied No.", 0]);
  assertEquals(await outcome("{broken}", 0), ["paused", 1]);
  assertEquals(await outcome("{broken}", 2), ["denied Blocked by a hook.", 0]);
});

Deno.test("exit code 2 blocks with the reason of a block in the JSON, or the standard error, and other fields count", async () => {
  const printing = (specific: object, more: object = {}) =>
    JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...specific }, ...more });
  const outcome = async (json: string) => {
    const { lines, events } = await ran(on("PreToolUse", `echo '${json}'; echo Written. >&2; exit 2`));
    return [...lines.slice(1, -1), ...notices(events), ...warnings(events)];
  };
  const allowed = printing({
    permissionDecision: "allow",
    permissionDecisionReason: "Fine.",
    additionalContext: "Beside.",
  });
  assertEquals(await outcome(allowed), ["denied Written.", "context Beside."]);
  assertEquals(await outcome(printing({ permissionDecision: "deny", permissionDecisionReason: "Said." })), [
    "denied Said.",
  ]);
  assertEquals(await outcome('{"decision":"block","reason":"Said."}'), ["denied Said."]);
  assertEquals(await outcome('{"systemMessage":"For the person"}'), ["denied Written.", "For the person"]);
  const started = await ran(on("SessionStart", `echo '{"systemMessage":"Said."}'; echo Written. >&2; exit 2`));
  assertEquals(notices(started.events), ["Said.\nWritten."]);
});

Deno.test("Qoder: JSON is found among other lines at events without plain text", async () => {
  const block = `{"decision":"block",\n"reason":"No."}`;
  const outcome = async (text: string, event = "PreToolUse") => {
    const { lines, events } = await ran(on(event, `printf '${text}'`));
    return [...lines.slice(0, 2), ...warnings(events)];
  };
  const denied = ["call Bash", "denied No."];
  const passed = ["call Bash", "ok ran ls"];
  assertEquals(await outcome(`shell ready\n${block}\nbye\n`), denied);
  assertEquals(await outcome(`\\xef\\xbb\\xbf${block.replaceAll("\n", "\r\n")}\r\n`), denied);
  assertEquals(await outcome("checked\n{ nothing }\n"), passed);
  assertEquals(await outcome("[1]"), passed);
  assertEquals(await outcome(`{}\n${block}`), denied);
  assertEquals(await outcome(`{}\n{"decision":"approve"}`), [...passed, "A hook of PreToolUse failed."]);
  assertEquals(await outcome(`On main\n{}`, "UserPromptSubmit"), ["prompt On main\n{}", "call Bash"]);
});

Deno.test("output may be invalid UTF-8", async () => {
  const { lines } = await ran(on("PreToolUse", "printf 'n\\377o' >&2; exit 2"));
  assertEquals(lines[1], "denied n\ufffdo");
});

Deno.test("Qoder: exit code 2 has a different effect at each event", async () => {
  const no = "echo Because. >&2; exit 2";
  const prompt = await ran(on("UserPromptSubmit", no));
  assertEquals([prompt.result.status, prompt.result.reason, prompt.result.messages], ["cancelled", "Because.", []]);
  assertEquals((await ran(on("PermissionRequest", no), { tools: [shell({ ask: true })] })).lines[1], "denied Because.");
  assertEquals((await ran(on("PostToolUse", no))).lines.slice(1), ["ok ran ls", "context Because.", "assistant Done."]);
  const tools = [shell({ execute: () => Promise.reject(new ToolError("It failed.")) })];
  assertEquals((await ran(on("PostToolUseFailure", no), { tools })).lines.slice(1, -1), [
    "error It failed.",
    "context Because.",
  ]);
  const once = "grep -q '\"stop_hook_active\":true' || { echo Go on. >&2; exit 2; }";
  const agent = hooked(on("Stop", once));
  const { result, events } = await agent.run().outcome;
  assertEquals([result.status, warnings(events)], ["failed", []]); // the script has no second answer
  assertEquals(lines(agent.model.requests[2]?.messages ?? []).at(-1), "stop Go on.");
  for (const event of ["SessionStart", "SessionEnd"]) {
    const { result, events } = await ran(on(event, no));
    assertEquals([result.status, notices(events)], ["done", ["Because."]]);
  }
});

Deno.test("plain text is context at UserPromptSubmit and SessionStart, and nothing elsewhere", async () => {
  const reported = async (event: string) => (await ran(on(event, "echo Word."))).result.messages;
  assertEquals(lines(await reported("SessionStart")).slice(0, 2), ["session Word.", "user Hi"]);
  assertEquals(lines(await reported("UserPromptSubmit")).slice(0, 2), ["user Hi", "prompt Word."]);
  assertEquals(JSON.stringify(await reported("PostToolUse")).includes("Word."), false);
});

Deno.test("a late command is killed with its children, and has no opinion", async () => {
  await using disk = await folder();
  const slow = "sleep 100 & echo $! > child; echo $$ > own; sleep 100; exit 2";
  const { lines, events, errors } = await ran(on("PreToolUse", { command: slow, timeout: 0.3 }), { cwd: disk.path });
  assertEquals([lines[1], warnings(events)], ["ok ran ls", ["A hook of PreToolUse failed."]]);
  assertEquals(errors.map(String), ["TimeoutError: Not done after 300 ms"]);
  for (const file of ["own", "child"]) assertEquals(await ends(`${disk.path}/${file}`), true);
});

Deno.test("a late command is killed with children that have a group or a session of their own", async () => {
  await using disk = await folder();
  const starts = [
    "setsid sleep 100 & echo $! > session",
    "setsid bash -c 'sleep 100 & echo $! > below; echo $$ > above; wait' &",
    "set -m; sleep 100 & echo $! > group; set +m",
    "(setsid sleep 100 & echo $! > orphan; sleep 100)",
  ];
  const { lines } = await ran(on("PreToolUse", { command: starts.join("\n"), timeout: 0.5 }), { cwd: disk.path });
  assertEquals(lines[1], "ok ran ls");
  for (const file of ["session", "below", "above", "group", "orphan"]) {
    assertEquals(await Deno.stat(`${disk.path}/${file}`).then(() => true), true, `${file} was started`);
    assertEquals(await ends(`${disk.path}/${file}`), true, `${file} was killed`);
  }
});

Deno.test("Claude, Qoder: stopping a run kills its commands with their children", async () => {
  await using disk = await folder();
  const running = hooked(on("PreToolUse", "sleep 100 & echo $! > child; echo $$ > own; sleep 100"), { cwd: disk.path })
    .run();
  const written = async () => (await Deno.readTextFile(`${disk.path}/own`).catch(() => "")) !== "";
  await until(written);
  running.stop();
  assertEquals((await running.outcome).result.status, "aborted");
  for (const file of ["own", "child"]) assertEquals(await ends(`${disk.path}/${file}`), true);
});

Deno.test("a stopped run starts no further command", async () => {
  await using disk = await folder();
  const hooks = [hookOf("echo $$ > own; sleep 100"), hookOf("echo $$ > after; sleep 100")];
  const running = hooked({ hooks: { PreToolUse: [{ sequential: true, hooks }] } }, { cwd: disk.path }).run();
  await until(async () => (await Deno.readTextFile(`${disk.path}/own`).catch(() => "")) !== "");
  running.stop();
  assertEquals((await running.outcome).result.status, "aborted");
  assertEquals(await ends(`${disk.path}/own`), true);
  assertEquals(await runs(`${disk.path}/after`), false);
});

Deno.test("a run does not wait for processes that a command leaves behind", async () => {
  await using disk = await folder();
  const { lines } = await ran(on("PreToolUse", "sleep 100 & echo $! > child; exit 2"), { cwd: disk.path });
  assertEquals([lines[1], await runs(`${disk.path}/child`)], ["denied Blocked by a hook.", true]);
  Deno.kill(Number(await Deno.readTextFile(`${disk.path}/child`)), "SIGKILL");
});

Deno.test("a command may ignore a large input and write a large output", async () => {
  const calls = [command("a", "x".repeat(2_000_000))];
  assertEquals((await ran(on("PreToolUse", "exec 0<&-; echo No. >&2; exit 2"), { calls })).lines[1], "denied No.");
  const { lines } = await ran(on("PreToolUse", "head -c 5000000 /dev/zero | tr '\\0' x; echo No. >&2; exit 2"));
  assertEquals(lines[1], "denied No.");
});

Deno.test("the same command runs once per event, even if several matchers match", async () => {
  await using disk = await folder();
  const hooks = [hookOf("echo ran >> log")];
  const settings = { hooks: { PreToolUse: [{ matcher: "Bash", hooks }, { hooks }, { matcher: "Other", hooks }] } };
  await ran(settings, { cwd: disk.path });
  assertEquals(await Deno.readTextFile(`${disk.path}/log`), "ran\n");
});

Deno.test("Claude: if limits a command to calls, and to no other event", async () => {
  const only = { command: "exit 2", if: "Bash(git *)" };
  const calls = [command("a", "git push"), command("b", "ls"), command("c", "cd x && git push"), command("d", "git")];
  const { lines } = await ran(on("PreToolUse", only), { calls });
  assertEquals(lines.slice(1, -1).map((line) => line.split(" ")[0]), ["denied", "ok", "denied", "denied"]);
  assertEquals((await ran(on("UserPromptSubmit", only))).result.status, "done");
});

Deno.test("Claude: if matches a command inside another command", async () => {
  const only = { command: "exit 2", if: "Bash(git *)" };
  const hidden = [
    "A=1 git push",
    `A='b c' B="d e" git push`,
    "echo $(git push)",
    'echo "$(A=1 git push)"',
    "`git push`",
  ];
  const groups = ["(git push)", "ls && { git push; }", "if true; then ! git push; fi", "( cd x; git push )"];
  const others = ["echo git push", "A=git ls", "echo 'a (git push)'"];
  const calls = [...hidden, ...groups, ...others].map((text, at) => command(String(at), text));
  const { lines } = await ran(on("PreToolUse", only), { calls });
  const denied = [...hidden, ...groups].map(() => "denied");
  assertEquals(lines.slice(1, -1).map((line) => line.split(" ")[0]), [...denied, ...others.map(() => "ok")]);
});

Deno.test("Claude: if looks into substitutions for the command that it names", async () => {
  const outcome = async (condition: string, ...commands: readonly string[]) => {
    const calls = commands.map((text, at) => command(String(at), text));
    const { lines } = await ran(on("PreToolUse", { command: "exit 2", if: condition }), { calls });
    return lines.slice(1, -1).map((line) => line.split(" ")[0]);
  };
  const runs = [
    "echo $(rm -rf x)",
    "echo `rm x`",
    'echo "$(ls $(rm x))"',
    "r''m x",
    "rm\tx",
    "cat <(rm x)",
    "echo $(open",
    "$(cat x) y",
  ];
  const others = ["echo $(date)", "echo `date`", "echo $(echo rm)", "echo '$(rm x)'", "cat <(ls)"];
  const denied = [...runs.map(() => "denied"), ...others.map(() => "ok")];
  for (const condition of ["Bash(rm *)", "Bash(rm:*)"]) {
    assertEquals(await outcome(condition, ...runs, ...others), denied);
  }
  assertEquals(await outcome("Bash(rm)", "rm", "echo $(rm)", "rm x", "echo $(date)"), ["denied", "denied", "ok", "ok"]);
  assertEquals(await outcome("Bash(git push *)", "echo $(date)", "git $X", "echo $HOME", "git log"), [
    "denied", // more than the name of a program is not compared with a command that only a shell can evaluate
    "denied",
    "denied",
    "ok",
  ]);
});

Deno.test("a command with args runs without a shell", async () => {
  const { lines } = await ran(on("UserPromptSubmit", { command: "printf", args: ["%s", "$HOME; a b"] }));
  assertEquals(lines[0], "prompt $HOME; a b");
});

Deno.test("a command with args may contain the variables of the project and the plugin", async () => {
  await using disk = await folder();
  await Deno.writeTextFile(`${disk.path}/hook.sh`, '#!/usr/bin/env -S bash -e\necho "$1 $2"\n', { mode: 0o755 });
  const cwd = await Deno.realPath(disk.path);
  const hook = { command: "${CLAUDE_PROJECT_DIR}/hook.sh", args: ["${CLAUDE_PLUGIN_ROOT}/a b", "${HOME}"] };
  const { lines } = await ran(on("UserPromptSubmit", hook), { cwd, env: { CLAUDE_PLUGIN_ROOT: "/plugin" } });
  assertEquals(lines[0], "prompt /plugin/a b ${HOME}");
});

Deno.test("a command that cannot start is a failure, and onError receives its name", async () => {
  await using disk = await folder();
  await Deno.writeTextFile(`${disk.path}/hook.sh`, "exit 2\n", { mode: 0o644 });
  for (const hook of ["./hook.sh", { command: "./hook.sh", args: [] }, { command: "./none.sh", args: [] }]) {
    const { lines, events, errors } = await ran(on("PreToolUse", hook), { cwd: disk.path });
    assertEquals([lines[1], warnings(events)], ["ok ran ls", ["A hook of PreToolUse failed."]]);
    assertEquals(errors.map((error) => /(hook|none)\.sh/.test(String(error))), [true]);
  }
});

const later = (event: string) =>
  `{"systemMessage":"For the person","hookSpecificOutput":{"hookEventName":"${event}","additionalContext":"For the model"}}`;

for (
  const [how, hook] of [
    ["is asynchronous", { command: `echo '${later("PreToolUse")}'`, async: true }],
    ["prints async first", { command: `echo '{"async":true}'; sleep 0.05; echo '${later("PreToolUse")}'` }],
  ] as const
) {
  Deno.test(`Claude, Qoder: a command that ${how} runs in the background, and its context is kept in the transcript`, async () => {
    const done = Promise.withResolvers<void>();
    const tools = [shell({ execute: () => done.promise.then(() => "ran") })];
    const handle = batch([command("a")], {
      tools,
      use: [command_hooks(on("PreToolUse", hook))],
      observe: (event: Event) => event.type === "notice" && done.resolve(),
    });
    const { events, result } = await handle.run().outcome;
    assertEquals(notices(events), ["For the person"]);
    assertEquals(lines(result.messages).slice(1), ["call Bash", "ok ran", "turn For the model", "assistant Done."]);
    const received = lines(handle.model.requests[1]?.messages ?? []).slice(2);
    assertEquals(received, ["ok ran", "turn For the model"]);
  });
}

Deno.test("Claude, Qoder: the exit code of an asynchronous command does not block", async () => {
  const { lines, events } = await ran(on("PreToolUse", { command: "echo No. >&2; exit 2", async: true }));
  assertEquals([lines, warnings(events)], [["call Bash", "ok ran ls", "assistant Done."], []]);
});

Deno.test("Claude: asyncRewake adds the reason of exit code 2 to the next request", async () => {
  const once = { command: "echo Tests fail. >&2; exit 2", asyncRewake: true, if: "Bash(first)" };
  const contexts: string[][] = [];
  const model: Model = {
    id: "model",
    async *stream({ messages }) {
      contexts.push(lines(messages).filter((line) => line.startsWith("turn ")));
      if (contexts.at(-1)?.length) return yield [{ type: "finish", reason: "stop" }];
      const id = `${contexts.length}`;
      const input = { command: id === "1" ? "first" : "again" };
      yield [{ type: "call.start", id, name: "Bash" }, { type: "call.end", id, input }, {
        type: "finish",
        reason: "calls",
      }];
    },
  };
  const tools = [shell({ execute: () => new Promise((resolve) => setTimeout(() => resolve("ran"), 10)) })];
  const use = [command_hooks(on("PostToolUse", once))];
  const limits = { turns: Infinity, calls: Infinity };
  assertEquals((await agent({ model, tools, use, limits }).run("Hi").result).status, "done");
  assertEquals(contexts.at(-1), ["turn Tests fail."]);
});

Deno.test("an asynchronous command is killed after the grace period of the run", async () => {
  await using disk = await folder();
  const start = performance.now();
  const { result } = await ran(on("Stop", { command: "echo $$ > own; sleep 100", async: true }), { cwd: disk.path });
  const took = performance.now() - start;
  assertEquals([result.status, took > 900 && took < 60_000], ["done", true]);
  assertEquals(await ends(`${disk.path}/own`), true);
});

Deno.test("a command with onFailure block blocks when it fails", async () => {
  for (const command of ["exit 1", "nothing_of_that_name", "echo '{broken}'"]) {
    const { lines } = await ran(on("PreToolUse", { command, onFailure: "block" }));
    assertEquals(lines[1], "denied A hook failed.");
  }
});

Deno.test("Qoder: sequential commands receive the updated input of the commands before them", async () => {
  const change = (to: string) =>
    `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"${to}"}}}'`;
  const settings = {
    hooks: { PreToolUse: [{ sequential: true, hooks: [hookOf(change("pwd")), hookOf("grep -q pwd && exit 2")] }] },
  };
  assertEquals((await ran(settings)).lines[1], "denied Blocked by a hook.");
});

Deno.test("a warning reports hooks that never run, and the other hooks of the file run", async () => {
  const settings: unknown = {
    hooks: {
      PreToolUse: [
        {
          matcher: null,
          hooks: [{ type: "telepathy" }, { type: "command", command: "exit 2", timeout: null }],
        },
      ],
      TaskCompleted: [{ hooks: [hookOf("exit 2")] }],
      preToolUse: [{ type: "command", bash: "./hook.sh", timeoutSec: 30 }],
      Anything: [],
      PostToolUse: [{ matcher: "Bash(", hooks: [hookOf("exit 2")] }],
      PermissionRequest: [{ matcher: "Bash(rm *)", hooks: [hookOf("exit 2")] }],
    },
  };
  const { lines, events } = await ran(settings as CommandSettings); // as `JSON.parse` returns it
  assertEquals(lines[1], "denied Blocked by a hook.");
  assertEquals(warnings(events), [
    'Hooks of PreToolUse with the type "telepathy" never run: it is unknown. What they would block is not blocked.',
    "Hooks of TaskCompleted never run: the event does not occur here.",
    "Hooks of preToolUse never run: unknown event; did you mean PreToolUse?",
    "Hooks of Anything never run: unknown event.",
    'Hooks of PostToolUse with the matcher "Bash(" never run: it is an invalid regular expression.',
    'Hooks of PermissionRequest with the matcher "Bash(rm *)" never run: it matches no tool; expected its name, or a regular expression for names. What they would block is not blocked.',
  ]);
});

Deno.test("a command whose directory does not exist is refused at construction", async () => {
  await using disk = await folder();
  const cwd = `${disk.path}/none`;
  const error = (event: string, at = cwd) =>
    `Cannot use the hooks of ${event}: the directory "${at}" does not exist; expected one in which commands can run`;
  for (const dialect of ["qoder", "qodercli", "claude"] as const) {
    const make = () => command_hooks(on("PreToolUse", "exit 2"), { cwd, dialect });
    assertThrows(make, TypeError, error("PreToolUse"));
  }
  const copilot = (options: CommandHooksOptions, entry = {}) => () =>
    command_hooks({ hooks: { preToolUse: [{ type: "command", bash: "exit 2", ...entry } as never] } }, {
      ...options,
      dialect: "copilot",
    });
  assertThrows(copilot({ cwd }), TypeError, error("preToolUse", `${cwd}/.`));
  assertThrows(copilot({ cwd: disk.path }, { cwd: "none" }), TypeError, error("preToolUse"));
  await Deno.writeTextFile(`${disk.path}/file`, "");
  for (const name of ["file", "file/sub", "a".repeat(300), "a\0b"]) {
    const at = `${disk.path}/${name}`;
    assertThrows(() => command_hooks(on("PreToolUse", "exit 2"), { cwd: at }), TypeError, error("PreToolUse", at));
    assertThrows(copilot({ cwd: disk.path }, { cwd: name }), TypeError, error("preToolUse", at));
  }
  copilot({ cwd: disk.path })();
  command_hooks(on("PreToolUse", "exit 2"), { cwd: disk.path });
});

Deno.test("options of http handlers that would allow more addresses than they say are refused", () => {
  const subject = "Cannot create command_hooks(): `http`";
  const cases: readonly (readonly [unknown, string])[] = [
    [{ allowed: [] }, 'there is no option "allowed"; expected one of allow, privateAddresses, fetch'],
    [{ allow: null }, "`allow` is null; expected a list of addresses"],
    [{ allow: "https://a.example/*" }, "`allow` is https://a.example/*; expected a list of addresses"],
    [{ privateAddresses: "false" }, "`privateAddresses` is false; expected true or false"],
  ];
  for (const [http, error] of cases) {
    const create = () => command_hooks({}, { http: http as never }); // as it comes from a file
    assertThrows(create, TypeError, `${subject}: ${error}`);
  }
});

Deno.test("a handler that cannot run here is refused at construction", () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ type: "prompt", prompt: "Is it done?" }, 'a handler of type "prompt" needs the option `model`'],
    [{ type: "agent", prompt: "Is it?" }, 'a handler of type "agent" needs the option `agent`'],
    [{ type: "mcp_tool", server: "db", tool: "check" }, 'a handler of type "mcp_tool" needs the option `mcp.db`'],
    [{ type: "http", url: "http://localhost/hook" }, 'expected a public address, got "http://localhost/hook"'],
    [{ type: "http", url: "http://169.254.169.254/" }, 'expected a public address, got "http://169.254.169.254/"'],
    [
      { type: "http", url: "https://[::ffff:10.0.0.1]/" },
      'expected a public address, got "https://[::ffff:10.0.0.1]/"',
    ],
    [
      { type: "http", url: "https://other.example/" },
      'expected an address in the allow-list, got "https://other.example/"',
    ],
    [{ type: "http", url: "file:///etc/passwd" }, 'expected a URL with http:// or https://, got "file:///etc/passwd"'],
    [{ type: "telepathy", onFailure: "block" }, 'unknown type "telepathy" of handler, which has `onFailure: "block"`'],
  ];
  for (const [handler, why] of cases) {
    const settings = { hooks: { PreToolUse: [{ hooks: [handler as CommandHook] }] } }; // as `JSON.parse` returns it
    const http = why.includes("allow-list") ? { allow: ["https://hooks.example/*"] } : {};
    const make = () => command_hooks(settings, { http });
    assertThrows(make, TypeError, `Cannot use the hooks of PreToolUse: ${why}`);
  }
});

Deno.test("a command may be in place of its matcher", async () => {
  const flat: unknown = {
    hooks: { PreToolUse: [{ command: "exit 2", matcher: "Bash" }, { type: "command", command: "true" }] },
  };
  assertEquals((await ran(flat as CommandSettings)).lines[1], "denied Blocked by a hook."); // as `JSON.parse` returns it
  const calls = [command("a", "ls", "Other")];
  const tools = [shell({ name: "Other" })];
  assertEquals((await ran(flat as CommandSettings, { calls, tools, dialect: "claude" })).lines[1], "ok ran ls");
});

Deno.test("several files are joined, and one may disable all hooks", async () => {
  const change = (to: string) =>
    `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"${to}"}}}'`;
  const files = [
    on("PreToolUse", change("one")),
    {},
    on("PreToolUse", change("two")),
    on("SessionStart", "echo Word."),
  ];
  const outcomeWith = async (settings: readonly CommandSettings[]) =>
    (await batch([command("a", "ls")], { tools: [shell()], use: [command_hooks(settings)] }).run().outcome).result
      .messages;
  assertEquals(lines(await outcomeWith(files)).slice(0, 4), ["session Word.", "user Hi", "call Bash", "ok ran two"]);
  assertEquals(lines(await outcomeWith([...files, { disableAllHooks: true }])).slice(0, 3), [
    "user Hi",
    "call Bash",
    "ok ran ls",
  ]);
});

Deno.test("invalid settings are refused, and disabled settings do nothing", async () => {
  const wrong = on("PreToolUse", { command: ["exit", "2"] as never });
  assertThrows(() => command_hooks(wrong), TypeError, "Cannot use the hooks of PreToolUse");
  assertThrows(() => command_hooks({ hooks: { Stop: [{} as never] } }), TypeError, "Cannot use the hooks of Stop");
  assertThrows(() => command_hooks({}, { dialect: "other" as never }), TypeError, 'Cannot use hooks of "other"');
  for (const file of [null, "{}", { hooks: [] }, [{}, 1]]) {
    assertThrows(() => command_hooks(file as never), TypeError, "Cannot use settings: ");
  }
  for (const event of ["PreToolUse", "preToolUse"]) {
    const inner = on(event, "exit 2").hooks as CommandSettings; // what the file has under `hooks`
    const error = `Cannot use settings: "${event}" is not in \`hooks\`; expected { hooks: { "${event}": [...] } }`;
    for (const dialect of ["qoder", "claude", "copilot"] as const) {
      assertThrows(() => command_hooks(inner, { dialect }), TypeError, error);
    }
  }
  for (const name of ["Hooks", "HOOKS", "hook"]) {
    const file = { [name]: on("PreToolUse", "exit 2").hooks };
    assertThrows(
      () => command_hooks(file),
      TypeError,
      `Cannot use settings: there is no field "${name}"; expected "hooks"`,
    );
  }
  const beside = { hooks: {}, userPromptSubmitted: [{ bash: "exit 2" }] };
  const expected = 'Cannot use settings: "userPromptSubmitted" is not in `hooks`';
  assertThrows(() => command_hooks(beside, { dialect: "copilot" }), TypeError, expected);
  command_hooks({ notification: "off", hook: "off", hooks: {} } as CommandSettings); // other settings of the file
  assertEquals((await ran({ ...on("PreToolUse", "exit 2"), disableAllHooks: true })).lines[1], "ok ran ls");
  const more = {
    $schema: "x",
    permissions: {},
    ...on("PreToolUse", { command: "exit 2", statusMessage: "…" } as never),
  };
  assertEquals((await ran(more)).lines[1], "denied Blocked by a hook.");
  await settled();
});
