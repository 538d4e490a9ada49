import { agent, type Middleware, reply, state, text, textOf } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { at, batch, type Begun, call, drop, runBatch, three, watch, weather } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";
import { withoutSchemas } from "../support/without_schemas.ts";

Deno.test("a call waits for a person: its siblings run, and the code after next() runs once, with the answer", async () => {
  const log: string[] = [];
  const post: Middleware = {
    name: "post",
    async tool(_, next) {
      const result = await next();
      log.push(`post ${textOf(result)}`);
      return result;
    },
  };
  const calls = [call("a"), call("b", { name: "drop" }), call("c")];
  const started = batch(calls, { tools: [weather(), drop(log)], use: [watch(log), post] });
  const first = await started.run().outcome;
  assertEquals(log.splice(0), [
    ...["in a", "in b", "in c"],
    ...["post sun in a", "out a ok", "finally a", "finally b", "post sun in c", "out c ok", "finally c"],
  ]);
  assertEquals(first.result.status, "paused");
  assertEquals(withoutSchemas(first.result.questions), [
    { callId: "b", tool: "drop", input: { city: "b" }, questions: ["Run drop?"] },
  ]);
  assertEquals(first.lines, []);

  const second = await started.resume(first.result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals(log, ["in b again", "drop b", "post dropped b", "out b ok", "finally b"]);
  assertEquals(second.lines, [
    "call weather drop weather",
    "ok sun in a",
    "ok dropped b",
    "ok sun in c",
    "assistant Done.",
  ]);
  started.model.done();
});

Deno.test("context that hooks add before a pause is kept until the batch is done", async () => {
  const guide: Middleware = {
    name: "guide",
    tool: async (ctx, next) => ({ ...await next(), context: [`after ${ctx.call.id}.`] }),
  };
  const calls = [call("a", { name: "drop" }), call("b")];
  const started = batch(calls, { tools: [weather(), drop()], use: [guide] });
  const { result: { session } } = await started.run().outcome;
  const { lines } = await started.resume(session, [{ callId: "a", type: "deny" }]).outcome;
  assertEquals(lines.slice(1), [
    "denied A person said no.",
    "ok sun in b",
    "context after a.after b.",
    "assistant Done.",
  ]);
});

Deno.test("a hook that catches a pause cannot change it", async () => {
  const swallow: Middleware["tool"] = async (_, next) => {
    try {
      return await next();
    } catch {
      return text("made up");
    }
  };
  const wrap: Middleware["tool"] = async (_, next) => {
    try {
      return await next();
    } catch (cause) {
      throw new Error("wrapped", { cause });
    }
  };
  const hooks: readonly Middleware[] = [
    { name: "swallow", tool: swallow },
    { name: "wrap", tool: wrap },
    {
      name: "turn",
      async turn(_, next) {
        try {
          return await next();
        } catch {
          return { response: reply("made up"), results: [] };
        }
      },
    },
    {
      name: "answer",
      async prompt(_, next) {
        try {
          return await next();
        } catch {
          return { status: "done", text: "made up" };
        }
      },
    },
    {
      name: "prompt",
      async prompt(_, next) {
        try {
          return await next();
        } catch (cause) {
          throw new Error("wrapped", { cause });
        }
      },
    },
  ];
  for (const hook of hooks) {
    const log: string[] = [];
    const started = batch([call("a"), call("b", { name: "drop" })], { tools: [weather(), drop(log)], use: [hook] });
    const { result } = await started.run().outcome;
    assertEquals([result.status, result.questions.length], ["paused", 1]);
    const { lines } = await started.resume(result.session, [{ callId: "b", type: "approve" }]).outcome;
    assertEquals(lines, ["call weather drop", "ok sun in a", "ok dropped b", "assistant Done."]);
    assertEquals(log, ["drop b"]);
  }
});

Deno.test("a run paused before next() executes nothing, and all calls of the batch enter again", async () => {
  const log: string[] = [];
  const gate: Middleware = {
    name: "gate",
    async tool(ctx, next) {
      if (ctx.call.id === "b" && !ctx.resumed) throw ctx.run.pause("Go on?");
      return await next();
    },
  };
  const started = batch(three, {
    tools: [weather(({ city }) => {
      log.push(`run ${city}`);
      return city;
    })],
    use: [watch(log), gate],
  });
  const { result, lines } = await started.run().outcome;
  assertEquals(log.splice(0), ["in a", "in b", "finally b", "finally a"]);
  assertEquals([result.status, withoutSchemas(result.questions), lines], ["paused", [{ questions: ["Go on?"] }], []]);
  const second = await started.resume(result.session).outcome;
  assertEquals(log, [
    ...["in a again", "in b again", "in c again"],
    ...["run a", "run b", "run c"],
    ...["out a ok", "finally a", "out b ok", "finally b", "out c ok", "finally c"],
  ]);
  assertEquals(second.lines.slice(1), ["ok a", "ok b", "ok c", "assistant Done."]);
});

Deno.test("a run paused while its calls run: siblings finish, and the paused call enters again", async () => {
  const log: string[] = [];
  let paused = false;
  const started = batch(three, {
    use: [
      watch(log),
      at("b", {
        async execute(ctx, next) {
          if (paused) return await next();
          paused = true;
          throw ctx.run.pause("Log in first.");
        },
      }),
    ],
  });
  const { result } = await started.run().outcome;
  assertEquals([result.status, withoutSchemas(result.questions)], ["paused", [{ questions: ["Log in first."] }]]);
  assertEquals(log.splice(0), [
    ...["in a", "in b", "in c"],
    ...["out a ok", "finally a", "finally b", "out c ok", "finally c"],
  ]);
  const { lines } = await started.resume(result.session).outcome;
  assertEquals(log, ["in b again", "out b ok", "finally b"]);
  assertEquals(lines.slice(1), ["ok sun in a", "ok sun in b", "ok sun in c", "assistant Done."]);
});

/** Pauses after `next()`, once. Returns the result with the reply. */
function asksAfter(id: string): Middleware {
  const asked = state("asksAfter.asked", () => false);
  return at(id, {
    async tool(ctx, next) {
      const result = await next();
      if (asked.get(ctx)) return result;
      asked.set(ctx, true);
      throw ctx.run.pause("Is this right?");
    },
  });
}

Deno.test("a run paused after next(): the call leaves again with its result, and a sibling stays open", async () => {
  const log: string[] = [];
  const tools = [
    weather(({ city }) => {
      log.push(`run ${city}`);
      return `sun in ${city}`;
    }),
    drop(log),
  ];
  const calls = [call("a"), call("b"), call("c"), call("d", { name: "drop" })];
  const started = batch(calls, { tools, use: [watch(log), asksAfter("b")] });
  const { result, lines } = await started.run().outcome;
  assertEquals([result.status, lines], ["paused", []]);
  assertEquals(withoutSchemas(result.questions), [
    { questions: ["Is this right?"] },
    { callId: "d", tool: "drop", input: { city: "d" }, questions: ["Run drop?"] },
  ]);
  assertEquals(log.splice(0), [
    ...["in a", "in b", "in c", "in d", "run a", "run b", "run c"],
    ...["out a ok", "finally a", "finally b", "out c ok", "finally c", "finally d"],
  ]);
  const second = await started.resume(result.session, [{ callId: "d", type: "approve" }]).outcome;
  assertEquals(log, ["in b again", "in d again", "drop d", "out b ok", "finally b", "out d ok", "finally d"]);
  assertEquals(second.lines.slice(1), ["ok sun in a", "ok sun in b", "ok sun in c", "ok dropped d", "assistant Done."]);
});

Deno.test("the result of a call that a hook paused after next() is withheld if the run ends", async () => {
  const ends = at("c", {
    async tool(ctx, next) {
      const result = await next();
      ctx.run.end("enough");
      return result;
    },
  });
  const { result, lines } = await runBatch(three, { use: [asksAfter("b"), ends] });
  assertEquals([result.status, lines.slice(1)], [
    "cancelled",
    ["ok sun in a", "error Withheld: the run was ended.", "ok sun in c"],
  ]);
});

Deno.test("a call that enters again after a pause is over the limit if it was before", async () => {
  const asked = state("asked", () => false);
  const gate = at("b", {
    tool(ctx, next) {
      if (asked.get(ctx)) return next();
      asked.set(ctx, true);
      throw ctx.run.pause("Go on?");
    },
  });
  const started = batch(three, { use: [gate], limits: { calls: 2 } });
  const { result } = await started.run().outcome;
  const { lines } = await started.resume(result.session).outcome;
  const over = "skipped Not run: this run may make 2 calls.";
  assertEquals(lines.slice(1), ["ok sun in a", "ok sun in b", over, "assistant Done."]);
});

Deno.test("a run paused after next() pauses, even if an outer hook catches the pause", async () => {
  const swallow: Middleware = {
    name: "swallow",
    async turn(_, next) {
      try {
        return await next();
      } catch {
        return { response: reply("made up"), results: [] };
      }
    },
  };
  const started = batch(three, {
    use: [
      swallow,
      at("b", {
        async tool(ctx, next) {
          await next();
          throw ctx.run.pause("Is this right?");
        },
      }),
    ],
  });
  const { result } = await started.run().outcome;
  assertEquals([result.status, withoutSchemas(result.questions)], ["paused", [{ questions: ["Is this right?"] }]]);
});

Deno.test("a run paused by an error hook: the failed call enters again", async () => {
  let broken = true;
  const started = batch(three, {
    tools: [weather(({ city }) => {
      if (city === "b" && broken) throw new Error("not logged in");
      return city;
    })],
    use: [{
      name: "asks",
      error(ctx) {
        throw ctx.run.pause("Log in, please.");
      },
    }],
  });
  const { result } = await started.run().outcome;
  assertEquals([result.status, withoutSchemas(result.questions)], ["paused", [{ questions: ["Log in, please."] }]]);
  broken = false;
  const { lines } = await started.resume(result.session).outcome;
  assertEquals(lines.slice(1), ["ok a", "ok b", "ok c", "assistant Done."]);
});

Deno.test("a call that enters again is not counted again", async () => {
  const assistant = agent({
    model: scripted({ calls: [call("a"), call("b", { name: "drop" })] }, { calls: [call("c"), call("d")] }, "Done."),
    tools: [weather(), drop()],
    limits: { calls: 3 },
  });
  const { session } = await assistant.run("Hi").result;
  const { messages } = await assistant.resume({ session, answers: [{ callId: "b", type: "approve" }] }).result;
  assertEquals(lines(messages), [
    "user Hi",
    "call weather drop",
    "ok sun in a",
    "ok dropped b",
    "call weather weather",
    "ok sun in c",
    "skipped Not run: this run may make 3 calls.",
    "assistant Done.",
  ]);
});

Deno.test("a run that fails or is stopped does not wait for a person: the call is answered", async () => {
  const fails = at("c", {
    async tool(_, next) {
      await next();
      throw new Error("boom");
    },
  });
  const calls = [call("a"), call("b", { name: "drop" }), call("c")];
  const first = await runBatch(calls, { tools: [weather(), drop()], use: [fails] });
  assertEquals([first.result.status, first.result.questions], ["failed", []]);
  assertEquals(first.lines.slice(1), [
    "ok sun in a",
    "aborted Not run: the run was ended.",
    "error Withheld: a hook failed.",
  ]);

  const ends = at("c", {
    async tool(ctx, next) {
      const result = await next();
      ctx.run.end("enough");
      return result;
    },
  });
  const swallow: Middleware = {
    name: "swallow",
    async tool(_, next) {
      try {
        return await next();
      } catch {
        return text("made up");
      }
    },
  };
  const second = await runBatch(calls, { tools: [weather(), drop()], use: [swallow, ends] });
  assertEquals([second.result.status, second.result.reason], ["cancelled", "enough"]);
  assertEquals(second.lines.slice(1), ["ok sun in a", "aborted Not run: enough.", "ok sun in c"]);

  const log: string[] = [];
  const leave = weather(({ city }) => city === "c" ? running.stop("leave") : "sun");
  const running: Begun = batch(calls, { tools: [leave, drop()], use: [watch(log)] }).run();
  const third = await running.outcome;
  assertEquals(log.slice(-4), ["out b aborted", "finally b", "out c ok", "finally c"]);
  assertEquals([third.result.status, third.result.reason], ["aborted", "leave"]);
  assertEquals(third.lines.slice(1), ["ok sun", "aborted Not run: the run was stopped.", "ok"]);
  for (const { events } of [first, second, third]) {
    const finished = events.flatMap((event) => event.type === "tool.finished" ? [event.call] : []);
    assertEquals(finished.sort(), ["a", "b", "c"]);
  }
});
