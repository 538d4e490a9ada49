import { assertEquals, assertThrows } from "@std/assert";
import { agent } from "@jizai/jizai";
import { type Builtin, rpc_hooks, type RpcHooksConfig } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { FakeTime } from "@std/testing/time";
import { batch, call, runBatch, weather } from "../../support/batch.ts";
import { answering, programs, warnings } from "../../support/rpc.ts";

Deno.test("PicoClaw: hooks in the process run first, then by priority, then by name", async () => {
  const log: string[] = [];
  const own = (name: string): Builtin => ({ before_tool: () => void log.push(name) });
  const { stdio } = programs(Object.fromEntries(
    ["late", "b", "a", "early"].map((name) => [name, answering({ "hook.before_tool": () => void log.push(name) })]),
  ));
  const process = (name: string, priority?: number) => ({
    [name]: { enabled: true, command: [name], intercept: ["before_tool"], ...(priority !== undefined && { priority }) },
  });
  await using hooks = rpc_hooks({
    processes: { ...process("late", 200), ...process("b", 100), ...process("a", 100), ...process("early", -5) },
    builtins: {
      zoe: { enabled: true, priority: 500 },
      ann: { enabled: true, priority: 500 },
      max: { enabled: true },
      off: { priority: -9 },
    },
  }, {
    stdio,
    builtins: { zoe: () => own("zoe"), ann: () => own("ann"), max: () => own("max"), off: () => own("off") },
  });
  await runBatch([call("a")], { use: [hooks] });
  assertEquals(log, ["max", "ann", "zoe", "early", "a", "b", "late"]);
});

Deno.test("PicoClaw: a process replaces a builtin of the same name, and a builtin receives its configuration", async () => {
  const log: unknown[] = [];
  const { stdio } = programs({ gate: answering({ "hook.before_tool": () => void log.push("process") }) });
  const builtin = (config: unknown): Builtin => ({ before_tool: () => void log.push(config) });
  const process = { enabled: true, command: ["gate"], intercept: ["before_tool"] };
  const builtins = { gate: { enabled: true, config: { log_file: "x" } } };
  await using both = rpc_hooks({ builtins, processes: { gate: process } }, { stdio, builtins: { gate: builtin } });
  await runBatch([call("a")], { use: [both] });
  await using one = rpc_hooks({ hooks: { builtins, processes: { gate: { ...process, enabled: false } } } }, {
    stdio,
    builtins: { gate: builtin },
  });
  await runBatch([call("a")], { use: [one] });
  assertEquals(log, ["process", { log_file: "x" }]);
});

Deno.test("PicoClaw: null in a configuration counts as absent, and names count in any case", async () => {
  const { stdio } = programs({
    gate: answering({ "hook.before_tool": () => ({ action: "deny_tool", reason: "No." }) }),
  });
  const gate = {
    Enabled: true,
    priority: null,
    command: ["gate"],
    Intercept: ["before_tool"],
    observe: null,
    env: null,
  };
  const config: unknown = { enabled: null, defaults: null, builtins: null, processes: { gate } };
  await using hooks = rpc_hooks({ hooks: config as RpcHooksConfig }, { stdio }); // as it comes from a file
  assertEquals((await runBatch([call("a")], { use: [hooks] })).lines[1], "denied Tool execution denied by hook: No.");
});

Deno.test("PicoClaw: a warning reports the unknown fields of a configuration, which are ignored", async () => {
  const log: string[] = [];
  const gate = { enabled: true, command: ["gate"], observe: ["all"], intercepts: ["before_tool"] };
  const config: unknown = {
    builtin: { own: { enabled: true } },
    Builtins: { own: { enable: true, config: { any: 1 } } },
    processes: { gate },
    defaults: { approval_timeout_msec: 3, Observer_Timeout_Ms: 400 },
    constructor: { a: { b: 1 } },
  };
  const { stdio } = programs({ gate: answering({ "hook.before_tool": () => void log.push("asked") }) });
  await using hooks = rpc_hooks({ hooks: config as RpcHooksConfig }, { stdio }); // as it comes from a file
  const { events } = await runBatch([call("a")], { use: [hooks] });
  assertEquals([log, events.filter(({ type }) => type === "warning")], [
    [],
    [
      "builtin",
      "constructor",
      "Builtins.own.enable",
      "processes.gate.intercepts",
      "defaults.approval_timeout_msec",
    ].map((field) => ({
      type: "warning",
      code: "hook.skipped",
      message: `${field} is ignored: unknown field.`,
      middleware: "rpc_hooks",
      point: "session",
    })),
  ]);
});

Deno.test("PicoClaw: an invalid configuration is refused", () => {
  const process = { enabled: true, command: ["x"], intercept: ["before_tool"] };
  const refused = (config: unknown, options = {}) =>
    assertThrows(() => rpc_hooks(config as RpcHooksConfig, options), TypeError).message; // as it comes from a file
  for (const none of [null, "{}", [{}]]) {
    assertEquals(refused(none), "Cannot use hooks: expected an object, what PicoClaw has under `hooks`");
  }
  const { stdio } = programs({});
  const of = (change: object, options: object = { stdio }) =>
    refused({ processes: { p: { ...process, ...change } } }, options);
  assertEquals([
    of({ transport: "tcp" }),
    of({ transport: "http", url: "ftp://x" }),
    of({ command: [] }),
    of({ intercept: ["before_lunch"] }),
    of({ observe: ["lunch"] }),
    of({ intercept: [] }),
    of({ intercept: [""], observe: [] }),
    of({}, {}),
    refused({ builtins: { b: { enabled: true } } }),
    refused({ processes: [] }),
  ], [
    'Cannot use hooks: processes.p.transport: Invalid option: expected one of "stdio"|"http"|""',
    'Cannot use the hook "p": expected a URL with http:// or https://, got "ftp://x"',
    'Cannot use the hook "p": its `command` is empty',
    'Cannot use the hook "p": unknown stage "before_lunch" in `intercept`',
    'Cannot use the hook "p": unknown event "lunch" in `observe`',
    'Cannot use the hook "p": expected `observe` or `intercept`',
    'Cannot use the hook "p": expected `observe` or `intercept`',
    'Cannot use the hook "p": a process needs the option `stdio`',
    'Cannot use the hook "b": expected the name of an entry of `builtins`',
    "Cannot use hooks: processes: Invalid input: expected record, received array",
  ]);
});

Deno.test("PicoClaw: disabled hooks are not validated", async () => {
  const hooks = rpc_hooks({ enabled: false, processes: { p: { enabled: true } } });
  assertEquals(Object.keys(hooks), ["name", "inherit"]);
  const { lines } = await runBatch([call("a")], { use: [hooks, rpc_hooks({ processes: { p: { command: [] } } })] });
  assertEquals(lines[1], "ok sun in a");
});

Deno.test("PicoClaw: hook.hello is the first request, and its modes decide which requests follow", async () => {
  const log: unknown[] = [];
  const { stdio } = programs({
    async gate({ id, method, params }, send) {
      log.push(method === "hook.hello" ? [method, id, params] : method);
      if (id !== undefined) await send({ id, result: method === "hook.approve_tool" ? { approved: true } : {} });
    },
  });
  const process = { enabled: true, command: ["gate"] };
  await using some = rpc_hooks({ processes: { gate: { ...process, intercept: ["approve_tool", "after_tool"] } } }, {
    stdio,
  });
  await runBatch([call("a")], { use: [some] });
  assertEquals(log.splice(0), [
    ["hook.hello", 1, { name: "gate", version: 1, modes: ["tool", "approve"] }],
    ...["hook.before_tool", "hook.approve_tool", "hook.after_tool"],
  ]);
  await using all = rpc_hooks({
    processes: {
      gate: { ...process, observe: ["turn_end"], intercept: ["approve_tool", "before_tool", "before_llm"] },
    },
  }, { stdio });
  await runBatch([call("a")], { use: [all] });
  assertEquals(log, [
    ["hook.hello", 1, { name: "gate", version: 1, modes: ["observe", "llm", "tool", "approve"] }],
    ...["hook.before_llm", "hook.after_llm"],
    ...["hook.before_tool", "hook.approve_tool", "hook.after_tool"],
    ...["hook.before_llm", "hook.after_llm"],
    "hook.event",
  ]);
});

Deno.test("PicoClaw: a hook that refuses hook.hello is stopped with all others, and every run fails", async () => {
  const { stdio, ran } = programs({
    fine: answering({}),
    refuses: ({ id = 0 }, send) => send({ id, error: { code: -32000, message: "not today" } }),
  });
  const process = (name: string) => ({ enabled: true, command: [name], intercept: ["before_tool"] });
  const hooks = rpc_hooks({ processes: { fine: process("fine"), refuses: process("refuses") } }, { stdio });
  const started = batch([call("a")], { use: [hooks] });
  for (let run = 0; run < 2; run++) {
    const { result, lines } = await started.run().outcome;
    assertEquals([result.status, String(result.error), lines], [
      "failed",
      'Error: Cannot start the hook "refuses"',
      [],
    ]);
  }
  assertEquals(ran, ["start fine", "start refuses", "end refuses", "end fine"]);
});

Deno.test("PicoClaw: a hook that does not answer hook.hello is stopped", async () => {
  using time = new FakeTime();
  const { stdio } = programs({ mute() {} });
  const processes = { mute: { enabled: true, command: ["mute"], intercept: ["before_tool"] } };
  const running = batch([call("a")], { use: [rpc_hooks({ processes }, { stdio })] }).run();
  await time.tickAsync(30_000);
  await time.tickAsync(0);
  assertEquals((await running.outcome).result.status, "failed");
});

Deno.test("PicoClaw: hooks are started once, by the first run, and stopped with the middleware", async () => {
  const { stdio, ran } = programs({ gate: answering({}) });
  const processes = { gate: { enabled: true, command: ["gate"], intercept: ["before_tool"] } };
  {
    await using hooks = rpc_hooks({ processes }, { stdio });
    const assistant = agent({ model: scripted("1", "2"), tools: [weather()], use: [hooks] });
    assertEquals(ran, []);
    await Promise.all([assistant.run("Hi").result, assistant.run("Ho").result]);
    assertEquals(ran, ["start gate"]);
  }
  assertEquals(ran, ["start gate", "end gate"]);
});

Deno.test("PicoClaw: timeouts are in milliseconds, and 0 means the default", async () => {
  using time = new FakeTime();
  const stuck = () => new Promise(() => {});
  const slow = async (defaults: object, hook: Builtin, ms: number) => {
    const hooks = rpc_hooks({ defaults, builtins: { slow: { enabled: true } } }, { builtins: { slow: () => hook } });
    const running = batch([call("a")], { use: [hooks] }).run();
    const start = time.now;
    await time.tickAsync(ms - 1);
    await time.tickAsync(0);
    let over = false;
    void running.outcome.then(() => over = true);
    await time.tickAsync(0);
    assertEquals(over, false);
    await time.tickAsync(1);
    await time.tickAsync(0);
    const { lines, events } = await running.outcome;
    return [time.now - start, lines[1], ...warnings(events)];
  };
  const before = 'The hook "slow" took too long at before_tool and is skipped.';
  const approval = 'The hook "slow" took too long at approve_tool and denies the call.';
  const denied = 'denied Tool execution denied by approval hook: tool approval hook "slow" timed out';
  assertEquals(await slow({}, { before_tool: stuck }, 5_000), [5_000, "ok sun in a", before]);
  assertEquals(await slow({ interceptor_timeout_ms: 70 }, { before_tool: stuck }, 70), [70, "ok sun in a", before]);
  assertEquals(await slow({ interceptor_timeout_ms: -1 }, { before_tool: stuck }, 5_000), [
    5_000,
    "ok sun in a",
    before,
  ]);
  assertEquals(await slow({}, { approve_tool: stuck }, 60_000), [60_000, denied, approval]);
  assertEquals(await slow({ approval_timeout_ms: 100 }, { approve_tool: stuck }, 100), [100, denied, approval]);
});

Deno.test("PicoClaw: a stopped run does not wait for hooks", async () => {
  const asked = Promise.withResolvers<AbortSignal>();
  for (const stage of ["before_llm", "before_tool", "approve_tool", "after_tool", "after_llm"] as const) {
    const stuck = {
      [stage]: (_: unknown, { signal }: { readonly signal: AbortSignal }) => {
        asked.resolve(signal);
        return new Promise(() => {});
      },
    };
    const hooks = rpc_hooks({ builtins: { stuck: { enabled: true } } }, { builtins: { stuck: () => stuck } });
    const running = batch([call("a")], { use: [hooks] }).run();
    const signal = await asked.promise;
    running.stop("enough");
    const { result, events } = await running.outcome;
    assertEquals([result.status, result.reason, signal.aborted, warnings(events)], ["aborted", "enough", true, []]);
  }
});

Deno.test("rpc_hooks() keeps the laws of middleware, whatever its hooks reply", async () => {
  const all = (answer: (params: object) => unknown): Builtin => ({
    before_llm: (params) => ({ action: "modify", request: params, ...answer(params) as object }), // of its own
    after_llm: (params) => ({ action: "modify", response: params }),
    before_tool: answer,
    after_tool: (params) => ({ action: "modify", result: params }),
    approve_tool: () => ({ approved: true }),
    event: () => {},
  });
  const broken = () => {
    throw new Error("broken");
  };
  const hooks = [
    all(() => ({})),
    all((params) => ({ call: params })),
    { before_llm: broken, after_llm: broken, before_tool: broken, after_tool: broken, event: broken },
    { before_tool: () => ({ action: "deny_tool" }), approve_tool: broken },
    { before_tool: () => ({ action: "respond", result: { for_llm: "cached" } }) },
  ];
  for (const hook of hooks) {
    await testMiddleware(() =>
      rpc_hooks({ builtins: { hook: { enabled: true } } }, { builtins: { hook: () => hook } })
    );
  }
});
