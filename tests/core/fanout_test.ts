import {
  agent,
  type AnyTool,
  denied,
  End,
  type Event,
  failed,
  memory,
  type Middleware,
  skip,
  skipped,
  text,
  textOf,
  tool,
  ToolError,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  at,
  barrier,
  batch,
  call,
  drop,
  malformed,
  runBatch,
  settled,
  three,
  watch,
  weather,
} from "../support/batch.ts";
import { eventLines, named } from "../support/run_events.ts";
import { saving } from "../support/saving.ts";
import { lines as linesOf } from "../support/transcript_lines.ts";
import { withoutSchemas } from "../support/without_schemas.ts";

Deno.test("calls enter one after another, run in parallel, and leave one after another", async () => {
  const log: string[] = [];
  const both = barrier(2);
  const parallel = weather(async ({ city }) => {
    log.push(`run ${city}`);
    await both();
    return `sun in ${city}`;
  });
  const { lines } = await runBatch([...three, call("d"), call("e", { name: "nope" })], {
    tools: [parallel],
    use: [
      watch(log),
      at("b", { tool: () => Promise.resolve(denied("no")) }),
      at("c", { tool: () => Promise.resolve(text("cached")) }),
    ],
  });
  assertEquals(log, [
    ...["in a", "in b", "in c", "in d", "in e"],
    ...["run a", "run d"],
    ...["out a ok", "finally a", "out b denied", "finally b", "out c ok", "finally c", "out d ok", "finally d"],
    ...["out e error", "finally e"],
  ]);
  assertEquals(lines, [
    "call weather weather weather weather nope",
    "ok sun in a",
    "denied no",
    "ok cached",
    "ok sun in d",
    'error There is no tool "nope". The tools are: weather',
    "assistant Done.",
  ]);
});

Deno.test("the events of a call are emitted outside its hooks", async () => {
  const quiet: Middleware = {
    name: "quiet",
    async tool(ctx, next) {
      await next({ emit: (event) => event.type === "tool.progress" ? undefined : ctx.emit(event) });
      return text("masked");
    },
  };
  const busy = weather(({ city }, { progress }) => {
    progress("half");
    return `sun in ${city}`;
  });
  const { events, result } = await runBatch([call("a"), call("b")], { tools: [busy], use: [at("a", quiet)] });
  const start = events.findIndex(({ type }) => type === "tool.started");
  const end = events.findIndex(({ type }) => type === "turn.finished");
  assertEquals(eventLines(named(events.slice(start, end), result)), [
    "tool.started 1 a weather run:1 0",
    "approval.decided 1 a allow policy",
    "tool.started 1 b weather run:1 1",
    "approval.decided 1 b allow policy",
    "tool.progress 1 b half",
    "tool.finished 1 a",
    "tool.finished 1 b",
  ]);
  const results = events.flatMap((event) => event.type === "tool.finished" ? [textOf(event.result)] : []);
  assertEquals(results, ["masked", "sun in b"]);
});

Deno.test("every call has one result, in the model's order, whatever its outcome", async () => {
  using time = new FakeTime();
  const moody = weather(({ city }, { signal }) => {
    switch (city) {
      case "internal":
        throw new Error("secret");
      case "told":
        throw new ToolError("There is no such city.");
      case "rejects":
        return Promise.reject(new Error("secret"));
      case "slow":
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      default:
        return `sun in ${city}`;
    }
  });
  const calls = [
    call("fine"),
    call("denied"),
    call("internal"),
    call("told"),
    call("rejects"),
    call("slow"),
    call("skipped"),
    call("failed"),
    call("unknown", { name: "nope" }),
    call("invalid", { city: 7 }),
    malformed,
    call("withheld"),
    call("last"),
  ];
  const running = batch(calls, {
    tools: [moody],
    use: [
      { error: () => Promise.resolve(skip()) },
      at("denied", { approval: () => Promise.resolve({ type: "deny", reason: "no" }) }),
      at("skipped", { tool: () => Promise.resolve(skipped("not now")) }),
      at("failed", { tool: () => Promise.resolve(failed("it broke")) }),
      at("withheld", {
        async tool(_, next) {
          await next();
          throw new Error("the redactor broke");
        },
      }),
      at("slow", {
        execute: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, AbortSignal.timeout(50)]) }),
      }),
    ],
  }).run();
  await time.tickAsync(50);
  const { lines, result } = await running.outcome;
  assertEquals(lines, [
    `call ${calls.map(({ name }) => name).join(" ")}`,
    "ok sun in fine",
    "denied no",
    "error weather failed.",
    "error There is no such city.",
    "error weather failed.",
    "timeout weather did not finish in time.",
    "skipped not now",
    "error it broke",
    'error There is no tool "nope". The tools are: weather',
    "error The input of weather is not valid: city: Invalid input: expected string, received number",
    "error The input of weather is not valid JSON: Unexpected end of JSON input",
    "error Withheld: a hook failed.",
    "ok sun in last",
    "assistant Done.",
  ]);
  const [, , message] = result.messages;
  assertEquals(message?.role === "tool" && message.results.map(({ callId }) => callId), calls.map(({ id }) => id));
});

Deno.test("the return value of a tool reaches the model as text, as JSON, or as the given result", async () => {
  const plain = weather(({ city }) => {
    switch (city) {
      case "object":
        return { sun: true };
      case "number":
        return Promise.resolve(7);
      case "nothing":
        return undefined;
      case "result":
        return { ...denied("not here"), context: ["ask elsewhere"] };
      default:
        return "sun";
    }
  });
  const calls = ["text", "object", "number", "nothing", "result"].map((id) => call(id));
  const { lines } = await runBatch(calls, { tools: [plain] });
  assertEquals(lines.slice(1), [
    "ok sun",
    'ok {"sun":true}',
    "ok 7",
    "ok",
    "denied not here",
    "context ask elsewhere",
    "assistant Done.",
  ]);
});

Deno.test("a schema that throws fails only its own call", async () => {
  const picky = tool({
    name: "picky",
    description: "Breaks",
    input: z.object({ city: z.string() }).refine(() => {
      throw new Error("the schema broke");
    }),
    execute: () => "never",
  });
  const { lines, errors } = await runBatch([call("a", { name: "picky" }), call("b")], { tools: [picky, weather()] });
  assertEquals(lines, [
    "call picky weather",
    "error The input of picky could not be checked.",
    "ok sun in b",
    "assistant Done.",
  ]);
  assertEquals(errors.map(String), ["Error: the schema broke"]);
});

Deno.test("the context of hooks and results becomes one message after the batch, in the order of the calls", async () => {
  const guide: Middleware = {
    name: "guide",
    async tool(ctx, next) {
      const result = await next();
      return { ...result, context: [...result.context ?? [], `after ${ctx.call.id}`] };
    },
  };
  const { lines, result } = await runBatch([call("a"), call("b")], { use: [guide] });
  assertEquals(lines, [
    "call weather weather",
    "ok sun in a",
    "ok sun in b",
    "context after aafter b",
    "assistant Done.",
  ]);
  assertEquals(result.messages.length, 5);
});

Deno.test("a hook throws before next(): no call runs, all hooks unwind, every call has a result", async () => {
  const log: string[] = [];
  const { lines, errors, result, events } = await runBatch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [watch(log), at("b", { tool: () => Promise.reject(new Error("boom")) })],
  });
  assertEquals(log, ["in a", "in b", "finally b", "out a aborted", "finally a"]);
  assertEquals(lines, [
    "call weather weather weather",
    "aborted Not run: a hook failed.",
    "error Withheld: a hook failed.",
    "aborted Not run: a hook failed.",
  ]);
  assertEquals([result.status, String(result.error), errors.map(String)], ["failed", "Error: boom", ["Error: boom"]]);
  const reported = events.flatMap((event) =>
    event.type === "tool.started" || event.type === "tool.finished" ? [`${event.type} ${event.call}`] : []
  );
  assertEquals(reported, [
    ...["tool.started a", "tool.started b"],
    ...["tool.finished a", "tool.finished b", "tool.started c", "tool.finished c"],
  ]);
});

Deno.test("a hook that throws after next() loses its own result, and the original result is never emitted", async () => {
  const log: string[] = [];
  const { lines, result, events } = await runBatch(three, {
    use: [
      watch(log),
      at("b", {
        async tool(_, next) {
          await next();
          throw new Error("boom");
        },
      }),
    ],
  });
  assertEquals(log, ["in a", "in b", "in c", "out a ok", "finally a", "finally b", "out c ok", "finally c"]);
  assertEquals(lines, ["call weather weather weather", "ok sun in a", "error Withheld: a hook failed.", "ok sun in c"]);
  assertEquals([result.status, String(result.error)], ["failed", "Error: boom"]);
  assertEquals(JSON.stringify(events).includes("sun in b"), false);
});

Deno.test("each hook that throws after next() reaches the error hooks and the operator", async () => {
  const decidedOn: string[] = [];
  const { errors, result } = await runBatch(three, {
    use: [
      {
        name: "judge",
        async error({ error, source }, next) {
          decidedOn.push(`${source} ${error}`);
          return await next();
        },
      },
      {
        name: "broken",
        async tool(ctx, next) {
          await next();
          throw new Error(ctx.call.id);
        },
      },
    ],
  });
  assertEquals(decidedOn, ["tool Error: a", "tool Error: b", "tool Error: c"]);
  assertEquals(String(result.error), "Error: a");
  assertEquals(errors.map(String).sort(), ["Error: a", "Error: b", "Error: c"]);
});

Deno.test("a hook that failed loses only its result if an error hook decides to skip", async () => {
  const { lines, errors } = await runBatch(three, {
    use: [
      { error: () => Promise.resolve(skip()) },
      at("b", {
        async tool(_, next) {
          await next();
          throw new Error("boom");
        },
      }),
    ],
  });
  assertEquals(lines.slice(1), ["ok sun in a", "error Withheld: a hook failed.", "ok sun in c", "assistant Done."]);
  assertEquals(errors.map(String), ["Error: boom"]);
});

Deno.test("an execute hook that returns no result is named in the error", async () => {
  const wrong = "sun" as never; // a hook written in JavaScript may return this
  const { lines, errors } = await runBatch([call("a")], {
    use: [{ name: "wrong", execute: () => Promise.resolve(wrong) }],
  });
  assertEquals(lines, ["call weather", "error weather failed.", "assistant Done."]);
  assertEquals(errors.map(String), [
    'TypeError: Cannot leave execute: "wrong" returned no result; expected text(), denied() or failed()',
  ]);
});

Deno.test("a tool hook that returns no result is named in the error", async () => {
  for (const given of ["sun", { ok: true }, { type: "result", status: "ok" }, { ...text("sun"), parts: "sun" }]) {
    const wrong = given as never; // a hook written in JavaScript may return this
    const { result } = await runBatch([call("a")], { use: [{ name: "wrong", tool: () => Promise.resolve(wrong) }] });
    assertEquals(
      String(result.error),
      'TypeError: Cannot leave tool: "wrong" returned no result; expected text(), denied() or failed()',
    );
  }
});

Deno.test("a hook that does not await next() at tool is named in the error, and no call runs", async () => {
  const log: string[] = [];
  const lazy: Middleware = {
    name: "lazy",
    tool(_, next) {
      next();
      return Promise.resolve(text("x"));
    },
  };
  const { lines, result } = await runBatch([call("a")], { tools: [weather(() => log.push("run"))], use: [lazy] });
  assertEquals(String(result.error), 'TypeError: Cannot leave tool: "lazy" did not await next()');
  assertEquals(lines, ["call weather", "error Withheld: a hook failed."]);
  await settled();
  assertEquals(log, []);
});

Deno.test("an event filter that drops a required event fails the run, and all hooks unwind", async () => {
  for (const type of ["tool.started", "approval.decided", "tool.finished"] satisfies Event["type"][]) {
    const log: string[] = [];
    const { result, lines } = await runBatch(three, {
      use: [watch(log), {
        name: "filter",
        turn: (ctx, next) =>
          next({
            emit: (event) => event.type === type && event.call === "b" ? undefined : ctx.emit(event),
          }),
      }],
    });
    const complaint = "a filter may drop only deltas, progress, notices and data";
    assertEquals(String(result.error), `TypeError: Cannot drop ${type}: ${complaint}`);
    assertEquals(
      log.filter((line) => line.startsWith("in")).length,
      log.filter((line) => line.startsWith("fin")).length,
    );
    assertEquals(lines.length, 4);
  }
});

Deno.test("a run that ends before the calls executes nothing, and all hooks unwind", async () => {
  const log: string[] = [];
  const { lines, result } = await runBatch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [
      watch(log),
      at("c", {
        tool(ctx) {
          throw ctx.run.end("enough");
        },
      }),
    ],
  });
  assertEquals(log, [
    ...["in a", "in b", "in c", "finally c"],
    ...["out a aborted", "finally a", "out b aborted", "finally b"],
  ]);
  assertEquals(lines.slice(1), ["aborted Not run: enough.", "aborted Not run: enough.", "aborted Not run: enough."]);
  assertEquals([result.status, result.reason], ["cancelled", "enough"]);
});

Deno.test("an End that a hook constructs ends the run too", async () => {
  const log: string[] = [];
  const { result, lines } = await runBatch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [at("b", { tool: () => Promise.reject(new End("enough")) })],
  });
  assertEquals([result.status, result.reason, log], ["cancelled", "enough", []]);
  assertEquals(lines.slice(1), Array(3).fill("aborted Not run: enough."));
});

Deno.test("a run that a guard ends executes nothing", async () => {
  const log: string[] = [];
  const { lines, result } = await runBatch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [at("b", {
      async approval(ctx, next) {
        ctx.run.end("enough", { as: "failed" });
        return await next();
      },
    })],
  });
  assertEquals(log, []);
  assertEquals(lines.slice(1), ["aborted Not run: enough.", "aborted Not run: enough.", "aborted Not run: enough."]);
  assertEquals([result.status, result.reason], ["failed", "enough"]);
});

Deno.test("a run that ends after the calls keeps every reviewed result", async () => {
  const { lines, result } = await runBatch(three, {
    use: [at("a", {
      async tool(ctx, next) {
        const reviewed = await next();
        ctx.run.end("after");
        return reviewed;
      },
    })],
  });
  assertEquals(lines, ["call weather weather weather", "ok sun in a", "ok sun in b", "ok sun in c"]);
  assertEquals([result.status, result.reason], ["cancelled", "after"]);
});

Deno.test("a hook that throws the end after next() has not reviewed its result", async () => {
  const { lines, result } = await runBatch(three, {
    use: [at("b", {
      async tool(ctx, next) {
        await next();
        throw ctx.run.end("enough");
      },
    })],
  });
  assertEquals(lines.slice(1), ["ok sun in a", "error Withheld: enough.", "ok sun in c"]);
  assertEquals([result.status, result.reason], ["cancelled", "enough"]);
});

Deno.test("a run that ends while its calls run lets them finish", async () => {
  const { lines, result } = await runBatch(three, {
    use: [at("b", {
      execute(ctx) {
        throw ctx.run.end("enough");
      },
    })],
  });
  assertEquals(lines.slice(1), ["ok sun in a", "aborted Stopped before it was done.", "ok sun in c"]);
  assertEquals([result.status, result.reason], ["cancelled", "enough"]);
});

Deno.test("a renamed call gets its new tool and passes the outer hooks again, under the same id", async () => {
  const seen: string[] = [];
  const rename: Middleware = { name: "rename", tool: (_, next) => next({ name: "drop", input: { city: "z" } }) };
  const look: Middleware = {
    name: "look",
    async tool({ tool, name, call, input }, next) {
      seen.push(`${tool?.name} ${name} ${call.name} ${call.id} ${JSON.stringify(input)}`);
      return await next();
    },
  };
  const started = batch([call("a")], { tools: [weather(), drop()], use: [look, rename, look] });
  const { result } = await started.run().outcome;
  const again = 'drop drop weather a {"city":"z"}';
  assertEquals(seen, ['weather weather weather a {"city":"a"}', again, again]);
  assertEquals(withoutSchemas(result.questions), [{
    callId: "a",
    tool: "drop",
    input: { city: "z" },
    questions: ["Run drop?"],
  }]);
  const { lines } = await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(lines, ["call weather", "ok dropped z", "assistant Done."]);
});

Deno.test("a call renamed to an unknown tool gets an error with the names of the tools", async () => {
  const rename: Middleware = { name: "rename", tool: (_, next) => next({ name: "nope" }) };
  const { lines } = await runBatch([call("a")], { use: [rename] });
  assertEquals(lines, ["call weather", 'error There is no tool "nope". The tools are: weather', "assistant Done."]);
});

Deno.test("a hook's input is parsed, and the transcript keeps the input of the model", async () => {
  const inputs: unknown[] = [];
  const parse = tool({
    name: "weather",
    description: "Parses",
    input: z.object({ city: z.string().transform((city) => city.toUpperCase()), days: z.number().default(3) }),
    execute(input) {
      inputs.push(input);
      return "sun";
    },
  });
  const finals: unknown[] = [];
  const change: Middleware = {
    name: "change",
    async tool(_, next) {
      const result = await next({ input: { city: "oslo" } });
      finals.push(result.input);
      return result;
    },
  };
  const { result } = await runBatch([call("a")], { tools: [parse], use: [change] });
  assertEquals(inputs, [{ city: "OSLO", days: 3 }]);
  assertEquals(finals, [{ city: "oslo" }]);
  assertEquals(result.messages[1], {
    role: "assistant",
    parts: [{ type: "call", id: "a", name: "weather", input: { city: "a" } }],
  });
});

Deno.test("a hook can repair a malformed input", async () => {
  const repairs: Middleware = { name: "mend", tool: (_, next) => next({ input: { city: "oslo" } }) };
  const { lines } = await runBatch([malformed], { use: [repairs] });
  assertEquals(lines, ["call weather", "ok sun in oslo", "assistant Done."]);
});

Deno.test("the types allow what a hook may change, and nothing else", () => {
  const pieces: readonly Middleware<{ user: string }>[] = [
    { name: "vars", tool: (ctx, next) => (ctx.vars.user satisfies string, next()) },
    watch([]), // a middleware for every type of vars
    // @ts-expect-error what was approved is not changed
    { execute: (ctx, next) => next({ input: ctx.input }) },
    // @ts-expect-error a guard sees what will run
    { approval: (_, next) => next({ input: {} }) },
    {
      // @ts-expect-error the result is the return value
      async tool(_, next) {
        await next();
      },
    },
    {
      tool(ctx, next) {
        // @ts-expect-error a change goes down through next()
        ctx.input = {};
        return next();
      },
    },
    // @ts-expect-error who a call is from is not changed
    { tool: (ctx, next) => next({ call: ctx.call }) },
  ];
  const plain: readonly AnyTool<{ user: string }>[] = [weather()];
  assertEquals([pieces.length, plain.length], [7, 1]);
});

Deno.test("a run that ends after the calls may drop all results of its batch", async () => {
  const leak: Middleware = {
    name: "leak",
    async tool(ctx, next) {
      const result = await next();
      if (ctx.call.id === "b") throw ctx.run.end("leak", { as: "failed", withhold: true });
      return result;
    },
  };
  const { lines, result } = await batch(three, { use: [leak] }).run().outcome;
  assertEquals([result.status, result.reason], ["failed", "leak"]);
  assertEquals(lines.slice(1), Array(3).fill("error Withheld: leak."));
});

Deno.test("a run that is stopped while its calls are saved executes none of them, and their hooks receive that they did not run", async () => {
  const log: string[] = [];
  const kept = memory();
  const store = durable(saving(kept, (session, save) => {
    const { position } = session.run ?? {};
    if (position?.at === "tools" && position.calls.some(({ state }) => state === "running")) run.stop("enough");
    return save();
  }));
  const run = agent({
    model: scripted({ calls: three }, "Done."),
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [watch(log)],
  }).run({ prompt: "Hi", session: "s", store });
  const { status, messages } = await run.result;
  assertEquals(log, [
    ...["in a", "in b", "in c"],
    ...["out a aborted", "finally a", "out b aborted", "finally b", "out c aborted", "finally c"],
  ]);
  assertEquals([status, ...linesOf(messages).slice(2)], [
    "aborted",
    ...Array(3).fill("aborted Not run: the run was stopped."),
  ]);
});
