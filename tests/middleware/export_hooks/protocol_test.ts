import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { allow, denied, isInterrupt, mapText, type Middleware, reply, text } from "@jizai/jizai";
import { export_hooks } from "@jizai/jizai/middleware/export_hooks";
import { inject } from "@jizai/jizai/middleware/inject";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { settled } from "../../support/batch.ts";

/** Sends messages one after another. */
function asking(...use: readonly Middleware[]) {
  const errors: unknown[] = [];
  const { rpc } = export_hooks(use, { name: "gate", onError: (error) => errors.push(error) });
  let id = 0;
  return {
    errors,
    rpc,
    async ask(method: string, params: object = {}, meta: object = {}): Promise<unknown> {
      const reported = { meta: { AgentID: "a", TurnID: "t", SessionKey: "s", Iteration: 1, ...meta }, ...params };
      const answer = await rpc({ jsonrpc: "2.0", id: ++id, method: `hook.${method}`, params: reported });
      return answer?.error ?? answer?.result;
    },
  };
}

const bash = (command: string) => ({ tool: "bash", arguments: { command } });

/** A middleware that logs calls on the way in and out. */
function watching(log: string[]): Middleware {
  return {
    name: "watching",
    async tool({ input }, next) {
      const json = JSON.stringify(input);
      log.push(`in ${json}`);
      try {
        const result = await next();
        log.push(`out ${json} ${result.status}`);
        return mapText(result, (text) => `${json} ${text}`);
      } catch (error) {
        log.push(`${isInterrupt(error) ? "left" : "failed"} ${json}`);
        throw error;
      }
    },
  };
}

const resultWith = (for_llm: string) => ({ result: { for_llm } });

Deno.test("Export: a hook process answers hook.hello and requests, and nothing else", async () => {
  const { rpc, ask } = asking(permissions({ deny: ["rm"] }));
  assertEquals(await ask("hello", { name: "x", version: 1, modes: ["tool"] }), { ok: true, name: "gate" });
  assertEquals(await ask("before_lunch"), { code: -32601, message: "Unknown method: hook.before_lunch" });
  for (
    const message of [undefined, null, 7, "x", [], {}, { id: 1 }, { method: "hook.hello" }, {
      id: "1",
      method: "hook.hello",
    }]
  ) {
    assertEquals(await rpc(message), undefined);
  }
  assertEquals(await rpc({ method: "hook.event", params: { Kind: 8 } }), undefined);
});

Deno.test("Export: middleware without a supported point is refused", () => {
  assertThrows(
    () => export_hooks(inject("x")),
    TypeError,
    "Cannot export middleware: expected a hook at one of session",
  );
  assertThrows(() => export_hooks([]), TypeError, "Cannot export");
});

Deno.test("Export: decisions are written in the words of the protocol", async () => {
  const one = (tool: Middleware["tool"]) =>
    asking({ name: "one", ...(tool && { tool }) }).ask("before_tool", bash("ls"));
  assertEquals(await one((_, next) => next()), { action: "continue" });
  assertEquals(await one((_, next) => next({ input: { command: "pwd" }, name: "sh" })), {
    action: "modify",
    call: { tool: "sh", arguments: { command: "pwd" } },
  });
  assertEquals(await one(() => Promise.resolve(denied("no"))), { action: "deny_tool", reason: "no" });
  assertEquals(await one(() => Promise.resolve({ ...text("yes"), person: "Here.", context: ["mind"] })), {
    action: "respond",
    result: {
      ...{ for_llm: "yes\n\nmind", for_user: "Here.", silent: false, is_error: false, async: false },
      ...{ media: [], artifact_tags: [], response_handled: false },
    },
  });
  assertEquals(await one((ctx) => Promise.reject(ctx.run.end("enough"))), { action: "abort_turn", reason: "enough" });
  assertEquals(await one((ctx) => Promise.reject(ctx.run.end("enough", { rollback: true }))), {
    action: "hard_abort",
    reason: "enough",
  });
  assertEquals(await one((ctx) => Promise.reject(ctx.run.pause("Sure?"))), { action: "deny_tool", reason: "Sure?" });
});

Deno.test("Export: a run that a hook ends while a call passes ends with the next answer", async () => {
  const { ask } = asking({
    name: "ends",
    async tool({ run }, next) {
      run.end("enough", { as: "failed" });
      return await next();
    },
  });
  assertEquals(await ask("before_tool", bash("ls")), { action: "abort_turn", reason: "enough" });
});

Deno.test("Export: a failing hook answers with an error, and only onError receives the reason", async () => {
  const { ask, errors } = asking({ name: "fails", tool: () => Promise.reject(new Error("secret")) });
  assertEquals(await ask("before_tool", bash("ls")), { code: -32000, message: "hook.before_tool failed" });
  assertEquals(await ask("before_tool", { tool: 7 }), { code: -32000, message: "hook.before_tool failed" });
  assertEquals(errors.map((error) => error instanceof Error && error.message === "secret"), [true, false]);
});

Deno.test("Export: after_tool continues the matching call, the first of equal ones", async () => {
  const log: string[] = [];
  const { ask } = asking(watching(log));
  const before = ["a", "b", "b"].map((command) => ask("before_tool", bash(command)));
  assertEquals(await Promise.all(before), Array(3).fill({ action: "continue" }));
  const resultAfter = async (command: string, for_llm: string) => {
    const answer = await ask("after_tool", { ...bash(command), ...resultWith(for_llm), duration: 5 });
    return (answer as { result?: { result?: { for_llm?: string } } }).result?.result?.for_llm; // a modification
  };
  assertEquals(await resultAfter("b", "1"), '{"command":"b"} 1');
  assertEquals(await resultAfter("a", "2"), '{"command":"a"} 2');
  assertEquals(await resultAfter("other", "3"), '{"command":"b"} 3'); // another client has changed its input since
  assertEquals(await resultAfter("late", "4"), '{"command":"late"} 4'); // a call that was never announced
  assertEquals(log, [
    ...['in {"command":"a"}', 'in {"command":"b"}', 'in {"command":"b"}'],
    ...['out {"command":"b"} ok', 'out {"command":"a"} ok', 'out {"command":"b"} ok'],
    ...['in {"command":"late"}', 'out {"command":"late"} ok'],
  ]);
});

Deno.test("Export: a call without after_tool is dropped at the next model request", async () => {
  const log: string[] = [];
  const { ask } = asking(watching(log));
  await ask("before_tool", bash("denied by another hook"));
  await ask("before_tool", bash("of another run"), { TurnID: "u" });
  await ask("before_llm", { model: "m", messages: [] }, { Iteration: 2 });
  await settled();
  assertEquals(log.slice(2), ['left {"command":"denied by another hook"}']);
});

Deno.test("Export: a hook at model continues at after_llm; an answer of its own replaces the response", async () => {
  const log: string[] = [];
  const loud: Middleware = {
    name: "loud",
    async model({ request }, next) {
      log.push(`asked ${request.model.id} ${request.messages.length}`);
      const response = await next({ request: { options: { ...request.options, maxTokens: 5 } } });
      log.push(`answered ${response.finish} ${response.usage.input}`);
      return mapText(response, (text) => text.toUpperCase());
    },
  };
  const { ask } = asking(loud);
  const request = { model: "m", messages: [{ role: "user", content: "hi" }], tools: [], options: { temperature: 0.5 } };
  assertEquals(await ask("before_llm", request), {
    action: "modify",
    request: { ...request, options: { temperature: 0.5, max_tokens: 5 } },
  });
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  const response = { content: "Hi!", finish_reason: "stop", usage };
  assertEquals(await ask("after_llm", { model: "m", response }), {
    action: "modify",
    response: { model: "m", response: { ...response, role: "assistant", content: "HI!" } },
  });
  assertEquals(log, ["asked m 1", "answered stop 3"]);
  const cache = asking({ name: "cache", model: () => Promise.resolve(reply("cached")) });
  assertEquals(await cache.ask("before_llm", request), { action: "continue" });
  const answer = await cache.ask("after_llm", { model: "m", response });
  assertEquals((answer as { response: { response: object } }).response.response, { // a modification
    ...{ role: "assistant", content: "cached", finish_reason: "stop" },
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  });
});

Deno.test("Export: guards answer approve_tool, and a question is a denial", async () => {
  const one = async (approval: Middleware["approval"]) =>
    await asking({ name: "one", ...(approval && { approval }) }).ask("approve_tool", bash("ls"));
  assertEquals(await one((_, next) => next()), { approved: true });
  assertEquals(await one(() => Promise.resolve(allow({ input: { command: "ls" } }))), { approved: true });
  assertEquals(await one(() => Promise.resolve({ type: "deny", reason: "no" })), { approved: false, reason: "no" });
  assertEquals(await one(() => Promise.resolve({ type: "ask", questions: ["Sure?", "Really?"] })), {
    approved: false,
    reason: "Sure?\nReally?",
  });
  assertEquals(await one(() => Promise.resolve(allow({ input: {} }))), {
    approved: false,
    reason: "It is only allowed with {}",
  });
  assertEquals(await one(() => Promise.reject(new Error("secret"))), { approved: false, reason: "A guard failed." });
  assertEquals(await one((ctx) => Promise.reject(ctx.run.pause("Sure?"))), { approved: false, reason: "Sure?" });
});

Deno.test("Export: a thousand runs are kept, and the oldest is forgotten", async () => {
  const log: string[] = [];
  const { ask } = asking(watching(log));
  for (let run = 0; run <= 1_000; run++) await ask("before_tool", bash(`${run}`), { TurnID: `${run}` });
  await settled();
  assertEquals(log.splice(0).at(-1), 'left {"command":"0"}');
  await ask("after_tool", { ...bash("0"), ...resultWith("") }, { TurnID: "0" });
  await ask("after_tool", { ...bash("9"), ...resultWith("") }, { TurnID: "9" });
  assertEquals(log, [
    ...['in {"command":"0"}', 'left {"command":"1"}', 'out {"command":"0"} ok'],
    'out {"command":"9"} ok',
  ]);
});

Deno.test("Export: a command ignores unknown events and refuses invalid input", async () => {
  const { command } = export_hooks(permissions({ deny: ["Bash"] }));
  for (const hook_event_name of ["PostToolUse", "SessionEnd", "Stop", "UserPromptSubmit", "SessionStart", "New"]) {
    assertEquals(await command({ hook_event_name, tool_response: "x" }), {});
  }
  assertEquals(await command({ hook_event_name: "PreToolUse", tool_name: "Read", tool_input: {} }), {});
  for (const input of [undefined, null, {}, "x", { hook_event_name: 7 }]) {
    await assertRejects(() => command(input), Error);
  }
});

Deno.test("Export: a command answers in the words of Claude", async () => {
  const outputOf = (hook: Omit<Middleware, "name">, event: object) =>
    export_hooks({ name: "one", ...hook }).command(event);
  const pre = { hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "1" };
  const decided = (permissionDecision: string, permissionDecisionReason: string, more = {}) => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason, ...more },
  });
  assertEquals(await outputOf({ tool: (_, next) => next({ input: { command: "pwd" } }) }, pre), {
    hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: { command: "pwd" } },
  });
  assertEquals(
    await outputOf({ approval: () => Promise.resolve({ type: "ask", questions: ["Sure?"] }) }, pre),
    decided("ask", "Sure?"),
  );
  assertEquals(
    await outputOf({
      tool: (_, next) => next({ input: { command: "pwd" } }),
      approval: () => Promise.resolve({ type: "ask", questions: ["Sure?"] }),
    }, pre),
    decided("ask", "Sure?", { updatedInput: { command: "pwd" } }),
  );
  assertEquals(await outputOf({ tool: (ctx) => Promise.reject(ctx.run.end("enough")) }, pre), {
    continue: false,
    stopReason: "enough",
  });
  const notice: Middleware["tool"] = (ctx, next) => {
    ctx.emit({ type: "notice", text: "Look." });
    return next();
  };
  assertEquals(await outputOf({ tool: notice }, pre), { systemMessage: "Look." });
  const request = { ...pre, hook_event_name: "PermissionRequest" };
  const decision = (decision: object) => ({ hookSpecificOutput: { hookEventName: "PermissionRequest", decision } });
  assertEquals(await outputOf({ approval: (_, next) => next() }, request), {});
  assertEquals(
    await outputOf({
      async approval(_, next) {
        await next();
        return allow();
      },
    }, request),
    decision({ behavior: "allow" }),
  );
  assertEquals(
    await outputOf({ approval: () => Promise.resolve({ type: "deny", reason: "no" }) }, request),
    decision({ behavior: "deny", message: "no" }),
  );
  const post = { ...pre, hook_event_name: "PostToolUse", tool_response: [{ type: "text", text: "out" }] };
  assertEquals(
    await outputOf({ tool: async (_, next) => ({ ...mapText(await next(), () => "new"), context: ["mind"] }) }, post),
    {
      hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput: "new", additionalContext: "mind" },
    },
  );
  assertEquals(await outputOf({ tool: async (_, next) => ({ ...await next(), status: "error" }) }, post), {
    decision: "block",
    reason: "out",
  });
});
