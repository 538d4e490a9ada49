import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  type Agent,
  agent,
  type Event,
  type Limits,
  type Middleware,
  type Model,
  Pause,
  refused,
  textOf,
  tool,
  ToolError,
  tryAgain,
  user,
  vars,
} from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { barrier, gauge, settled } from "../support/batch.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

const named = { name: "ask_child", description: "Asks the child" };
const asking = (...prompts: string[]): ScriptedStep => ({
  calls: prompts.map((prompt) => ["ask_child", { prompt }] as const),
});

/** Runs an agent that calls its subagent once. */
function parent(model: Model, { use = [], limits = {} }: { use?: Middleware[]; limits?: Partial<Limits> } = {}) {
  const child = agent({ name: "child", model });
  return agent({
    name: "parent",
    model: scripted(asking("Help"), "Done."),
    tools: [asTool(child, named)],
    use,
    limits,
  });
}

Deno.test("a subagent answers a call with its own run, whose events are nested in the parent's", async () => {
  const child = scripted({ text: ["Hel", "ped."], usage: { input: 5, output: 3 } });
  const run = parent(child).run("Hi");
  const events = await eventsOfRun(run);
  const { messages, usage } = await run.result;
  assertEquals(lines(messages), ["user Hi", "call ask_child", "ok Helped.", "assistant Done."]);
  assertEquals(usage, { input: 7, output: 5 });
  assertEquals(child.requests.map(({ messages }) => messages), [[user("Help")]]);
  const from = events.findIndex(({ type }) => type === "approval.decided");
  const to = events.findIndex(({ type }) => type === "tool.finished");
  const inner = (event: Event) =>
    event.type === "subagent.event" ? `${event.call} ${eventLines([event.event])}` : eventLines([event])[0];
  assertEquals(events.slice(from + 1, to).map(inner), [
    "subagent.started call_1 child uuid",
    "call_1 run.started uuid uuid false",
    "call_1 session.opened new",
    "call_1 prompt.accepted",
    "call_1 turn.started 1",
    "call_1 model.started 1 scripted",
    "call_1 text.delta 1 0 Hel",
    "call_1 text.delta 1 0 ped.",
    "call_1 model.finished 1 stop 1",
    "call_1 turn.finished 1",
    "call_1 session.closed",
    "call_1 run.finished done Helped. stop",
    "subagent.finished call_1 child done",
  ]);
});

Deno.test("a child has its path, its parent's vars, and its own state", async () => {
  const seen: unknown[] = [];
  const note: Middleware<{ user: string }> = {
    prompt: (ctx, next) => {
      seen.push([ctx.vars.user, ctx.run.path, ctx.run.state.size]);
      ctx.run.state.set("mine", true);
      return next();
    },
  };
  const grandchild = agent({ name: "grandchild", model: scripted("Deep."), use: [note] });
  const child = agent({
    name: "child",
    model: scripted(asking("Deeper"), "Helped."),
    tools: [asTool(grandchild, named)],
    use: [note],
  });
  const top = agent({
    vars: vars<{ user: string }>(),
    name: "top",
    model: scripted(asking("Help"), "Done."),
    tools: [asTool(child, named)],
    use: [note],
  });
  await top.run({ prompt: "Hi", vars: { user: "Ada" } }).result;
  assertEquals(seen, [["Ada", [], 0], ["Ada", ["top"], 0], ["Ada", ["top", "child"], 0]]);
});

for (const limit of [1, 3, undefined]) {
  const depth = limit ?? 3;
  Deno.test(`subagents may nest to the depth of ${depth} that ${limit ? "the outermost run sets" : "is the default"}`, async () => {
    const requests: number[] = [];
    const nested = (level: number): Agent<unknown, string> => {
      const model = scripted({ ...asking("Deeper"), before: () => void requests.push(level) }, "Back.");
      return agent({ name: `a${level}`, model, tools: level < 5 ? [asTool(nested(level + 1), named)] : [] });
    };
    const results: string[] = [];
    const run = nested(0).run({ prompt: "Hi", ...(limit && { limits: { depth: limit } }) });
    for await (let event of run.events) {
      while (event.type === "subagent.event") event = event.event;
      if (event.type === "tool.finished") results.push(`${event.result.status} ${textOf(event.result)}`);
    }
    assertEquals(requests, [0, 1, 2, 3].slice(0, depth + 1));
    const refusal = `error Not run: subagents may nest at most ${depth} deep.`;
    assertEquals(results, [refusal, ...requests.slice(1).map(() => "ok Back.")]);
  });
}

Deno.test("a subagent hook may change the prompt and the settings of a child", async () => {
  const child = scripted();
  const other = scripted("Other.");
  const seen: unknown[] = [];
  const use: Middleware[] = [
    {
      subagent: async (ctx, next) => {
        seen.push([ctx.child, lines([ctx.prompt]), ctx.depth, ctx.call]);
        const result = await next({ prompt: user("Changed"), settings: { model: { ...other, id: "other" } } });
        return { ...result, text: `${result.text}!` };
      },
    },
    {
      subagent: (ctx, next) => {
        seen.push([lines([ctx.prompt]), ctx.settings.model?.id]);
        return next({ settings: { instructions: "Be brief." } });
      },
    },
  ];
  const { messages } = await parent(child, { use }).run("Hi").result;
  assertEquals(seen, [["child", ["user Help"], 1, "call_1"], [["user Changed"], "other"]]);
  assertEquals(other.requests.map(({ instructions, messages }) => [instructions, ...lines(messages)]), [
    ["Be brief.", "user Changed"],
  ]);
  assertEquals(lines(messages)[2], "ok Other.!");
});

Deno.test("a child that does not finish is an error for the model", async () => {
  const outcome = async (model: Model, use: Middleware[] = []) => {
    const { status, messages } = await parent(model, { use }).run("Hi").result;
    return [status, lines(messages)[2]];
  };
  const refuse: Middleware = { subagent: () => Promise.resolve(refused("not today")) };
  assertEquals(await outcome(scripted(), [refuse]), ["done", "error child did not finish: not today"]);
  const failing = scripted({ text: "Hel", error: new Error("secret") });
  assertEquals(await outcome(failing), ["done", "error child did not finish: failure"]);
});

Deno.test("an input without a prompt is rejected", async () => {
  const child = agent({ model: scripted() });
  const model = scripted({ calls: [["ask_child", { task: "Help" }]] }, "Done.");
  const { messages } = await agent({ model, tools: [asTool(child, named)] }).run("Hi").result;
  assertEquals(lines(messages)[2], "error The input of ask_child is not valid: prompt: expected a text");
});

Deno.test("a child stops with its parent, and the parent ends after it", async () => {
  const reasons: string[] = [];
  const child: Agent<unknown, string> = agent({
    name: "child",
    model: scripted({ text: "Once", before: () => stop() }),
    use: [{
      abort: async (ctx, next) => {
        reasons.push(ctx.reason);
        await next();
      },
    }],
  });
  const run = agent({ model: scripted(asking("A story")), tools: [asTool(child, named)] }).run("Hi");
  const stop = () => run.stop("enough");
  const { status, reason, messages } = await run.result;
  assertEquals([status, reason, ...lines(messages)], [
    "aborted",
    "enough",
    "user Hi",
    "call ask_child",
    "aborted Stopped before it was done.",
  ]);
  assertEquals(reasons, ["signal"]);
});

Deno.test("a child whose tool ignores its signal is abandoned with it", async () => {
  using time = new FakeTime();
  const started = Promise.withResolvers<void>();
  const ignoresSignal = tool({
    name: "deaf",
    description: "Hears nothing",
    input: z.object({}),
    execute: () => {
      started.resolve();
      return new Promise<string>(() => {});
    },
  });
  const cleaned: string[] = [];
  const child = agent({
    name: "child",
    model: scripted({ calls: [["deaf", {}]] }),
    tools: [ignoresSignal],
    use: [{
      abort: async (ctx, next) => {
        cleaned.push(...ctx.open.map(({ id }) => id));
        await next();
      },
    }],
  });
  const run = agent({ model: scripted(asking("Hear")), tools: [asTool(child, named)], limits: { grace: 100 } })
    .run("Hi");
  await started.promise;
  run.stop();
  for (let ms = 0; ms < 4_000; ms += 100) await time.tickAsync(100);
  const { status, messages } = await run.result;
  assertEquals([status, ...lines(messages).slice(2)], ["aborted", "aborted Stopped before it was done."]);
  assertEquals(cleaned, ["call_1"]);
});

Deno.test("a parent with a single slot does not hold it during its child's run", async () => {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
  const child = agent({
    name: "child",
    model: scripted({ calls: [["look", {}], ["look", {}]] }, "Looked."),
    tools: [look],
  });
  const model = scripted(asking("Look"), "Done.");
  const { messages } = await agent({ model, tools: [asTool(child, named)], limits: { parallel: 1 } }).run("Hi").result;
  assertEquals(lines(messages)[2], "ok Looked.");
});

Deno.test("children run in parallel, and share the slots of their parent", async () => {
  const running = gauge();
  const three = barrier(3);
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    execute: () => running.during(() => three().then(settled)),
  });
  const working: ScriptedStep = { calls: [["work", {}], ["work", {}]] };
  const child = agent({ model: ({ run }) => scripted(run.path.length > 0 ? working : "", "Helped."), tools: [work] });
  const model = scripted(asking("a", "b", "c"), "Done.");
  const { messages } = await agent({ model, tools: [asTool(child, named)], limits: { parallel: 3 } }).run("Hi").result;
  assertEquals([running.peak, ...lines(messages).slice(2, -1)], [3, "ok Helped.", "ok Helped.", "ok Helped."]);
});

Deno.test("a subagent hook may filter the events of a child", async () => {
  const quiet: Middleware = {
    subagent: (ctx, next) => next({ emit: (event) => event.type === "subagent.event" || ctx.emit(event) }),
  };
  const run = parent(scripted("Helped."), { use: [quiet] }).run("Hi");
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => line.startsWith("subagent")), [
    "subagent.started call_1 child uuid",
    "subagent.finished call_1 child done",
  ]);
});

Deno.test("a child whose start a filter drops does not run", async () => {
  const child = scripted("Helped.");
  const quiet: Middleware = {
    name: "quiet",
    execute: (ctx, next) => next({ emit: (event) => event.type.startsWith("subagent.") || ctx.emit(event) }),
  };
  const errors: unknown[] = [];
  const { messages } = await parent(child, { use: [quiet] }).run({ prompt: "Hi", onError: (e) => errors.push(e) })
    .result;
  assertEquals(lines(messages)[2], "error ask_child failed.");
  assertEquals(errors.map(String), [
    "TypeError: Cannot drop subagent.started: a filter may drop only deltas, progress, notices and data",
  ]);
  assertEquals(child.left, 1);
});

Deno.test("a child that cannot begin fails its call, and the operator receives the error", async () => {
  const child = agent({
    name: "child",
    model: scripted(),
    use: [{ prompt: (ctx) => Promise.reject(ctx.run.pause("Which?")) }],
  });
  const asksMore: Middleware = {
    name: "asksMore",
    execute: (_, next) =>
      next().catch((error) => {
        const more = { callId: "call_1/other", questions: ["And which other?"] };
        throw error instanceof Pause ? new Pause([...error.questions, more], error.saved) : error;
      }),
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const model = scripted(asking("Help"), "Done.");
  const assistant = agent({ model, tools: [asTool(child, named)], use: [asksMore] });
  const { session, questions } = await assistant.run({ prompt: "Hi", onError }).result;
  const answers = questions.map(({ callId }) => ({ callId, type: "reply", text: "This." } as const));
  const { messages } = await assistant.resume({ session, answers, onError }).result;
  assertEquals(lines(messages)[2], "error ask_child failed.");
  assertEquals(errors.map(String), [
    "SessionError: Cannot answer call other: it is not asked, or was answered before; expected an answer to the run",
  ]);
});

Deno.test("a filter that throws for the events of a child fails its call", async () => { // an unhandled rejection would fail the test
  const broken: Middleware = {
    name: "broken",
    execute: (_, next) =>
      next({
        emit: () => {
          throw new Error("broken");
        },
      }),
  };
  const errors: unknown[] = [];
  const { messages } = await parent(scripted("Helped."), { use: [broken] })
    .run({ prompt: "Hi", onError: (error) => errors.push(error) }).result;
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals([lines(messages)[2], ...errors.map(String)], ["error ask_child failed.", "Error: broken"]);
});

Deno.test("a child may retry a failed tool", async () => {
  let tries = 0;
  const flaky = tool({
    name: "flaky",
    description: "Fails once",
    input: z.object({}),
    idempotent: true,
    execute: () => {
      if (tries++ === 0) throw new ToolError("not yet");
      return "Now.";
    },
  });
  const child = agent({
    model: scripted({ calls: [["flaky", {}]] }, "Helped."),
    tools: [flaky],
    use: [{ error: () => Promise.resolve(tryAgain()) }],
  });
  const { messages } = await agent({ model: scripted(asking("Try"), "Done."), tools: [asTool(child, named)] })
    .run("Hi").result;
  assertEquals([tries, lines(messages)[2]], [2, "ok Helped."]);
});
