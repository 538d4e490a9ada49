/**
 * The hooks of all systems around requests and calls, compared.
 */
import { agent, allow, deny, type Middleware, text } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { human } from "@jizai/jizai/middleware/human";
import { permissions } from "@jizai/jizai/middleware/permissions";
import {
  Message,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
  yoi_hooks,
} from "@jizai/jizai/middleware/yoi_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { call, drop, three, weather } from "../../support/batch.ts";
import { hooks, returning, returningOutput } from "../../support/hooked.ts";
import { builtins } from "../../support/rpc.ts";
import { ended, under } from "../../support/systems.ts";
import { lines } from "../../support/transcript_lines.ts";

const one = [{ calls: [call("a")] }, "Done."] as const;

Deno.test("Table: hooks before a model request change this request only, or end the run (yoi pre_llm_request, PicoClaw before_llm)", async () => {
  const changing = {
    yoi: yoi_hooks({ pre_llm_request: (context) => void context.push(Message.user("Be brief.")) }),
    rpc: builtins({
      a: {
        before_llm: ({ messages, ...rest }) => {
          const request = { ...rest, messages: [...messages, { role: "user", content: "Be brief." }] };
          return { action: "modify", request };
        },
      },
    }),
  };
  const changed = await under(changing, async (hooks) => {
    const { requests, lines } = await ended(hooks, ["Done."]);
    return [...requests, lines];
  });
  const brief = [["user Hi", "user Be brief."], ["user Hi", "assistant Done."]];
  assertEquals(changed, { yoi: brief, rpc: brief });
  const ending = {
    yoi: yoi_hooks({ pre_llm_request: () => PreLlmRequestResult.Cancel("No.") }),
    rpc: builtins({ a: { before_llm: () => ({ action: "abort_turn", reason: "No." }) } }),
  };
  const outcome = await under(ending, async (hooks) => {
    const { requests, result } = await ended(hooks, ["Done."]);
    return [requests.length, result.status, result.reason];
  });
  assertEquals(outcome, {
    yoi: [0, "cancelled", "No."],
    rpc: [0, "failed", "hook aborted turn during before_llm: No."],
  });
});

Deno.test("Table: hooks after a model response change it (PicoClaw after_llm)", async () => {
  const changing = {
    rpc: builtins({
      a: {
        after_llm: ({ response }) => ({
          action: "modify",
          response: { response: { ...response, content: "No.", tool_calls: [] } },
        }),
      },
    }),
  };
  const outcome = await under(changing, async (hooks) => {
    const { requests, lines } = await ended(hooks, one);
    return [requests.length, lines];
  });
  assertEquals(outcome, { rpc: [1, ["user Hi", "assistant No."]] });
});

Deno.test("Table: hooks before a call change its input; the transcript keeps the original, except for Copilot", async () => {
  const moving = {
    yoi: yoi_hooks({
      pre_tool_call({ call }) {
        call.input = { city: "b" };
        return PreToolCallResult.Continue;
      },
    }),
    claude: claude_hooks({
      PreToolUse: hooks(returningOutput({ permissionDecision: "allow", updatedInput: { city: "b" } })),
    }),
    copilot: copilot_hooks({ onPreToolUse: () => ({ permissionDecision: "allow", modifiedArgs: { city: "b" } }) }),
    rpc: builtins({
      a: { before_tool: ({ tool }) => ({ action: "modify", call: { tool, arguments: { city: "b" } } }) },
    }),
  };
  const made = await under(moving, async (hooks) => {
    const { lines, result } = await ended(hooks, one);
    const calls = result.messages.flatMap((message) => message.role === "assistant" ? message.parts : []);
    return [lines[2], calls[0]?.type === "call" && calls[0].input];
  });
  const kept = ["ok sun in b", { city: "a" }];
  assertEquals(made, { yoi: kept, claude: kept, copilot: ["ok sun in b", { city: "b" }], rpc: kept });
  const asking = await under(moving, async (hooks) => {
    const { result } = await ended(hooks, [{ calls: [call("a", { name: "drop" })] }, "Done."], { tools: [drop()] });
    return [result.status, result.questions.map(({ input }) => input)];
  });
  const allowed = ["done", []];
  const asked = ["paused", [{ city: "b" }]];
  assertEquals(asking, { yoi: asked, claude: allowed, copilot: allowed, rpc: asked });
});

Deno.test("Table: a deny before a call is final; a call that yoi skips is submitted again by the next run", async () => {
  const denying = () => ({
    yoi: yoi_hooks({ pre_tool_call: ({ call }) => call.id === "a" ? PreToolCallResult.Skip : undefined }),
    claude: claude_hooks({
      PreToolUse: hooks(returningOutput({ permissionDecision: "deny", permissionDecisionReason: "No." })),
    }),
    copilot: copilot_hooks({
      onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "No." }),
    }),
    rpc: builtins({ a: { before_tool: () => ({ action: "deny_tool", reason: "No." }) } }),
  });
  const log: string[] = [];
  const tools = [weather(({ city }) => log.push(city))];
  const bypass: Middleware = {
    name: "bypass",
    tool: () => Promise.resolve(text("cached")),
    approval: () => Promise.resolve(allow()),
  };
  const denied = await under(denying(), async (hooks) => (await ended(hooks, one, { tools, use: [bypass] })).lines[2]);
  assertEquals([denied, log], [{
    yoi: "skipped Not run now: it is submitted again later.",
    claude: "denied No.",
    copilot: "denied Denied by preToolUse hook: No.",
    rpc: "denied Tool execution denied by hook: No.",
  }, []]);
  const next = await under(denying(), async (hooks) => {
    const assistant = agent({ model: scripted(...one, "Done.", "Done."), tools: [weather()], use: [hooks] });
    await assistant.run({ prompt: "Hi", session: "s" }).result;
    const { messages } = await assistant.run({ prompt: "And?", session: "s" }).result;
    return lines(messages.slice(4));
  });
  const left = ["user And?", "assistant Done."];
  assertEquals(next, {
    yoi: ["user And?", "call weather", "ok sun in a", "assistant Done."],
    claude: left,
    copilot: left,
    rpc: left,
  });
});

Deno.test("Table: PicoClaw respond answers a call without running it, and guards are still asked", async () => {
  const log: string[] = [];
  const responding = {
    before_tool: () => ({ action: "respond", result: { for_llm: "cached" } }),
    approve_tool: () => {
      log.push("approver");
      return { approved: true };
    },
  };
  const tools = [weather(() => log.push("work"))];
  const guard: Middleware = {
    name: "guard",
    approval(_, next) {
      log.push("guard");
      return next();
    },
  };
  const systems = { rpc: builtins({ a: responding }), asking: builtins({ a: responding }, { approveResponses: true }) };
  const outcome = await under(systems, async (hooks) => {
    const { lines } = await ended(hooks, one, { tools, use: [guard] });
    return [lines[2], ...log.splice(0)];
  });
  assertEquals(outcome, { rpc: ["ok cached", "guard"], asking: ["ok cached", "approver", "guard"] });
  const refusing: Middleware = { name: "refusing", approval: () => Promise.resolve(deny("No.")) };
  const refused = await under(systems, async (hooks) => (await ended(hooks, one, { use: [refusing] })).lines[2]);
  assertEquals(refused, { rpc: "denied No.", asking: "denied No." });
});

Deno.test("Table: hooks before a call can end or pause the run, and no call of the batch runs", async () => {
  const ending = {
    "yoi Abort": yoi_hooks({ pre_tool_call: ({ call }) => call.id === "c" ? { Abort: "No." } : undefined }),
    "yoi Pause": yoi_hooks({ pre_tool_call: ({ call }) => call.id === "c" ? "Pause" : undefined }),
    "claude continue": claude_hooks({ PreToolUse: hooks(returning({ continue: false, stopReason: "No." })) }),
    "claude ask": claude_hooks({ PreToolUse: hooks(returningOutput({ permissionDecision: "ask" })) }),
    "copilot ask": copilot_hooks({ onPreToolUse: () => ({ permissionDecision: "ask" }) }),
    "rpc abort_turn": builtins({ a: { before_tool: () => ({ action: "abort_turn", reason: "No." }) } }),
    "rpc hard_abort": builtins({ a: { before_tool: () => ({ action: "hard_abort", reason: "No." }) } }),
  };
  const log: string[] = [];
  const outcome = await under(ending, async (hooks) => {
    const tools = [weather(({ city }) => log.push(city))];
    const { result, lines } = await ended(hooks, [{ calls: three }, "Done."], { tools });
    return [result.status, result.reason ?? result.questions.length, lines[0]];
  });
  assertEquals([outcome, log], [{
    "yoi Abort": ["failed", "No.", "user Hi"],
    "yoi Pause": ["paused", 1, "user Hi"],
    "claude continue": ["done", "No.", "user Hi"],
    "claude ask": ["paused", 1, "user Hi"],
    "copilot ask": ["paused", 1, "user Hi"],
    "rpc abort_turn": ["failed", "hook aborted turn during before_tool: No.", "user Hi"],
    "rpc hard_abort": ["cancelled", "hook aborted turn during before_tool: No.", undefined],
  }, []]);
  const defers = claude_hooks({ PreToolUse: hooks(returningOutput({ permissionDecision: "defer" })) }, {
    dialect: "claude",
  });
  const { result } = await ended(defers, one, { tools: [weather(({ city }) => log.push(city))] });
  assertEquals([result.status, result.questions.length, log], ["paused", 1, []]);
});

Deno.test("Table: hooks after a call change its result, with a separate hook for failures in Claude and Copilot", async () => {
  const received: string[] = [];
  const changing = {
    yoi: yoi_hooks({
      post_tool_call({ call, result }) {
        received.push(`${result.is_error ? "failure" : "success"} ${call.id}`);
        if (!result.is_error) result.content = "changed";
        return PostToolCallResult.Continue;
      },
    }),
    claude: claude_hooks({
      PostToolUse: hooks((_, id) => {
        received.push(`success ${id}`);
        return { hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput: "changed" } };
      }),
      PostToolUseFailure: hooks((_, id) => void received.push(`failure ${id}`)),
    }),
    copilot: copilot_hooks({
      onPostToolUse({ toolArgs }) {
        received.push(`success ${Object(toolArgs).city}`);
        return { modifiedResult: "changed" };
      },
      onPostToolUseFailure: ({ toolArgs }) => void received.push(`failure ${Object(toolArgs).city}`),
    }),
    rpc: builtins({
      a: {
        after_tool({ arguments: { city }, result, ...rest }) {
          received.push(`${result.is_error ? "failure" : "success"} ${city}`);
          return result.is_error ? {} : { result: { ...rest, result: { ...result, for_llm: "changed" } } };
        },
      },
    }),
  };
  const tools = [weather(({ city }) => {
    if (city === "b") throw new Error("broken");
    return city;
  })];
  const outcome = await under(changing, async (hooks) => {
    const { lines } = await ended(hooks, [{ calls: [call("a"), call("b")] }, "Done."], { tools });
    return [...lines.slice(2, 4), ...received.splice(0)];
  });
  const both = ["ok changed", "error weather failed.", "success a", "failure b"];
  assertEquals(outcome, { yoi: both, claude: both, copilot: both, rpc: both });
});

Deno.test("Table: approval hooks decide whether a call runs (PermissionRequest, approve_tool)", async () => {
  const received: string[] = [];
  const isA = (input: unknown) => Object(input).city === "a";
  const judging = {
    claude: claude_hooks({
      PermissionRequest: hooks((input, id, options) =>
        returningOutput({
          decision: isA(Object(input).tool_input) ? { behavior: "allow" } : { behavior: "deny", message: "Not b." },
        })(input, id, options)
      ),
      PermissionDenied: hooks((_, id) => void received.push(`denied ${id}`)),
    }),
    // no hook there, but a handler of the session
    copilot: human(({ input }) => isA(input) || { allow: false, reason: "Not b." }),
    rpc: builtins({
      a: { approve_tool: ({ arguments: { city } }) => ({ approved: city !== "b", reason: "Not b." }) },
    }),
  };
  const calls = ["a", "b", "c"].map((id) => call(id, { name: "drop" }));
  const guard = permissions({ deny: [{ when: (input) => Object(input).city === "c", why: "Not c." }] });
  const outcome = await under(judging, async (hooks) => {
    const { result, events } = await ended(hooks, [{ calls }, "Done."], { tools: [drop()], use: [guard] });
    const decided = events.flatMap((event) =>
      event.type === "approval.decided" ? [[event.decision, event.call, event.reason ?? ""].join(" ").trim()] : []
    );
    return [...decided, ...result.questions.map(({ callId }) => `asked about ${callId}`), ...received.splice(0)];
  });
  assertEquals(outcome, {
    claude: ["allow a", "deny b Not b.", "deny c Not c.", "denied c"],
    copilot: ["allow a", "deny b Not b.", "deny c Not c."],
    rpc: ["deny b Tool execution denied by approval hook: Not b.", "deny c Not c.", "asked about a"],
  });
});

Deno.test("Table: yoi's ToolExecutionContext gives a tool its call id, batch id and index", async () => {
  const reported: [string, string, number, string][] = [];
  const tools = [
    weather(({ city }, { callId, batchId, callIndex }) => reported.push([callId, batchId, callIndex, `tool ${city}`])),
  ];
  const around: Middleware = {
    name: "around",
    execute({ callId, batchId, callIndex, input }, next) {
      reported.push([callId, batchId, callIndex, `hook ${Object(input).city}`]);
      return next();
    },
    tool: (ctx, next) => ctx.call.id === "b" ? Promise.resolve(text("cached")) : next({ input: { city: "z" } }),
  };
  const skipping = yoi_hooks({ pre_tool_call: ({ call }) => call.id === "a" ? "Skip" : undefined });
  const { lines } = await ended(skipping, [{ calls: three }, { calls: [call("d")] }, "Done."], {
    tools,
    use: [around],
  });
  const batches = [...new Set(reported.map(([, batch]) => batch))];
  assertEquals(reported.map(([id, batch, ...rest]) => [id, batches.indexOf(batch), ...rest]), [
    ["c", 0, 2, "hook z"],
    ["c", 0, 2, "tool z"],
    ["d", 1, 0, "hook z"],
    ["d", 1, 0, "tool z"],
  ]);
  assertEquals(lines.slice(2, 5), ["skipped Not run now: it is submitted again later.", "ok cached", "ok 2"]);
});
