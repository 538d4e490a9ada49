import { classic } from "@jizai/jizai/middleware/mods/classic";
import { assertEquals } from "@std/assert";
import { shell } from "../../support/hooked.ts";
import { hook, type Loose, ran, reports, throwing } from "../../support/modded.ts";

Deno.test("classic.PreToolUse denies, asks, allows and changes the arguments", async () => {
  const answering = (answer: object, tools = [shell()]) =>
    ran([hook("classic.PreToolUse", () => answer)], { classic, tools });
  assertEquals((await answering({ deny: "No." })).lines[1], "denied No.");
  assertEquals((await answering({ deny: true })).lines[1], "denied A mod denied it.");
  assertEquals((await answering({ ask: "Really?" })).result.questions[0]?.questions, ["Really?"]);
  assertEquals((await answering({ allow: true }, [shell({ ask: true })])).lines[1], "ok ran ls");
  assertEquals((await answering({})).lines[1], "ok ran ls");
  assertEquals((await answering({ updatedInput: { command: "pwd" } })).lines[1], "ok ran pwd");
});

Deno.test("classic.PreToolUse runs inside tool.call, with its fields", async () => {
  const seen: Loose[] = [];
  const outer = hook("tool.call", async (_$, e, next) => {
    seen.push("tool.call");
    const result = await next({ ...e, command: "pwd" });
    seen.push(result.text);
    return result;
  }, { name: "outer" });
  const inner = hook("classic.PreToolUse", (_$, e, next) => {
    seen.push(e);
    return next(e);
  }, { name: "inner" });
  await ran([inner, outer], { classic });
  assertEquals(seen, ["tool.call", { command: "pwd", tool: "Bash", tool_use_id: "a" }, "ran pwd"]);
});

Deno.test("classic.PostToolUse replaces the output and adds context", async () => {
  const seen: Loose[] = [];
  const { lines } = await ran([
    hook("classic.PostToolUse", (_$, e) => {
      seen.push([e.tool_name, e.tool_input, e.tool_response, e.hook_event_name, e.cwd]);
      return { updatedToolOutput: "masked", additionalContext: ["Noted."] };
    }),
  ], { classic });
  assertEquals(seen, [["Bash", { command: "ls" }, "ran ls", "PostToolUse", "/"]]);
  assertEquals(lines.slice(1, 3), ["ok masked", "context Noted."]);
});

Deno.test("classic.UserPromptSubmit blocks, and adds context after the hooks of prompt.submit", async () => {
  const blocked = await ran([hook("classic.UserPromptSubmit", () => ({ block: "Not today." }))], { classic });
  assertEquals([blocked.result.status, blocked.result.reason], ["cancelled", "Not today."]);
  const seen: string[] = [];
  const rewriting = hook("prompt.submit", (_$, e, next) => next({ ...e, text: "Changed" }), { name: "rewriting" });
  const adding = hook("classic.UserPromptSubmit", (_$, e) => {
    seen.push(e.prompt);
    return { additionalContext: ["More."] };
  });
  const { result } = await ran([adding, rewriting], { classic, calls: [] });
  assertEquals([seen, (result.messages[1] as Loose).parts[0].text], [["Changed"], "More."]);
});

Deno.test("classic.Stop continues with its reason, and preventContinuation ends the run", async () => {
  const seen: Loose[] = [];
  const stopping = hook("classic.Stop", (_$, e) => {
    seen.push([e.stop_hook_active, e.last_assistant_message]);
    return e.stop_hook_active ? {} : { block: "Go on." };
  });
  const outcome = await ran([stopping], { classic });
  assertEquals([seen[0], reports(outcome).length > 0], [[false, "Done."], true]); // the script has no further answer
  const ended = await ran([hook("classic.PostToolUse", () => ({ preventContinuation: true, stopReason: "Enough." }))], {
    classic,
  });
  assertEquals([ended.result.status, ended.result.reason], ["cancelled", "Enough."]);
});

Deno.test("classic.SessionStart adds context, and SessionEnd observes", async () => {
  const seen: Loose[] = [];
  const { result } = await ran([
    hook("classic.*", (_$, e) => {
      seen.push([e.hook_event_name, e.source ?? e.reason]);
      return e.hook_event_name === "SessionStart" ? { additionalContext: "Hello." } : {};
    }),
  ], { classic, calls: [] });
  assertEquals((result.messages[0] as Loose).parts[0].text, "Hello.");
  assertEquals([seen[0], seen.at(-1)], [["SessionStart", "startup"], ["SessionEnd", "other"]]);
});

Deno.test("with failure: closed, a failed hook of classic.PreToolUse denies", async () => {
  const { lines } = await ran([hook("classic.PreToolUse", throwing())], { classic, failure: "closed" });
  assertEquals(lines[1], 'denied The mod "guard" failed at classic.PreToolUse.');
});
