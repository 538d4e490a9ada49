import { agent, type Scope, tool } from "@jizai/jizai";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { scripted } from "@jizai/jizai/model/scripted";
import { type KeyValue, memoryKeyValue } from "@jizai/jizai/session/key_value";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";

interface Vars {
  readonly user: string;
}

const per = ({ vars }: Scope<Vars>) => vars.user;

/** Creates the agent of one process, which accepts `limit` prompts of a user in ten seconds, and a function that sends a prompt. */
function limited(keyValue: KeyValue, limit = 2) {
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
  const [one, two] = [limited(keyValue), limited(keyValue)];
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
  const processes = [limited(keyValue, 5), limited(keyValue, 5), limited(keyValue, 5)];
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
  await limited({ ...values, increment })("Ada");
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
