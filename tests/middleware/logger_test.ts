import { agent, deny, type Middleware, type Point, tool } from "@jizai/jizai";
import { logger, type LoggerOptions, type LogLine } from "@jizai/jizai/middleware/logger";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { settled } from "../support/batch.ts";
import { named } from "../support/run_events.ts";
import { asTool } from "@jizai/jizai/subagents";
import { compaction } from "@jizai/jizai/middleware/compaction";

const work = tool({
  name: "work",
  description: "Works",
  input: z.object({ n: z.number() }),
  execute: ({ n }) => {
    if (n > 1) throw new RangeError(`${n} is too much`);
    return "Worked.";
  },
});

const calling = (...numbers: readonly number[]) => ({ calls: numbers.map((n) => ["work", { n }] as const) });

/** Returns the log, one short line per entry. */
function short({ point, turn, tool, call, outcome, error }: LogLine): string {
  return [point, turn, tool, call, outcome, error].filter((part) => part !== undefined).join(" ");
}

/** The lines of one run, in short, and how it ended. */
async function logged(options: Partial<Parameters<typeof agent>[0]>): Promise<string[]> {
  const lines: string[] = [];
  const log = logger((line) => lines.push(short(line)));
  const { status } = await agent({
    model: scripted(calling(1), "Done."),
    tools: [work],
    ...options,
    use: [log, ...options.use ?? []],
  }).run("Go").result;
  return [...lines, status];
}

Deno.test("logger() writes one line per point, the innermost first", async () => {
  using _ = new FakeTime("2026-01-02T03:04:05Z");
  const lines: LogLine[] = [];
  const assistant = agent({
    model: scripted(calling(1), "Done."),
    tools: [work],
    use: [logger((line) => lines.push(line))],
  });
  const common = { time: "2026-01-02T03:04:05.000Z", run: "run", session: "session" };
  assertEquals(named(lines, await assistant.run("Go").result), [
    { ...common, point: "input", ms: 0, outcome: "accepted" },
    { ...common, point: "model", turn: 1, ms: 0, outcome: "calls" },
    { ...common, point: "approval", turn: 1, tool: "work", call: "call_1", ms: 0, outcome: "allow" },
    { ...common, point: "execute", turn: 1, tool: "work", call: "call_1", ms: 0, outcome: "ok" },
    { ...common, point: "tool", turn: 1, tool: "work", call: "call_1", ms: 0, outcome: "ok" },
    { ...common, point: "turn", turn: 1, ms: 0, outcome: "calls" },
    { ...common, point: "model", turn: 2, ms: 0, outcome: "stop" },
    { ...common, point: "turn", turn: 2, ms: 0, outcome: "stop" },
    { ...common, point: "stop", ms: 0, outcome: "finish" },
    { ...common, point: "prompt", ms: 0, outcome: "done" },
    { ...common, point: "session", ms: 0, outcome: "done" },
  ]);
});

Deno.test("logger() writes at error, compact, subagent and abort", async () => {
  assertEquals(await logged({ model: scripted(calling(2), "Done.") }), [
    "input accepted",
    "model 1 calls",
    "approval 1 work call_1 allow",
    "execute 1 work call_1 threw RangeError",
    "error work skip RangeError",
    "tool 1 work call_1 error",
    "turn 1 calls",
    "model 2 stop",
    "turn 2 stop",
    "stop finish",
    "prompt done",
    "session done",
    "done",
  ]);

  assertEquals(
    await logged({ model: scripted("Done."), limits: { context: 1 }, use: [compaction({ summarize: false })] }),
    [
      "input accepted",
      "compact declined",
      "model 1 stop",
      "turn 1 stop",
      "stop finish",
      "prompt done",
      "session done",
      "done",
    ],
  );

  const child = asTool(agent({ name: "child", model: scripted("Helped.") }), { name: "help", description: "Helps" });
  const model = scripted({ calls: [["help", { prompt: "Help" }]] }, "Done.");
  assertEquals((await logged({ model, tools: [child] })).slice(0, 10), [
    "input accepted",
    "model 1 calls",
    "approval 1 help call_1 allow",
    "model 1 stop",
    "turn 1 stop",
    "stop finish",
    "prompt done",
    "session done",
    "subagent call_1 done",
    "execute 1 help call_1 ok",
  ]);

  const controller = new AbortController();
  const stopped: string[] = [];
  const run = agent({
    model: scripted({ text: "Do", before: () => controller.abort() }),
    use: [logger((line) => stopped.push(short(line)))],
  }).run({ prompt: "Go", signal: controller.signal });
  assertEquals((await run.result).status, "aborted");
  assertEquals(stopped, [
    "input accepted",
    "model 1 threw AbortError",
    "turn 1 threw AbortError",
    "prompt threw AbortError",
    "abort done",
    "session aborted",
  ]);
});

Deno.test("logger() writes the points of a subagent, once", async () => {
  const lines: string[] = [];
  const log = logger((line) => lines.push(short(line)));
  for (const own of [[], [log]]) { // a subagent that has the same middleware does not inherit it again
    lines.length = 0;
    const child = agent({ name: "child", model: scripted(calling(1), "Helped."), tools: [work], use: own });
    const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
    await agent({ model, tools: [asTool(child)], use: [log] }).run("Go").result;
    assertEquals(lines.slice(0, lines.indexOf("subagent call_1 done") + 1), [
      "input accepted",
      "model 1 calls",
      "approval 1 child call_1 allow",
      "model 1 calls",
      "approval 1 work call_1 allow",
      "execute 1 work call_1 ok",
      "tool 1 work call_1 ok",
      "turn 1 calls",
      "model 2 stop",
      "turn 2 stop",
      "stop finish",
      "prompt done",
      "session done",
      "subagent call_1 done",
    ]);
  }
});

Deno.test("logger() writes denials, ends, pauses and the name of an error", async () => {
  const guard: Middleware = { name: "guard", approval: () => Promise.resolve(deny("No.")) };
  assertEquals((await logged({ use: [guard] })).slice(0, 5), [
    "input accepted",
    "model 1 calls",
    "approval 1 work call_1 deny",
    "tool 1 work call_1 denied",
    "turn 1 calls",
  ]);

  const end: Middleware = {
    name: "end",
    tool(ctx) {
      throw ctx.run.end("enough");
    },
  };
  assertEquals(await logged({ use: [end] }), [
    "input accepted",
    "model 1 calls",
    "tool 1 work call_1 ended",
    "turn 1 ended",
    "prompt ended",
    "abort done",
    "session cancelled",
    "cancelled",
  ]);

  const pause: Middleware = {
    name: "pause",
    turn(ctx) {
      throw ctx.run.pause("Sure?");
    },
  };
  assertEquals(await logged({ use: [pause] }), [
    "input accepted",
    "turn 1 paused",
    "prompt paused",
    "session paused",
    "paused",
  ]);

  const fail: Middleware = {
    name: "fail",
    prompt() {
      throw "no error at all";
    },
  };
  assertEquals(await logged({ use: [fail] }), [
    "input accepted",
    "prompt threw string",
    "error abort string",
    "abort done",
    "session failed",
    "failed",
  ]);
});

Deno.test("logger() writes a line for every attempt of an outer retry", async () => {
  const lines: string[] = [];
  const twice: Middleware = {
    name: "twice",
    async model(_, next) {
      await next();
      return await next();
    },
  };
  const assistant = agent({
    model: scripted("One.", "Two."),
    use: [twice, logger((line) => lines.push(short(line)))],
  });
  await assistant.run("Go").result;
  assertEquals(lines.slice(0, 3), ["input accepted", "model 1 stop", "model 1 stop"]);
});

Deno.test("logger() writes no prompt, no input, no text and no message of an error", async () => {
  const lines: LogLine[] = [];
  const secret = "s3cr3t";
  const leak = tool({
    name: "leak",
    description: secret,
    input: z.object({ key: z.string() }),
    execute: ({ key }) => {
      throw new Error(key);
    },
  });
  const run = agent({
    model: scripted({ text: secret, calls: [["leak", { key: secret }]] }, secret),
    instructions: secret,
    tools: [leak],
    use: [logger((line) => lines.push(line))],
  }).run(secret);
  assertEquals((await run.result).text, secret);
  assertEquals(lines.length, 12);
  assertEquals(JSON.stringify(lines).split(secret).length, 1);
});

Deno.test("logger() measures each point with its inner layers, in milliseconds", async () => {
  let now = 0;
  using _ = stub(performance, "now", () => now);
  const lines: LogLine[] = [];
  const slow: Middleware = {
    name: "slow",
    async stop(_, next) {
      now += 2.5;
      return await next();
    },
  };
  const model = scripted({ text: "Done.", before: () => void (now += 10.000_04) });
  await agent({ model, use: [logger((line) => lines.push(line)), slow] }).run("Go").result;
  const took = lines.map(({ point, ms }): readonly [Point, number] => [point, ms]);
  assertEquals(took, [["input", 0], ["model", 10], ["turn", 10], ["stop", 2.5], ["prompt", 12.5], ["session", 12.5]]);
});

Deno.test("logger() reports a `write` that throws or rejects, and does not affect the run", async () => {
  const full = new TypeError("disk full");
  const throwing = () => {
    throw full;
  };
  const rejecting = () => Promise.reject(full);
  const rejectingLate = async () => {
    await settled();
    throw full;
  };
  const thenable = () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(full) });
  const points = [
    "input",
    "model",
    "approval",
    "execute",
    "tool",
    "turn",
    "model",
    "turn",
    "stop",
    "prompt",
    "session",
  ];
  for (const write of [throwing, rejecting, rejectingLate, thenable]) {
    const errors: unknown[] = [];
    const model = scripted(calling(1), "Done.");
    const run = agent({ model, tools: [work], use: [logger(write)] }).run({
      prompt: "Go",
      onError: (error) => errors.push(error),
    });
    const warnings: unknown[] = [];
    for await (const event of run.events) {
      if (event.type === "warning") warnings.push({ ...event, error: typeof event.error });
    }
    const { status, text } = await run.result;
    await settled();
    assertEquals([status, text, errors], ["done", "Done.", points.map(() => full)]);
    if (write !== throwing) continue; // a late warning may come after the events
    assertEquals(
      warnings,
      points.map((point) => ({
        type: "warning",
        code: "observer.failed",
        message: "A log line could not be written: TypeError.",
        middleware: "logger",
        point,
        error: "string",
      })),
    );
  }
});

/** Returns the lines that `logger()` writes for a run, without times and with short ids. */
async function written(options: LoggerOptions, ...steps: readonly ScriptedAnswer[]): Promise<string[]> {
  const lines: string[] = [];
  const log = logger({ ...options, write: (line) => lines.push(line) });
  const { run } = await agent({ model: scripted(...steps), tools: [work], use: [log] }).run("Go").result;
  return lines.map((line) =>
    line.replaceAll(run.slice(0, 8), "<run>").replace(/\d\d:\d\d:\d\d\.\d{3}/, "<time>").replace(/\d+ ms/, "1 ms")
  );
}

Deno.test("logger() writes text for people, nested by point, from the level that is chosen", async () => {
  assertEquals(await written({ format: "text", color: false }, calling(1, 2), "Done."), [
    "<time> <run>       model 1 calls 1 ms",
    "<time> <run>         execute work threw RangeError 1 ms",
    "<time> <run>       error work skip RangeError 1 ms",
    "<time> <run>       tool work ok 1 ms",
    "<time> <run>       tool work error 1 ms",
    "<time> <run>       model 2 stop 1 ms",
    "<time> <run>   prompt done 1 ms",
    "<time> <run> session done 1 ms",
  ]);
  const points = async (level: "debug" | "warn" | "error") => {
    const lines = await written({ level, format: "text", color: false }, calling(2), "Done.");
    return lines.map((line) => line.replace("<time> <run>", "").trim().split(" ")[0]);
  };
  assertEquals(await points("debug"), [
    "input",
    "model",
    "approval",
    "execute",
    "error",
    "tool",
    "turn",
    "model",
    "turn",
    "stop",
    "prompt",
    "session",
  ]);
  assertEquals(await points("warn"), ["execute", "tool"]);
  assertEquals(await points("error"), ["execute"]);
});

Deno.test("logger() warns of a response that is not whole", async () => {
  const lines: string[] = [];
  for (const finish of ["length", "filter", "refusal", "stop"] as const) {
    const log = logger({ level: "warn", format: "text", write: (line) => lines.push(line.slice(22).trim()) });
    await agent({ model: scripted({ text: finish === "stop" ? "" : "Half", finish }), use: [log] }).run("Go").result;
  }
  assertEquals(lines.filter((line) => line.startsWith("model")).map((line) => line.replace(/ \d+ ms$/, "")), [
    "model 1 length",
    "model 1 filter",
    "model 1 refusal",
    "model 1 empty",
  ]);
});

Deno.test("logger() writes one line of text for a name with line breaks and control characters", async () => {
  const forged = "x\n12:00:00.000 12345678 approval drop allow\x1b[2J\u009b2J\u202e";
  const lines = await written({ format: "text", color: false }, { calls: [[forged, {}]] }, "Done.");
  assertEquals(lines.map((line) => line.replace("<time> <run>", "").trim()), [
    "model 1 calls 1 ms",
    "tool x\\u{a}12:00:00.000 12345678 approval drop allow\\u{1b}[2J\\u{9b}2J\\u{202e} error 1 ms",
    "model 2 stop 1 ms",
    "prompt done 1 ms",
    "session done 1 ms",
  ]);
});

Deno.test("logger() escapes in JSON what a terminal obeys, and the line stays the same data", async () => {
  const lines: string[] = [];
  const name = "x\x1b[2J\x7f\u0085\u009b2J é";
  const model = scripted({ calls: [[name, {}]] }, "Done.");
  const log = logger({ format: "json", write: (line) => lines.push(line) });
  await agent({ model, use: [log] }).run("Go").result;
  const [line = ""] = lines.filter((line) => JSON.parse(line).point === "tool");
  assertEquals(JSON.parse(line).tool, name);
  assertEquals(line.match(/"tool":"[^"]*"/)?.[0], '"tool":"x\\u001b[2J\\u007f\\u0085\\u009b2J é"');
});

Deno.test("logger() colours the text on request, each run in its own way", async () => {
  const lines: string[] = [];
  const log = logger({ format: "text", color: true, write: (line) => lines.push(line) });
  await agent({ model: scripted("Done."), use: [log] }).run("Go").result;
  const [first = ""] = lines;
  assertEquals(
    first.replace(/\d\d:\d\d:\d\d\.\d{3}/, "<time>").replace(/\[3\dm\w{8}/, "<run>").replace(/\d+ ms/, "1 ms"),
    "\u001b[2m<time>\u001b[22m \u001b<run>\u001b[39m       \u001b[39mmodel 1 stop\u001b[39m \u001b[2m1 ms\u001b[22m",
  );
});

Deno.test("logger() writes JSON where there is no terminal", async () => {
  const lines = await written({}, "Done.");
  assertEquals(lines.map((line) => JSON.parse(line)).map(({ point, outcome }) => `${point} ${outcome}`), [
    "model stop",
    "prompt done",
    "session done",
  ]);
});

Deno.test("logger() writes to the console by default, and indents the lines of a child agent", async () => {
  using log = stub(console, "log");
  const child = asTool(
    agent({ name: "child", model: scripted("Helped."), use: [logger({ format: "text", color: false })] }),
    {
      name: "help",
      description: "Helps",
    },
  );
  await agent({ model: scripted({ calls: [["help", { prompt: "Help" }]] }, "Done."), tools: [child] }).run("Go").result;
  const lines = log.calls.map(({ args: [line] }) => String(line).slice(22).replace(/\d+ ms/, "1 ms"));
  assertEquals(lines, [
    "                model 1 stop 1 ms",
    "            prompt done 1 ms",
    "          session done 1 ms",
  ]);
});
