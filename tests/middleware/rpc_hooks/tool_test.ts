import { assertEquals } from "@std/assert";
import { agent, type Middleware, text } from "@jizai/jizai";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { permissions } from "@jizai/jizai/middleware/permissions";
import type { Builtin, BuiltinOptions } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { batch, call, drop, runBatch, three, weather } from "../../support/batch.ts";
import { builtins, warnings } from "../../support/rpc.ts";
import { lines } from "../../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

/** A hook that logs its requests and replies with `answers`. */
function loggingHook(log: string[], name: string, { before_tool, after_tool, approve_tool }: Builtin = {}): Builtin {
  const logged =
    <P>(stage: string, answer: (params: P, options: BuiltinOptions) => unknown) =>
    (params: P, options: BuiltinOptions) => {
      log.push(`${name} ${stage}`);
      return answer(params, options);
    };
  return {
    before_tool: logged("before_tool", before_tool ?? (() => ({ action: "continue" }))),
    after_tool: logged("after_tool", after_tool ?? (() => ({ action: "continue" }))),
    approve_tool: logged("approve_tool", approve_tool ?? (() => ({ approved: true }))),
  };
}

Deno.test("PicoClaw: the first approver that denies is the last one asked, and all must approve", async () => {
  const log: string[] = [];
  const { lines } = await runBatch([call("a"), call("b")], {
    use: [builtins({
      a: loggingHook(log, "a"),
      b: loggingHook(log, "b", {
        approve_tool: ({ arguments: { city } }) =>
          city === "a" ? { approved: false, reason: "not a" } : { approved: true },
      }),
      c: loggingHook(log, "c"),
    })],
  });
  assertEquals(log.filter((line) => line.endsWith("approve_tool")), [
    ...["a approve_tool", "b approve_tool"],
    ...["a approve_tool", "b approve_tool", "c approve_tool"],
  ]);
  assertEquals(lines.slice(1, 3), ["denied Tool execution denied by approval hook: not a", "ok sun in b"]);
});

Deno.test("PicoClaw: respond skips approval, execution and after_tool, and emits the events of a call", async () => {
  const log: string[] = [];
  const reported: unknown[] = [];
  const respond = { action: "respond", result: { for_llm: "cached" } };
  const { lines } = await runBatch([call("a")], {
    tools: [weather(() => log.push("run"))],
    use: [builtins({
      a: { event: ({ Kind, Payload }) => void reported.push([Kind, Payload]) },
      b: loggingHook(log, "b", { before_tool: () => respond }),
      c: loggingHook(log, "c"),
    })],
  });
  assertEquals(log, ["b before_tool"]);
  assertEquals(lines, ["call weather", "ok cached", "assistant Done."]);
  assertEquals(reported.filter((each) => Array.isArray(each) && /^tool_exec/.test(String(each[0]))), [
    ["tool_exec_start", { Tool: "weather", Arguments: { city: "a" } }],
    ["tool_exec_end", { Tool: "weather", Duration: 0, ForLLMLen: 6, ForUserLen: 0, IsError: false, Async: false }],
  ]);
});

Deno.test("PicoClaw: other guards are asked about a response, and approvers with the option approveResponses", async () => {
  const log: string[] = [];
  const hooks = () => ({
    a: loggingHook(log, "a", { before_tool: () => ({ action: "respond", result: { for_llm: "x" } }) }),
  });
  const guarded = await runBatch([call("a")], { use: [builtins(hooks()), permissions({ deny: ["weather"] })] });
  assertEquals(guarded.lines[1], "denied weather is not permitted here.");
  assertEquals(log.splice(0), ["a before_tool"]);
  const asked = await runBatch([call("a")], { use: [builtins(hooks(), { approveResponses: true })] });
  assertEquals([asked.lines[1], log], ["ok x", ["a before_tool", "a approve_tool"]]);
});

Deno.test("PicoClaw: respond without a result runs the original call with approval", async () => {
  const log: string[] = [];
  const { lines, events } = await runBatch([call("a")], {
    use: [builtins({
      a: loggingHook(log, "a", {
        before_tool: () => ({ action: "modify", call: { tool: "weather", arguments: { city: "z" } } }),
      }),
      b: loggingHook(log, "b", { before_tool: () => ({ action: "respond", call: { tool: "other", arguments: {} } }) }),
      c: loggingHook(log, "c"),
    })],
  });
  assertEquals(lines[1], "ok sun in a");
  assertEquals(log, [
    ...["a before_tool", "b before_tool"],
    ...["a approve_tool", "b approve_tool", "c approve_tool"],
    ...["a after_tool", "b after_tool", "c after_tool"],
  ]);
  assertEquals(warnings(events), ['The hook "b" responded without a result: the call runs unchanged.']);
});

Deno.test("PicoClaw: deny_tool does not end the run; the model receives the reason", async () => {
  const started = batch([call("a"), call("b")], {
    use: [builtins({
      a: {
        before_tool: ({ arguments: { city } }) =>
          city === "a" ? { action: "deny_tool", reason: "Invalid arguments" } : { action: "deny_tool" },
      },
    })],
  });
  const { result } = await started.run().outcome;
  assertEquals(result.status, "done");
  assertEquals(started.model.requests.map(({ messages }) => lines(messages)).at(-1), [
    "user Hi",
    "call weather weather",
    "denied Tool execution denied by hook: Invalid arguments",
    "denied Tool execution denied by hook",
  ]);
});

Deno.test("PicoClaw: a denied call does not reach after_tool", async () => {
  const log: string[] = [];
  await runBatch(three, {
    use: [
      builtins({
        a: loggingHook(log, "a", {
          before_tool: ({ arguments: { city } }) => city === "a" ? { action: "deny_tool" } : {},
          approve_tool: ({ arguments: { city } }) => ({ approved: city !== "b" }),
        }),
      }),
      permissions({ deny: [{ tool: "weather", when: (input) => JSON.stringify(input).includes("c") }] }),
    ],
  });
  assertEquals(log.filter((line) => line.endsWith("after_tool")), []);
});

Deno.test("PicoClaw: continue with an object applies the object like modify", async () => {
  for (const action of ["continue", "modify", "", undefined, null]) {
    const { lines } = await runBatch([call("a")], {
      use: [builtins({ a: { before_tool: () => ({ action, call: { tool: "weather", arguments: { city: "z" } } }) } })],
    });
    assertEquals(lines, ["call weather", "ok sun in z", "assistant Done."]);
  }
});

Deno.test("PicoClaw: a modified call replaces the whole call", async () => {
  const made: unknown[] = [];
  const tools = [
    weather(({ city }) => made.push(`weather ${city}`)),
    weather(({ city }) => made.push(`drop ${city}`), { name: "drop" }),
  ];
  const given = async (call: unknown) => {
    const hook: Builtin = { before_tool: () => ({ action: "modify", call }) };
    return (await runBatch([{ id: "a", name: "weather", input: { city: "a" } }], { tools, use: [builtins({ hook })] }))
      .lines[1];
  };
  assertEquals(await given({ tool: "drop", arguments: { city: "b" } }), "ok 1");
  assertEquals(
    await given({ tool: "weather" }),
    "error The input of weather is not valid: city: Invalid input: expected string, received undefined",
  );
  assertEquals(await given({ arguments: { city: "b" } }), 'error There is no tool "". The tools are: weather, drop');
  assertEquals(await given(null), "ok 2");
  assertEquals(made, ["drop b", "weather a"]);
});

Deno.test("PicoClaw: a modified result may be in the hook object or alone, the result of respond is alone", async () => {
  const given = async (hook: Builtin) => (await runBatch([call("a")], { use: [builtins({ hook })] })).lines[1];
  const nested = {
    action: "modify",
    result: { tool: "weather", arguments: {}, result: { for_llm: "new" }, duration: 1 },
  };
  assertEquals(await given({ after_tool: () => nested }), "ok new");
  assertEquals(await given({ after_tool: () => ({ action: "modify", result: { for_llm: "bare" } }) }), "ok bare");
  assertEquals(await given({ before_tool: () => ({ action: "respond", result: { for_llm: "bare" } }) }), "ok bare");
  assertEquals(
    await given({ before_tool: () => ({ action: "respond", call: { hook_result: { for_llm: "in the call" } } }) }),
    "ok in the call",
  );
});

Deno.test("PicoClaw: an action that a stage does not support is ignored with its object", async () => {
  const { lines, events } = await runBatch([call("a")], {
    use: [builtins({
      a: {
        before_llm: () => ({ action: "respond", request: { model: "", messages: [] } }),
        before_tool: () => ({ action: "explode", call: { tool: "other" } }),
        after_tool: () => ({ action: "deny_tool", reason: "too late", result: { result: { for_llm: "x" } } }),
      },
    })],
  });
  assertEquals(lines, ["call weather", "ok sun in a", "assistant Done."]);
  assertEquals(warnings(events), [
    'The hook "a" returned an action that before_llm does not support: "respond".',
    'The hook "a" returned an action that before_tool does not support: "explode".',
    'The hook "a" returned an action that after_tool does not support: "deny_tool".',
    'The hook "a" returned an action that before_llm does not support: "respond".',
  ]);
});

Deno.test("PicoClaw: abort_turn keeps the messages and fails; hard_abort removes them and cancels", async () => {
  for (const stage of ["before_tool", "after_tool"] as const) {
    const aborting = (action: string) => builtins({ a: { [stage]: () => ({ action, reason: "enough" }) } });
    const failed = await runBatch([call("a")], { use: [aborting("abort_turn")] });
    assertEquals([failed.result.status, failed.result.reason], ["failed", `hook aborted turn during ${stage}: enough`]);
    assertEquals(lines(failed.result.messages).slice(0, 2), ["user Hi", "call weather"]);
    const stopped = await runBatch([call("a")], { use: [aborting("hard_abort")] });
    assertEquals([stopped.result.status, stopped.result.messages], ["cancelled", []]);
  }
  const silent = await runBatch([call("a")], {
    use: [builtins({ a: { before_tool: () => ({ action: "abort_turn" }) } })],
  });
  assertEquals(silent.result.reason, "hook aborted turn during before_tool: hook requested turn abort");
});

Deno.test("PicoClaw: an abort during a batch runs none of its calls", async () => {
  const log: string[] = [];
  await runBatch(three, {
    tools: [weather(({ city }) => log.push(city))],
    use: [builtins({
      a: { before_tool: ({ arguments: { city } }) => ({ action: city === "c" ? "abort_turn" : "continue" }) },
    })],
  });
  assertEquals(log, []);
});

Deno.test("PicoClaw: the run ends without another request if every result is handled; one denial prevents that", async () => {
  const handle = (but: string): Middleware =>
    builtins({
      a: {
        before_tool: ({ arguments: { city } }) =>
          city === but
            ? { action: "deny_tool" }
            : { action: "respond", result: { for_llm: `sent ${city}`, for_user: "Here.", response_handled: true } },
      },
    });
  const ended = batch([call("a"), call("b")], { use: [handle("")] });
  const { result, lines, events } = await ended.run().outcome;
  assertEquals([result.status, ended.model.left, lines.slice(1)], ["done", 1, ["ok sent a", "ok sent b"]]);
  assertEquals(events.flatMap((event) => event.type === "notice" ? [event.text] : []), ["Here.", "Here."]);
  const goes = batch([call("a"), call("b")], { use: [handle("b")] });
  await goes.run().outcome;
  assertEquals(goes.model.left, 0);
});

Deno.test("PicoClaw: handled media are delivered, and the model receives a failure of the delivery", async () => {
  const image = "data:image/png;base64,iVBORw0KGgo=";
  const respond = (response_handled: boolean) =>
    builtins({
      a: {
        before_tool: () => ({
          action: "respond",
          result: {
            for_llm: "Image",
            media: [image, "media://abc"],
            artifact_tags: ["[file:/tmp/a.png]"],
            response_handled,
          },
        }),
      },
    });
  const handed: unknown[] = [];
  await runBatch([call("a")], { use: [delivery(({ artifacts }) => void handed.push(artifacts)), respond(true)] });
  assertEquals(handed, [[{ uri: image, mediaType: "image/png" }, { uri: "media://abc" }]]);
  const failing = delivery(() => {
    throw new Error("no channel");
  });
  const failed = await runBatch([call("a")], { use: [failing, respond(true)] });
  assertEquals(failed.lines, [
    "call weather",
    "error The result of weather could not be delivered.",
    "assistant Done.",
  ]);
  const seen = batch([call("a")], { use: [respond(false)] });
  await seen.run().outcome;
  const [, request] = seen.model.requests;
  assertEquals(request?.messages.at(-1), {
    role: "tool",
    results: [{
      callId: "a",
      name: "weather",
      status: "ok",
      parts: [
        { type: "text", text: "Image" },
        { type: "text", text: "\nLocal artifact paths: [file:/tmp/a.png]" },
        { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" },
      ],
      artifacts: [{ uri: "media://abc" }, { uri: "file:/tmp/a.png" }],
    }],
  });
});

Deno.test("PicoClaw: an interceptor that fails is skipped; an approver that fails denies", async () => {
  const fails: Builtin["before_tool"] = () => {
    throw new Error("secret");
  };
  const log: string[] = [];
  const open = await runBatch([call("a")], {
    use: [builtins({ a: { before_tool: fails, after_tool: fails }, b: loggingHook(log, "b") })],
  });
  assertEquals([open.lines[1], log], ["ok sun in a", ["b before_tool", "b approve_tool", "b after_tool"]]);
  assertEquals(warnings(open.events), [
    'The hook "a" failed at before_tool and is skipped.',
    'The hook "a" failed at after_tool and is skipped.',
  ]);
  assertEquals(open.errors.map(String), ["Error: secret", "Error: secret"]);
  const closed = await runBatch([call("a")], { use: [builtins({ a: { approve_tool: fails } })] });
  assertEquals(closed.lines[1], 'denied Tool execution denied by approval hook: tool approval hook "a" failed');
});

Deno.test("PicoClaw: an invalid reply is skipped before a call, and denies as an approval", async () => {
  const wrongs: readonly unknown[] = [7, "respond", { action: 1 }, { call: "x" }, { call: { arguments: [] } }];
  for (const wrong of wrongs) {
    const { lines, events } = await runBatch([call("a")], { use: [builtins({ a: { before_tool: () => wrong } })] });
    assertEquals(lines[1], "ok sun in a");
    assertEquals(warnings(events).map((text) => text.replace(/\(.*\)/, "(...)")), [
      'The hook "a" returned an invalid reply (...) at before_tool and is skipped.',
    ]);
  }
  for (const wrong of [undefined, null, {}, { allow: true }, { approved: "yes" }, { action: "continue" }, true]) {
    const { lines } = await runBatch([call("a")], { use: [builtins({ a: { approve_tool: () => wrong } })] });
    assertEquals(lines[1]?.split(":")[0], "denied Tool execution denied by approval hook");
  }
});

Deno.test("PicoClaw: an invalid reply loses no denial, and a warning reports unknown members", async () => {
  const outcome = async (reply: unknown) => {
    const { lines, events } = await runBatch([call("a")], { use: [builtins({ a: { before_tool: () => reply } })] });
    return [lines[1], warnings(events)];
  };
  const denied = (member: string) =>
    `The hook "a" denies at before_tool in the form of another system (${member}) and denies the call.`;
  const text = "denied Tool execution denied by hook";
  assertEquals(await outcome("deny_tool"), [text, [denied("the answer itself")]]);
  assertEquals(await outcome({ action: ["deny_tool"], reason: "No." }), [`${text}: No.`, [denied("action")]]);
  assertEquals(await outcome({ action: "continue", approved: false }), [text, [denied("approved")]]);
  assertEquals(await outcome({ action: "deny_tool", reason: 7 }), [text, [denied("action")]]);
  assertEquals(await outcome({ Action: "continue", mood: 1 }), ["ok sun in a", [
    'The hook "a" returned unknown members: mood.',
  ]]);
});

Deno.test("PicoClaw: replies are read as Go reads JSON", async () => {
  const { lines } = await runBatch([call("a"), call("b")], {
    use: [builtins({
      a: {
        before_tool: ({ arguments: { city } }) =>
          city === "a"
            ? { Action: "Deny_Tool", ACTION: "deny_tool", Reason: "loud" }
            : { action: null, call: null, result: null, surprise: { x: 1 } },
        approve_tool: () => ({ Approved: true }),
      },
    })],
  });
  assertEquals(lines.slice(1, 3), ["denied Tool execution denied by hook: loud", "ok sun in b"]);
});

Deno.test("PicoClaw: an approval answers no question of a tool", async () => {
  const { result } = await runBatch([call("a", { name: "drop" })], {
    tools: [drop()],
    use: [builtins({ a: { approve_tool: () => ({ approved: true }) } })],
  });
  assertEquals(result.status, "paused");
});

Deno.test("PicoClaw: after_tool receives the changed call, its result and its duration", async () => {
  const seen: unknown[] = [];
  const clock = { now: 0 };
  const use: Middleware[] = [
    { name: "outer", tool: (_, next) => next({ input: { city: "oslo" } }) },
    builtins({
      a: {
        before_tool: ({ tool, arguments: given }) => void seen.push([tool, given]),
        approve_tool: ({ tool, arguments: given }) => {
          seen.push([tool, given]);
          return { approved: true };
        },
        after_tool: ({ tool, arguments: given, result, duration }) =>
          void seen.push([tool, given, result, duration > clock.now]),
      },
    }),
    { name: "inner", tool: (_, next) => next({ input: { city: "bergen" } }) },
  ];
  await runBatch([call("a")], {
    tools: [
      weather(() => ({ ...text("rain"), person: "Take an umbrella.", silent: true, artifacts: [{ uri: "s3://a" }] })),
    ],
    use,
  });
  assertEquals(seen, [
    ["weather", { city: "oslo" }],
    ["weather", { city: "bergen" }],
    ["weather", { city: "bergen" }, {
      for_llm: "rain",
      for_user: "Take an umbrella.",
      silent: true,
      is_error: false,
      async: false,
      media: [],
      artifact_tags: ["[s3://a]"],
      response_handled: false,
    }, true],
  ]);
});

Deno.test("PicoClaw: a failed result keeps its status unless a hook changes it", async () => {
  const given = async (is_error: boolean) => {
    const { result } = await runBatch([call("a")], {
      tools: [weather(() => {
        throw new DOMException("late", "TimeoutError");
      })],
      use: [builtins({
        a: {
          after_tool: ({ result }) => ({
            action: "modify",
            result: { result: { ...result, for_llm: "Sorry.", is_error } },
          }),
        },
      })],
    });
    return result.messages.flatMap((message) => message.role === "tool" ? message.results : [])[0]?.status;
  };
  assertEquals([await given(true), await given(false)], ["timeout", "ok"]);
});

Deno.test("PicoClaw: subagents inherit the hooks, with the run of the caller as ParentTurnID", async () => {
  const seen: unknown[] = [];
  const child = agent({ name: "child", model: scripted({ calls: [call("b")] }, "Sunny."), tools: [weather()] });
  const parent = agent({
    name: "parent",
    model: scripted({ calls: [{ id: "a", name: "child", input: { prompt: "Weather?" } }] }, "Done."),
    tools: [asTool(child)],
    use: [
      builtins({ a: { before_tool: ({ meta, tool }) => void seen.push([tool, meta.AgentID, meta.ParentTurnID]) } }),
    ],
  });
  const { run } = await parent.run("Hi").result;
  assertEquals(seen, [["child", "parent", ""], ["weather", "child", run]]);
});
