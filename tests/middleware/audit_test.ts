import { agent, allow, type AnyTool, ask, cancelled, deny, type Middleware, tool } from "@jizai/jizai";
import { audit, type AuditOptions, type AuditRecord } from "@jizai/jizai/middleware/audit";
import { redact } from "@jizai/jizai/middleware/redact";
import { asTool } from "@jizai/jizai/subagents";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { settled } from "../support/batch.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { heldUntilSaved, recordingStore, storeWith } from "../support/recording_store.ts";
import { named } from "../support/run_events.ts";
import { storedProgress } from "../support/stored_run.ts";

const pay = tool({
  name: "pay",
  description: "Pays a bill",
  input: z.object({ to: z.string(), euros: z.number() }),
  execute: ({ to, euros }) => {
    if (euros > 100) throw new Error("too much");
    return `Paid ${euros} to ${to}.`;
  },
});
const give: AnyTool = { ...pay, name: "give" };

const paying = (...inputs: readonly unknown[]): ScriptedAnswer => ({
  calls: inputs.map((input) => ["pay", input] as const),
});

/** An agent that is audited, outside of `use`, and its records in short. */
function audited(
  { use = [], steps = [paying({ to: "Ada", euros: 1 }), "Done."], tools = [pay, give], options }: {
    readonly use?: readonly Middleware[];
    readonly steps?: readonly ScriptedAnswer[];
    readonly tools?: readonly AnyTool[];
    readonly options?: AuditOptions;
  } = {},
) {
  const lines: string[] = [];
  const assistant = agent({
    model: scripted(...steps),
    tools,
    use: [audit((line) => void lines.push(line), options), ...use],
  });
  return { assistant, lines, short: () => lines.map((line) => short(JSON.parse(line))) };
}

function short(record: AuditRecord): string {
  const { time: _, run: _run, session: _session, ...rest } = record;
  const { ms: _ms, ...shown } = { ms: 0, ...rest };
  return Object.values(shown).map((value) => typeof value === "object" ? JSON.stringify(value) : value).join(" ");
}

Deno.test("audit() writes a line for the prompt, each call, and the end of the run", async () => {
  using _ = new FakeTime("2026-01-02T03:04:05Z");
  const { assistant, lines } = audited();
  const result = await assistant.run("Pay Ada").result;
  const stamp = { time: "2026-01-02T03:04:05.000Z", run: "run", session: "session" };
  assertEquals(lines.filter((line) => line.indexOf("\n") !== line.length - 1), []);
  assertEquals(named(lines.map((line) => JSON.parse(line)), result), [
    { ...stamp, type: "prompt", input: "Pay Ada" },
    {
      ...stamp,
      type: "call",
      turn: 1,
      call: "call_1",
      tool: "pay",
      decision: "allow",
      by: "policy",
      status: "ok",
      ms: 0,
      input: { to: "Ada", euros: 1 },
    },
    { ...stamp, type: "run", status: "done", ms: 0 },
  ]);
});

Deno.test("audit() writes denied, failed, invalid and unknown calls, in the model's order", async () => {
  const guard: Middleware = {
    name: "guard",
    approval: (ctx, next) => ctx.call.id === "call_1" ? Promise.resolve(deny("No.")) : next(),
  };
  const { assistant, short } = audited({
    use: [guard],
    steps: [{
      calls: [["pay", { to: "Eve", euros: 1 }], ["pay", { to: "Ada", euros: 101 }], ["pay", {}], ["steal", {}]],
    }, "Done."],
  });
  await assistant.run("Go").result;
  assertEquals(short(), [
    "prompt Go",
    'call 1 call_1 pay deny policy denied {"to":"Eve","euros":1}',
    'call 1 call_2 pay allow policy error {"to":"Ada","euros":101}',
    "call 1 call_3 pay error {}",
    "call 1 call_4 steal error {}",
    "run done",
  ]);
});

Deno.test("audit() writes the final tool and input, also of a denied call", async () => {
  const rename: Middleware = {
    name: "rename",
    tool: (_, next) => next({ name: "give", input: { to: "Bob", euros: 2 } }),
  };
  const double: Middleware = {
    name: "double",
    approval: async (ctx, next) => {
      const beneath = await next();
      const { to, euros } = z.object({ to: z.string(), euros: z.number() }).parse(ctx.input);
      return beneath.type === "allow" && euros < 4 ? allow({ input: { to, euros: euros * 2 } }) : beneath;
    },
  };
  const never: Middleware = { name: "never", approval: () => Promise.resolve(deny("No.")) };
  const ran = audited({ use: [rename, double] });
  await ran.assistant.run("Go").result;
  assertEquals(ran.short()[1], 'call 1 call_1 give allow policy ok {"to":"Bob","euros":4}');
  const refused = audited({ use: [rename, never] });
  await refused.assistant.run("Go").result;
  assertEquals(refused.short()[1], 'call 1 call_1 give deny policy denied {"to":"Bob","euros":2}');
});

Deno.test("audit({ hash: true }) writes the SHA-256 of inputs, independent of the order of keys", async () => {
  const { assistant, short } = audited({
    steps: [paying({ to: "Ada", euros: 1 }, { euros: 1, to: "Ada" }), "Done."],
    options: { hash: true },
  });
  await assistant.run("Pay Ada").result;
  const prompt = "5e9e2506fb791f0a08e1a6c50f150b10a7847362928e2f95d08e924c888ffa21"; // of "Pay Ada", with its quotes
  const input = "ca471243abecdbda1e87b9beda782790584397958df65f11d87db717645050db"; // of {"euros":1,"to":"Ada"}
  assertEquals(short(), [
    `prompt ${prompt}`,
    `call 1 call_1 pay allow policy ok ${input}`,
    `call 1 call_2 pay allow policy ok ${input}`,
    "run done",
  ]);
});

Deno.test("audit() writes a paused call once, after its answer, and the prompt once", async () => {
  const sure: Middleware = { name: "sure", approval: () => Promise.resolve(ask("Sure?")) };
  const { assistant, short } = audited({
    use: [sure],
    steps: [paying({ to: "Ada", euros: 1 }, { to: "Bob", euros: 2 }, { to: "Eve", euros: 3 }), "Done."],
  });
  const { session } = await assistant.run("Go").result;
  const answers = [
    { callId: "call_1", type: "approve" },
    { callId: "call_2", type: "approve", input: { to: "Bob", euros: 1 } },
    { callId: "call_3", type: "deny" },
  ] as const;
  await assistant.resume({ session, answers }).result;
  assertEquals(short(), [
    "prompt Go",
    "run paused",
    'input edit {"to":"Bob","euros":1}', // the edit of a person passes the input hooks
    'call 1 call_1 pay allow person ok {"to":"Ada","euros":1}',
    'call 1 call_2 pay allow person ok {"to":"Bob","euros":1}',
    'call 1 call_3 pay deny person denied {"to":"Eve","euros":3}',
    "run done",
  ]);
});

Deno.test("audit() writes the input that ran and the decision if a hook pauses the run on the way out", async () => {
  const edit: Middleware = {
    name: "edit",
    approval: async (ctx, next) => {
      const verdict = await next();
      return verdict.type === "allow" && ctx.name === "give" ? allow({ input: { to: "Bob", euros: 2 } }) : verdict;
    },
  };
  const review: Middleware = {
    name: "review",
    async tool(ctx, next) {
      const result = await next({ name: "give" });
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Is it right?");
      return result;
    },
  };
  const { assistant, short } = audited({ use: [review, edit] });
  const { session } = await assistant.run("Go").result;
  await assistant.resume({ session, answers: [{ type: "reply", text: "Yes" }] }).result;
  assertEquals(short(), [
    "prompt Go",
    "run paused",
    "input reply Yes",
    'call 1 call_1 give allow policy ok {"to":"Bob","euros":2}',
    "run done",
  ]);
});

Deno.test("audit() writes the input that ran and the decision of a call whose process dies after it ran", async () => {
  const edit: Middleware = {
    name: "edit",
    approval: async (_, next) => {
      const verdict = await next();
      return verdict.type === "allow" ? allow({ input: { to: "Bob", euros: 2 } }) : verdict;
    },
  };
  const { store, saved } = recordingStore();
  const first = audited({ use: [heldUntilSaved(saved), edit] });
  await first.assistant.run({ prompt: "Go", session: "s", store }).result;

  const atDeath = saved.findLast((session) => storedProgress(session) === "tools ran");
  const second = audited({ use: [edit], steps: ["Done."] });
  const other = (await storeWith(atDeath)).store;
  await second.assistant.resume({ session: "s", store: other, answers: [], lost: () => true }).result;
  const call = 'call 1 call_1 pay allow policy ok {"to":"Bob","euros":2}';
  assertEquals([first.short(), second.short()], [["prompt Go", call, "run done"], [call, "run done"]]);
});

Deno.test("audit() writes a refused prompt, and the end of every run", async () => {
  const no: Middleware = { name: "no", prompt: () => Promise.resolve(cancelled("No.")) };
  const refused = audited({ use: [no] });
  await refused.assistant.run("Go").result;
  assertEquals(refused.short(), ["prompt Go", "run cancelled"]);

  const failed = audited({ steps: [{ error: new Error("down") }] });
  await failed.assistant.run("Go").result;
  assertEquals(failed.short(), ["prompt Go", "run failed"]);

  const stopped = audited({ steps: [{ before: () => run.stop() }] });
  const run = stopped.assistant.run("Go");
  await run.result;
  assertEquals(stopped.short(), ["prompt Go", "run aborted"]);

  const broken: Middleware = {
    name: "broken",
    session() {
      throw new Error("broken");
    },
  };
  const thrown = audited({ use: [broken] });
  assertEquals((await thrown.assistant.run("Go").result).status, "failed");
  assertEquals(thrown.short(), ["run threw"]);
});

Deno.test("audit() writes a call if a hook fails or ends the run before its result", async () => {
  const broken: Middleware = {
    name: "broken",
    async tool(ctx, next) {
      await next();
      throw ctx.index === 0 ? ctx.run.end("enough") : new Error("broken");
    },
  };
  const inputs = [{ to: "Ada", euros: 1 }, { to: "Bob", euros: 2 }];
  const { assistant, short } = audited({ use: [broken], steps: [paying(...inputs)] });
  await assistant.run("Go").result;
  assertEquals(short(), [
    "prompt Go",
    'call 1 call_1 pay allow policy ended {"to":"Ada","euros":1}',
    'call 1 call_2 pay allow policy threw {"to":"Bob","euros":2}',
    "run cancelled",
  ]);
});

Deno.test("audit() writes a call that a hook answers, and one that was stopped", async () => {
  const answers: Middleware = {
    name: "answers",
    tool: () => Promise.resolve({ type: "result", status: "ok", parts: [{ type: "text", text: "Known." }] }),
  };
  const answered = audited({ use: [answers] });
  await answered.assistant.run("Go").result;
  assertEquals(answered.short()[1], 'call 1 call_1 pay allow policy ok {"to":"Ada","euros":1}');

  const wait = tool({
    name: "pay",
    description: "Waits",
    input: z.object({}),
    execute: (_, { signal }) => {
      run.stop();
      signal.throwIfAborted();
    },
  });
  const stopped = audited({ tools: [wait] });
  const run = stopped.assistant.run("Go");
  await run.result;
  assertEquals(stopped.short().map((line) => line.split(" {")[0]), [
    "prompt Go",
    "call 1 call_1 pay allow policy aborted",
    "run aborted",
  ]);
});

Deno.test("audit() writes the open calls and the end of a run that is stopped while a hook hangs", async () => {
  const paid = Promise.withResolvers<void>();
  const hang: Middleware = {
    name: "hang",
    async tool(_, next) {
      await next();
      paid.resolve();
      return await new Promise<never>(() => {});
    },
  };
  using time = new FakeTime();
  const { assistant, short } = audited({
    use: [hang],
    steps: [paying({ to: "Ada", euros: 1 }, { to: "Bob", euros: 2 })],
  });
  const run = assistant.run("Go");
  await paid.promise;
  run.stop("deadline"); // a text of the caller, and no limit
  assertEquals((await advanceUntilSettled(time, run.result)).status, "aborted");
  assertEquals(short(), [
    "prompt Go",
    'call 1 call_1 pay allow policy aborted {"to":"Ada","euros":1}',
    'call 1 call_2 pay allow policy aborted {"to":"Bob","euros":2}',
    "run aborted",
  ]);
});

Deno.test("audit() writes the open calls of a run whose session hook fails while a tool hook hangs", async () => {
  const entered = Promise.withResolvers<void>();
  const hang: Middleware = {
    name: "hang",
    async tool() {
      entered.resolve();
      return await new Promise<never>(() => {});
    },
  };
  const failing: Middleware = {
    name: "failing",
    async session(_, next) {
      void next();
      await entered.promise;
      throw new Error("Too slow");
    },
  };
  const { assistant, short } = audited({ use: [failing, hang], steps: [paying({ to: "Ada", euros: 1 })] });
  assertEquals((await assistant.run({ prompt: "Go", onError: () => {} }).result).status, "failed");
  assertEquals(short(), ["prompt Go", "run threw", 'call 1 call_1 pay aborted {"to":"Ada","euros":1}']);
});

Deno.test("audit() writes the calls and the run of a subagent, once, with the run and the call that it works for", async () => {
  const lines: string[] = [];
  const keep = audit((line) => void lines.push(line));
  const ending: Middleware = {
    name: "ending",
    subagent: async (_, next) => {
      const result = await next();
      runs.set(result.run, "child");
      return result;
    },
  };
  const runs = new Map<string, string>();
  for (const own of [[], [keep]]) { // a subagent that has the same middleware does not inherit it again
    lines.length = 0;
    const child = agent({
      name: "child",
      model: scripted(paying({ to: "Ada", euros: 1 }), "Paid."),
      tools: [pay],
      use: own,
    });
    const model = scripted({ calls: [["child", { prompt: "Pay Ada" }]] }, "Done.");
    const result = await agent({ model, tools: [asTool(child)], use: [keep, ending] }).run("Go").result;
    runs.set(result.run, "parent");
    const records: AuditRecord[] = lines.map((line) => JSON.parse(line));
    const shown = records.map((record) => ({
      ...(record.type === "call" ? { call: record.tool } : { type: record.type }),
      run: runs.get(record.run),
      ...(record.parent && { parent: runs.get(record.parent.run), for: record.parent.call }),
    }));
    assertEquals(shown, [
      { type: "prompt", run: "parent" },
      { call: "pay", run: "child", parent: "parent", for: "call_1" },
      { type: "run", run: "child", parent: "parent", for: "call_1" },
      { call: "child", run: "parent" },
      { type: "run", run: "parent" },
    ]);
  }
});

Deno.test("audit() waits until a record is written", async () => {
  const log: string[] = [];
  const slow = audit(async (line) => {
    const { type } = JSON.parse(line);
    log.push(`${type} begins`);
    await settled();
    log.push(`${type} is written`);
  });
  const model = scripted({
    calls: [["pay", { to: "Ada", euros: 1 }]],
    before: () => void log.push("model"),
  }, "Done.");
  await agent({ model, tools: [pay], use: [slow] }).run("Go").result;
  log.push("result");
  assertEquals(log, [
    "prompt begins",
    "prompt is written",
    "model",
    "call begins",
    "call is written",
    "run begins",
    "run is written",
    "result",
  ]);
});

Deno.test("audit() reports a failed write, keeps the result, and writes the next record", async () => {
  const types: string[] = [];
  const broken = audit(async (line) => {
    const { type } = JSON.parse(line);
    types.push(type);
    await Promise.resolve();
    if (type === "call") throw new RangeError("disk full");
  });
  const model = scripted(paying({ to: "Ada", euros: 1 }), "Done.");
  const errors: string[] = [];
  const run = agent({ model, tools: [pay], use: [broken] }).run({
    prompt: "Go",
    onError: (error) => errors.push(String(error)),
  });
  const warnings: unknown[] = [];
  for await (const event of run.events) {
    if (event.type === "warning") warnings.push({ ...event, error: typeof event.error });
  }
  assertEquals([(await run.result).text, errors], ["Done.", ["RangeError: disk full"]]);
  assertEquals(types, ["prompt", "call", "run"]);
  assertEquals(warnings, [{
    type: "warning",
    code: "hook.failed",
    message: "An audit record is missing: RangeError.",
    middleware: "audit",
    point: "tool",
    error: "string",
  }]);
});

Deno.test("audit() must stand after redact(), and then writes no secret", async () => {
  const lines: string[] = [];
  const keep = audit((line) => void lines.push(line));
  const hide = redact({ secrets: ["hunter2", "123456"] });
  assertThrows(
    () => agent({ model: scripted(), use: [keep, hide] }),
    TypeError,
    'Cannot use "audit" before "redact": put redact() first in use',
  );
  const model = scripted(paying({ to: "hunter2", euros: 123456 }), "Done.");
  const edit: Middleware = { name: "edit", approval: (_, next) => next() };
  await agent({ model, tools: [pay], use: [hide, keep, edit] }).run("Pay hunter2").result;
  assertEquals(lines.length, 3);
  assertEquals(lines.filter((line) => /hunter2|123456/.test(line)), []);
});
