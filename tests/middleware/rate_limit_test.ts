/**
 * `rateLimit()` in one process, then `rateLimit()` and `callRate()` with a database that processes share.
 */
import { agent, cancelled, type Middleware, type Scope, tool } from "@jizai/jizai";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { type KeyValue, memoryKeyValue } from "@jizai/jizai/session/key_value";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";

interface Vars {
  readonly user: string;
}

/** Creates an agent that accepts two prompts of a user in ten seconds, and a function that sends a prompt. */
function limited({ use = [], steps = Array(20).fill("Hello!") }: {
  readonly use?: readonly Middleware<Vars>[];
  readonly steps?: readonly (string | ScriptedStep)[];
} = {}) {
  const model = scripted(...steps);
  const limit = rateLimit({ per: ({ vars }: Scope<Vars>) => vars.user, limit: 2, window: 10_000 });
  const assistant = agent({ model, use: [limit, ...use] });
  return {
    model,
    async ask(user: string) {
      const { status, reason } = await assistant.run({ prompt: "Hi", vars: { user } }).result;
      return reason ?? status;
    },
    assistant,
  };
}

Deno.test("rateLimit() cancels a prompt over the limit, and says when to try again", async () => {
  using time = new FakeTime();
  const { ask, model } = limited();
  assertEquals([await ask("Ada"), await ask("Ada")], ["done", "done"]);
  time.tick(2_500);
  assertEquals(await ask("Ada"), "Too many requests: try again in 8 s.");
  assertEquals(model.requests.length, 2);
});

Deno.test("rateLimit() counts each prompt for one window, to the millisecond", async () => {
  using time = new FakeTime();
  const { ask } = limited();
  assertEquals(await ask("Ada"), "done");
  time.tick(6_000);
  assertEquals(await ask("Ada"), "done");
  time.tick(3_999);
  assertEquals(await ask("Ada"), "Too many requests: try again in 1 s.");
  time.tick(1);
  assertEquals(await ask("Ada"), "done");
  assertEquals(await ask("Ada"), "Too many requests: try again in 6 s.");
});

Deno.test("rateLimit() counts every key separately", async () => {
  using _ = new FakeTime();
  const { ask } = limited();
  const answers = [];
  for (const user of ["Ada", "Bob", "Ada", "Ada", "Bob", "Bob"]) answers.push(await ask(user));
  const refusal = "Too many requests: try again in 10 s.";
  assertEquals(answers, ["done", "done", "done", refusal, "done", refusal]);
});

Deno.test("rateLimit() does not count a refused prompt", async () => {
  using time = new FakeTime();
  const { ask } = limited();
  await ask("Ada");
  await ask("Ada");
  for (let seconds = 0; seconds < 9; seconds++) {
    await ask("Ada");
    time.tick(1_000);
  }
  time.tick(1_000);
  assertEquals(await ask("Ada"), "done");
});

Deno.test("rateLimit() counts a prompt that an inner hook refuses, and a run that fails", async () => {
  using _ = new FakeTime();
  const no: Middleware = { name: "no", prompt: () => Promise.resolve(cancelled("No.")) };
  const refusing = limited({ use: [no] });
  assertEquals([await refusing.ask("Ada"), await refusing.ask("Ada")], ["No.", "No."]);
  assertEquals(await refusing.ask("Ada"), "Too many requests: try again in 10 s.");
  const failing = limited({ steps: [{ error: new Error("down") }, { error: new Error("down") }] });
  assertEquals([await failing.ask("Ada"), await failing.ask("Ada")], ["failure", "failure"]);
  assertEquals(await failing.ask("Ada"), "Too many requests: try again in 10 s.");
});

Deno.test("rateLimit() keeps the limit for concurrent prompts", async () => {
  using _ = new FakeTime();
  const { ask } = limited();
  const refusal = "Too many requests: try again in 10 s.";
  assertEquals(await Promise.all(["Ada", "Ada", "Ada", "Ada"].map(ask)), ["done", "done", refusal, refusal]);
});

Deno.test("rateLimit() counts a paused and resumed run once", async () => {
  using _ = new FakeTime();
  const { assistant, ask } = limited({
    use: [{
      name: "pausing",
      stop: async (ctx, next) => ctx.resumed ? await next() : { type: "pause", question: "Sure?" },
    }],
  });
  const vars = { user: "Ada" };
  const { status, session } = await assistant.run({ prompt: "Hi", vars }).result;
  const { status: resumed } = await assistant.resume({ session, answers: [], vars }).result;
  assertEquals([status, resumed], ["paused", "done"]);
  assertEquals(await ask("Ada"), "paused");
  assertEquals(await ask("Ada"), "Too many requests: try again in 10 s.");
});

Deno.test("rateLimit() forgets a key one window after its last prompt", async () => {
  using time = new FakeTime();
  using deleted = spy(Map.prototype, "delete");
  const { ask } = limited();
  for (const user of ["a", "b", "c", "d"]) {
    await ask(user);
    time.tick(4_000);
  }
  time.tick(10_000);
  await ask("e");
  const users = deleted.calls.map(({ args: [key] }) => key).filter((key) => /^[a-e]$/.test(String(key)));
  const [forgotten, later] = [["a"], ["b", "c", "d"]]; // each prompt moves its key to the end, so it deletes it too
  assertEquals(users, ["a", "b", "c", ...forgotten, "d", ...later, "e"]);
});

Deno.test("rateLimit() throws for an invalid limit or window", () => {
  const per = () => "all";
  for (const limit of [0, 1.5, NaN, Infinity]) {
    assertThrows(
      () => rateLimit({ per, limit, window: 1 }),
      RangeError,
      `Cannot create rateLimit(): \`limit\` is ${limit}; expected a whole number of 1 or more`,
    );
  }
  for (const window of [0, -1, NaN]) {
    assertThrows(
      () => rateLimit({ per, limit: 1, window }),
      RangeError,
      `Cannot create rateLimit(): \`window\` is ${window}; expected a positive number of milliseconds`,
    );
  }
});

Deno.test("rateLimit() obeys the laws of middleware", async () => {
  await testMiddleware(() => rateLimit({ per: () => "all", limit: 1_000, window: 1_000 }));
});

const per = ({ vars }: Scope<Vars>) => vars.user;

/** Creates the agent of one process, which accepts `limit` prompts of a user in ten seconds, and a function that sends a prompt. */
function limitedBy(keyValue: KeyValue, limit = 2) {
  const use = [rateLimit({ per, limit, window: 10_000, keyValue })];
  const assistant = agent({ model: scripted(...Array(200).fill("Hello!")), use });
  return async (user: string) => {
    const { status, reason } = await assistant.run({ prompt: "Hi", vars: { user } }).result;
    return reason ?? status;
  };
}

Deno.test("rateLimit() with a database counts the prompts of all processes", async () => {
  using time = new FakeTime(1_000_000);
  const keyValue = memoryKeyValue();
  const [one, two] = [limitedBy(keyValue), limitedBy(keyValue)];
  assertEquals([await one("Ada"), await two("Ada")], ["done", "done"]);
  time.tick(2_500);
  const refusal = "Too many requests: try again in 9 s.";
  assertEquals([await one("Ada"), await two("Ada"), await two("Bob")], [refusal, refusal, "done"]);
  time.tick(8_499);
  assertEquals(await two("Ada"), "Too many requests: try again in 1 s.");
  time.tick(1);
  assertEquals([await two("Ada"), await one("Ada")], ["done", "done"]);
  assertEquals(await two("Ada"), "Too many requests: try again in 11 s.");
});

Deno.test("rateLimit() with a database never accepts more prompts in a window than its limit", async () => {
  using time = new FakeTime(1_000_000);
  const keyValue = memoryKeyValue();
  const processes = [limitedBy(keyValue, 5), limitedBy(keyValue, 5), limitedBy(keyValue, 5)];
  const accepted: number[] = [];
  for (let step = 0; step < 60; step++) {
    const answers = await Promise.all(processes.map((ask) => ask("Ada")));
    accepted.push(...answers.filter((answer) => answer === "done").map(() => Date.now()));
    time.tick(737);
  }
  const most = Math.max(...accepted.map((at) => accepted.filter((other) => other >= at && other < at + 10_000).length));
  assertEquals(most, 5);
  const idle = accepted.slice(5).map((at, index) => at - (accepted[index] ?? 0));
  assertEquals(idle.filter((ms) => ms > 11_000 + 737), []); // a slice and a step longer than the window
});

Deno.test("rateLimit() with a database forgets a user's counters", async () => {
  using time = new FakeTime(1_000_000);
  const created: string[] = [];
  const values = memoryKeyValue();
  const increment: KeyValue["increment"] = (key, options) => {
    created.push(key);
    return values.increment(key, options);
  };
  await limitedBy({ ...values, increment })("Ada");
  time.tick(22_000);
  assertEquals(await Promise.all(created.map((key) => values.get(key))), [undefined]);
});

Deno.test("callRate() with a database counts the calls of all processes", async () => {
  using _ = new FakeTime(1_000_000);
  const search = tool({ name: "search", description: "Searches", input: z.object({}), execute: () => "found" });
  const keyValue = memoryKeyValue();
  const statuses: string[] = [];
  for (let process = 0; process < 3; process++) {
    const use = [callRate({ limit: 2, window: 60_000, keyValue })];
    const model = scripted({ calls: [["search", {}]] }, "Done.");
    const { messages } = await agent({ model, tools: [search], use }).run("Search").result;
    for (const message of messages) {
      if (message.role === "tool") statuses.push(...message.results.map(({ status }) => status));
    }
  }
  assertEquals(statuses, ["ok", "ok", "skipped"]);
});

Deno.test("rateLimit() fails the run if the database fails", async () => {
  const failing: KeyValue = { ...memoryKeyValue(), increment: () => Promise.reject(new Error("connection refused")) };
  const errors: unknown[] = [];
  const use = [rateLimit({ per: () => "all", limit: 2, window: 10_000, keyValue: failing })];
  const onError = (error: unknown) => errors.push(error);
  const { status } = await agent({ model: scripted("Hello!"), use }).run({ prompt: "Hi", onError }).result;
  assertEquals([status, errors.map(String)], ["failed", ["Error: connection refused"]]);
});

Deno.test("rateLimit() and callRate() check their bounds with a database too", () => {
  const keyValue = memoryKeyValue();
  assertThrows(() => rateLimit({ per, limit: 0, window: 1, keyValue }), RangeError, "Cannot create rateLimit()");
  assertThrows(() => callRate({ limit: 1, window: 0, keyValue }), RangeError, "Cannot create callRate()");
});

Deno.test("rateLimit() and callRate() with a database keep the laws of middleware", async () => {
  const options = { limit: 1_000, window: 60_000 };
  await testMiddleware(() => rateLimit({ per: () => "all", ...options, keyValue: memoryKeyValue() }));
  await testMiddleware(() => callRate({ ...options, keyValue: memoryKeyValue() }));
});
