import { agent, allow, continueWith, denied, deny, type Middleware, skipped, text } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { at, batch, call, drop, runBatch, three, watch, weather } from "../../support/batch.ts";
import { lines } from "../../support/transcript_lines.ts";

Deno.test("Engine: the first deny ends the approval, and all guards must allow", async () => {
  const log: string[] = [];
  const guard = (name: string, verdict: ReturnType<typeof allow>): Middleware => ({
    name,
    approval(ctx) {
      log.push(`${name} ${ctx.call.id}`);
      return Promise.resolve(verdict);
    },
  });
  const some = at("a", { approval: () => Promise.resolve(deny("no")) });
  await runBatch([call("a"), call("b")], { use: [guard("first", allow()), some, guard("last", allow())] });
  assertEquals(log, ["first a", "first b", "last b"]);
});

Deno.test("Engine: an answer in place of a tool is approved, reported as a call, and reviewed", async () => {
  const log: string[] = [];
  const { events, lines } = await runBatch([call("a")], {
    tools: [weather(() => log.push("run"))],
    use: [
      watch(log),
      { name: "cache", tool: () => Promise.resolve(text("cached")) },
      {
        name: "guard",
        approval(ctx, next) {
          log.push(`asked ${ctx.proposed?.status}`);
          return next();
        },
      },
    ],
  });
  assertEquals(log, ["in a", "asked ok", "out a ok", "finally a"]);
  const reported = events.flatMap((event) => /^(tool|approval)\./.test(event.type) ? [event.type] : []);
  assertEquals(reported, ["tool.started", "approval.decided", "tool.finished"]);
  assertEquals(lines, ["call weather", "ok cached", "assistant Done."]);
});

Deno.test("Engine: an empty answer is an answer; a missing answer is an error", async () => {
  const log: string[] = [];
  const tools = [weather(() => log.push("run"))];
  const empty = await runBatch([call("a")], {
    tools,
    use: [{ name: "empty", tool: () => Promise.resolve(text("")) }],
  });
  assertEquals(empty.lines, ["call weather", "ok", "assistant Done."]);
  const missing = undefined as never; // a hook written in JavaScript may return this
  const none = await runBatch([call("a")], { tools, use: [{ name: "none", tool: () => Promise.resolve(missing) }] });
  assertEquals(
    String(none.result.error),
    `TypeError: Cannot leave tool: "none" returned nothing; return the result of next(), or an answer`,
  );
  assertEquals(log, []);
});

Deno.test("Engine: a denied call does not end the turn; the model receives the reason", async () => {
  const started = batch([call("a")], { use: [{ name: "guard", approval: () => Promise.resolve(deny("not here")) }] });
  const { result } = await started.run().outcome;
  assertEquals(result.status, "done");
  assertEquals(started.model.requests.map(({ messages }) => lines(messages)), [
    ["user Hi"],
    ["user Hi", "call weather", "denied not here"],
  ]);
});

Deno.test("Engine: a denied call comes out through tool, and never enters execute", async () => {
  const log: string[] = [];
  const inner: Middleware = {
    name: "inner",
    execute(ctx, next) {
      log.push(`execute ${ctx.callId}`);
      return next();
    },
    error(_, next) {
      log.push("error");
      return next();
    },
  };
  await runBatch(three, {
    use: [
      watch(log),
      inner,
      at("a", { approval: () => Promise.resolve(deny("no")) }),
      at("b", { tool: () => Promise.resolve(denied("no")) }),
    ],
  });
  assertEquals(log, [
    ...["in a", "in b", "in c", "execute c"],
    ...["out a denied", "finally a", "out b denied", "finally b", "out c ok", "finally c"],
  ]);
});

Deno.test("Engine: a skipped call is answered, and not repeated in the next run", async () => {
  const log: string[] = [];
  const model = scripted({ calls: three }, "Done.", "Again.");
  const assistant = agent({
    model,
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [at("b", { tool: () => Promise.resolve(skipped("not now")) })],
  });
  const { session } = await assistant.run("Hi").result;
  const { messages } = await assistant.run({ prompt: "And?", session }).result;
  assertEquals(log, ["run a", "run c"]);
  const [, second] = model.requests;
  assertEquals(lines(second?.messages ?? []), [
    "user Hi",
    "call weather weather weather",
    "ok 1",
    "skipped not now",
    "ok 2",
  ]);
  assertEquals(lines(messages.slice(-2)), ["user And?", "assistant Again."]);
});

Deno.test("Engine: denying a call, continuing and adding context happen at three different points", async () => {
  let stops = 0;
  const speaks: Middleware = {
    name: "speaks",
    async approval(ctx, next) {
      return ctx.call.id === "a" ? deny("blocked") : await next();
    },
    async tool(ctx, next) {
      const result = await next();
      return ctx.call.id === "b" ? { ...result, context: ["mind the rain"] } : result;
    },
    async stop(_, next) {
      return stops++ === 0 ? continueWith("not yet") : await next();
    },
  };
  const model = scripted({ calls: three }, "Done.", "Really done.");
  const { messages } = await agent({ model, tools: [weather()], use: [speaks] }).run("Hi").result;
  assertEquals(lines(messages), [
    "user Hi",
    "call weather weather weather",
    "denied blocked",
    "ok sun in b",
    "ok sun in c",
    "context mind the rain",
    "assistant Done.",
    "stop not yet",
    "assistant Really done.",
  ]);
});

Deno.test("Engine: an unknown verdict of a guard denies the call", async () => {
  for (const word of [{ decision: "approve" }, { decision: "block" }, { permissionDecision: "allow" }, {}]) {
    const foreign = word as never; // a hook written for another system may return this
    const { lines } = await runBatch([call("a")], {
      use: [{ name: "foreign", approval: () => Promise.resolve(foreign) }],
    });
    assertEquals(lines, ["call weather", "denied A guard failed.", "assistant Done."]);
  }
});

Deno.test("Engine: a deny without a reason has a default text", async () => {
  const speechless = { type: "deny" } as never; // a guard written in JavaScript may return this
  for (const verdict of [speechless, deny("")]) {
    const { lines } = await runBatch([call("a")], {
      use: [{ name: "speechless", approval: () => Promise.resolve(verdict) }],
    });
    assertEquals(lines, ["call weather", "denied It is not allowed.", "assistant Done."]);
  }
  const started = batch([call("a", { name: "drop" })], { tools: [drop()] });
  const { result: { session } } = await started.run().outcome;
  const { lines } = await started.resume(session, [{ callId: "a", type: "deny", reason: "" }]).outcome;
  assertEquals(lines, ["call drop", "denied A person said no.", "assistant Done."]);
});

Deno.test("Engine: a changed input is not an approval; it is validated, and every guard sees it", async () => {
  const log: string[] = [];
  const elsewhere: Middleware = { name: "elsewhere", tool: (_, next) => next({ input: { city: "oslo" } }) };
  const asked = await runBatch([call("a", { name: "drop" })], { tools: [drop(log)], use: [elsewhere] });
  assertEquals(asked.result.questions.map(({ input }) => input), [{ city: "oslo" }]);
  const wrong: Middleware = { name: "wrong", tool: (_, next) => next({ input: {} }) };
  const invalid = await runBatch([call("a", { name: "drop" })], { tools: [drop(log)], use: [wrong] });
  assertEquals(
    invalid.lines[1],
    "error The input of drop is not valid: city: Invalid input: expected string, received undefined",
  );
  const edits: Middleware = { name: "edits", approval: () => Promise.resolve(allow({ input: { city: "oslo" } })) };
  const noOslo: Middleware = {
    name: "noOslo",
    approval: async ({ input }, next) => JSON.stringify(input).includes("oslo") ? deny("no oslo") : await next(),
  };
  const recheck = await runBatch([call("a")], { use: [edits, noOslo] });
  assertEquals(recheck.lines[1], "denied no oslo");
  const denies: Middleware = { name: "denies", approval: () => Promise.resolve(deny("no")) };
  const discarded = await runBatch([call("a")], { use: [denies, edits] });
  assertEquals(discarded.lines[1], "denied no");
  assertEquals(log, []);
});

Deno.test("Engine: no allow overrides a deny, wherever it stands", async () => {
  const bypass: Middleware = { name: "bypass", approval: () => Promise.resolve(allow()) };
  const rule: Middleware = { name: "rule", approval: () => Promise.resolve(deny("by rule")) };
  for (const use of [[bypass, rule], [rule, bypass], [bypass, rule, bypass]]) {
    const { lines } = await runBatch([call("a")], { use });
    assertEquals(lines[1], "denied by rule");
  }
});
