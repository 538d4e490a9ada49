import { agent, type ExecuteContext, memory, type Middleware, only, text, tool } from "@jizai/jizai";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const window = 10_000;
const refusal = (name: string, seconds: number) =>
  `skipped Not run: too many calls of ${name}. Try again in ${seconds} s.`;

function noop(name: string) {
  return tool({ name, description: "", input: z.looseObject({}), execute: () => "Done." });
}

/** Creates an agent with the tools `a` and `b`, and a function that makes one batch of calls and returns the results. */
function limited(...use: readonly Middleware<{ user: string }>[]) {
  return async (names: readonly string[], user = "Ada") => {
    const model = scripted({ calls: names.map((name) => [name, {}] as const) }, "Done.");
    const assistant = agent({ model, tools: [noop("a"), noop("b")], use });
    const { messages } = await assistant.run({ prompt: "Go", vars: { user } }).result;
    return lines(messages.filter(({ role }) => role === "tool"));
  };
}

Deno.test("callRate() obeys the laws of middleware", async () => {
  await testMiddleware(() => callRate({ limit: 1_000, window: 1_000 }));
});

Deno.test("callRate() skips the calls of a tool over the limit, in one batch and over runs", async () => {
  using time = new FakeTime();
  const call = limited(callRate({ limit: 2, window }));
  assertEquals(await call(["a", "b", "a", "a"]), ["ok Done.", "ok Done.", "ok Done.", refusal("a", 10)]);
  time.tick(4_000);
  assertEquals(await call(["a", "b", "b"]), [refusal("a", 6), "ok Done.", refusal("b", 6)]);
});

Deno.test("callRate() counts each call for one window, to the millisecond", async () => {
  using time = new FakeTime();
  const call = limited(callRate({ limit: 1, window }));
  assertEquals(await call(["a"]), ["ok Done."]);
  time.tick(window - 1);
  assertEquals(await call(["a"]), [refusal("a", 1)]);
  time.tick(1);
  assertEquals(await call(["a"]), ["ok Done."]);
});

Deno.test("callRate() does not count a skipped or a denied call", async () => {
  using time = new FakeTime();
  let deny = true;
  const rules = permissions({ deny: [{ tool: "a", when: () => deny }] });
  const call = limited(callRate({ limit: 1, window }), rules);
  assertEquals(await call(["a", "a"]), Array(2).fill("denied a is not permitted here."));
  deny = false;
  assertEquals(await call(["a", "a"]), ["ok Done.", refusal("a", 10)]);
  time.tick(window);
  assertEquals(await call(["a"]), ["ok Done."]);
});

Deno.test("callRate() counts by another key, and only the tools that only() selects", async () => {
  using _ = new FakeTime();
  const per = ({ vars }: ExecuteContext<{ user: string }>) => vars.user;
  const call = limited(callRate({ limit: 2, window, per }));
  assertEquals(await call(["a", "b", "b"]), ["ok Done.", "ok Done.", refusal("b", 10)]);
  assertEquals(await call(["a"], "Bob"), ["ok Done."]);
  const some = limited(only("a", callRate({ limit: 1, window })));
  assertEquals(await some(["a", "a", "b", "b"]), ["ok Done.", refusal("a", 10), "ok Done.", "ok Done."]);
});

Deno.test("callRate() after retry() counts every attempt, before retry() each call once", async () => {
  for (const [order, executions] of [["after", 2], ["before", 3]] as const) {
    let executed = 0;
    const flaky = tool({
      name: "flaky",
      description: "",
      input: z.object({}),
      idempotent: true,
      execute() {
        executed++;
        throw new Error("down");
      },
    });
    const rate = callRate({ limit: 2, window });
    const retrying = retry({ delay: 0 });
    const use = order === "after" ? [retrying, rate] : [rate, retrying];
    await agent({ model: scripted({ calls: [["flaky", {}]] }, "Done."), tools: [flaky], use }).run("Go").result;
    assertEquals([order, executed], [order, executions]);
  }
});

Deno.test("callRate() counts a call once if its tool pauses, also several times and below two limits", async () => {
  let executions = 0;
  const careful = tool({
    name: "careful",
    description: "Asks twice",
    input: z.object({}),
    execute(_, { run }) {
      executions++;
      if (executions < 3) throw run.pause("Sure?");
      return "Done.";
    },
  });
  const limit = () => callRate({ limit: 1, window: 60_000 });
  const model = scripted({ calls: [["careful", {}]] }, { calls: [["careful", {}]] }, "Done.");
  const assistant = agent({ model, tools: [careful], use: [limit(), only("careful", limit())] });
  const { session } = await assistant.run("Go").result;
  await assistant.resume({ session, answers: [] }).result;
  const { messages } = await assistant.resume({ session, answers: [] }).result;
  assertEquals(lines(messages).filter((line) => !line.startsWith("call")), [
    "user Go",
    "ok Done.",
    refusal("careful", 60),
    "assistant Done.",
  ]);
});

/** Runs an agent that makes `calls` calls of an idempotent tool, resumes it until it ends, and returns the executions and results. */
async function executionsOf(
  use: readonly Middleware[],
  execute: (execution: number, pause: () => never) => string,
  calls = 1,
) {
  let executions = 0;
  const flaky = tool({
    name: "flaky",
    description: "",
    input: z.object({}),
    idempotent: true,
    execute: (_, { run }) =>
      execute(++executions, () => {
        throw run.pause("Sure?");
      }),
  });
  const model = scripted({ calls: Array(calls).fill(["flaky", {}]) }, "Done.");
  const assistant = agent({ model, tools: [flaky], use: [...use], limits: { parallel: 1 } });
  let result = await assistant.run("Go").result;
  while (result.status === "paused") {
    result = await assistant.resume({ session: result.session, answers: [] }).result;
  }
  return { executions, results: lines(result.messages.filter(({ role }) => role === "tool")) };
}

/** Pauses each call once, before the hooks after it. */
function pauseOnce(): Middleware {
  const seen = new Set<string>();
  return {
    name: "pauseOnce",
    async execute({ idempotencyKey, run }, next) {
      if (seen.has(idempotencyKey)) return await next();
      seen.add(idempotencyKey);
      throw run.pause("Sure?");
    },
  };
}

Deno.test("callRate() after retry() counts every attempt after the one that resumes a paused call", async () => {
  const use = [retry({ attempts: 5, delay: 0 }), callRate({ limit: 2, window })];
  const { executions, results } = await executionsOf(use, (execution, pause) => {
    if (execution === 1) pause();
    throw new Error("down");
  });
  assertEquals(executions, 3); // the first one paused, and the second one resumed the same attempt
  assertEquals(results, [refusal("flaky", 10)]);
});

Deno.test("callRate() counts a paused call in each limit that it reaches, also after a pause between two limits", async () => {
  for (const [outer, inner] of [[9, 1], [1, 9]] as const) {
    const use = [callRate({ limit: outer, window }), pauseOnce(), callRate({ limit: inner, window })];
    const { executions, results } = await executionsOf(use, () => "Done.", 2);
    assertEquals([executions, results], [1, ["ok Done.", refusal("flaky", 10)]]);
  }
});

Deno.test("callRate() counts the next attempt if a hook before an inner limit fails after a pause", async () => {
  let entered = 0;
  const failing: Middleware = {
    name: "failing",
    async execute(_, next) {
      entered++;
      if (entered > 1) throw new Error("down");
      return await next();
    },
  };
  const limits = [callRate({ limit: 2, window }), failing, callRate({ limit: 9, window })];
  await executionsOf([retry({ attempts: 5, delay: 0 }), ...limits], (_, pause) => pause());
  assertEquals(entered, 3);
});

Deno.test("callRate() forgets the paused calls of earlier turns, also those that an outer hook answered", async () => {
  const store = memory();
  let resumed = false;
  const answering: Middleware = {
    name: "answering",
    execute: (ctx, next) => resumed && ctx.turn === 1 ? Promise.resolve(text("Answered.")) : next(),
  };
  const careful = tool({
    name: "careful",
    description: "Asks",
    input: z.object({}),
    execute(_, { run }) {
      throw run.pause("Sure?");
    },
  });
  const model = scripted({ calls: [["careful", {}]] }, { calls: [["careful", {}]] });
  const use = [answering, callRate({ limit: 9, window })];
  const assistant = agent({ model, tools: [careful], use });
  const countedIn = async (session: string) => {
    const { run } = await store.load(session) ?? {};
    const [, counted] = run?.state.find(([name]) => name === "callRate.paused") ?? [];
    return Array.isArray(counted) ? counted.length : 0;
  };
  const { session } = await assistant.run({ prompt: "Go", store }).result;
  assertEquals(await countedIn(session), 1);
  resumed = true;
  const { status } = await assistant.resume({ session, answers: [], store }).result;
  assertEquals([status, await countedIn(session)], ["paused", 1]);
});

Deno.test("callRate() throws for an invalid limit or window", () => {
  for (const limit of [0, 1.5, NaN, Infinity]) {
    assertThrows(() => callRate({ limit, window }), RangeError, `Cannot create callRate(): \`limit\` is ${limit}`);
  }
  for (const window of [0, -1, NaN]) {
    assertThrows(() => callRate({ limit: 1, window }), RangeError, `Cannot create callRate(): \`window\` is ${window}`);
  }
});
