import { assertEquals, assertThrows } from "@std/assert";
import { command_hooks, type CommandSettings } from "@jizai/jizai/middleware/command_hooks";
import { batch, type Outcome } from "../support/batch.ts";
import { command, shell, warnings } from "../support/hooked.ts";
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
      { type: "http", url: "http://localhost" },
    ],
    sessionStart: [bash("true", { matcher: "no tool" })],
    PreToolUse: [{ type: "command", command: "exit 2" }],
    notification: [bash("true")],
  });
  assertEquals(lines[1], "ok ran rm -rf dist");
  assertEquals(warnings(events), [
    'Hooks of preToolUse with the matcher "(" never run: it is an invalid regular expression. What they would block is not blocked.',
    ...["Bash(rm *)", "Bash, Edit"].map((matcher) =>
      `Hooks of preToolUse with the matcher "${matcher}" never run: it matches no tool; expected its name, or a regular expression for names. What they would block is not blocked.`
    ),
    'Hooks of preToolUse with the type "http" never run: expected the type "command". What they would block is not blocked.',
    'Hooks of PreToolUse never run: they are written for "claude". What they would block is not blocked.',
    "Hooks of notification never run: the event does not occur here.",
  ]);
  for (const wrong of [{}, { bash: 7 }, { bash: "true", timeoutSec: 0 }]) {
    const make = () => command_hooks(settings({ preToolUse: [wrong] }), { dialect: "copilot" });
    assertThrows(make, TypeError, "Cannot use the hooks of preToolUse");
  }
});
