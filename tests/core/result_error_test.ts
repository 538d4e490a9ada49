/**
 * The thrown value on the result of a failed call, and the decisions of `error` hooks.
 */
import {
  agent,
  failed,
  memory,
  type Message,
  type Middleware,
  tool,
  ToolError,
  type ToolResult,
  tryAgain,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";

const thrown = Object.assign(new Error("the password is hunter2"), { retry: () => "not JSON" });

const charge = tool({
  name: "charge",
  description: "Charges a card",
  input: z.object({}),
  execute() {
    throw thrown;
  },
});

function resultsOf(messages: readonly Message[]) {
  return messages.flatMap((message) => message.role === "tool" ? message.results : []);
}

/** Runs one call of `charge`. Returns the result that the `tool` hook saw, and the run. */
async function chargeOnce(use: readonly Middleware[] = []) {
  const seen: ToolResult[] = [];
  const observer: Middleware = {
    name: "observer",
    async tool(_, next) {
      const result = await next();
      seen.push(result);
      return { ...result, context: ["It failed."] };
    },
  };
  const store = memory();
  const handle = agent({
    model: scripted({ calls: [["charge", {}]] }, "Sorry."),
    tools: [charge],
    use: [observer, ...use],
  }).run({ prompt: "Charge me", session: "s", store });
  const events = await Array.fromAsync(handle.events);
  return { seen, events, result: await handle.result, stored: await store.load("s") };
}

Deno.test("a tool hook finds the thrown value on the result", async () => {
  const { seen } = await chargeOnce();
  assertEquals(seen.length, 1);
  assertStrictEquals(seen[0]?.error, thrown);
  assertEquals(seen[0]?.parts, [{ type: "text", text: "charge failed." }]);
});

Deno.test("the transcript, the store and the events do not contain the thrown value", async () => {
  const { result, stored, events } = await chargeOnce();
  assertEquals(result.status, "done");
  assertEquals(resultsOf(result.messages).map((each) => Object.keys(each)), [["callId", "name", "status", "parts"]]);
  for (const data of [result.messages, stored, events]) assertEquals(JSON.stringify(data).includes("hunter2"), false);
  const finished = events.find((event) => event.type === "tool.finished");
  assertEquals(finished && Object.keys(finished.result), ["callId", "name", "status", "parts"]);
});

Deno.test("a call that a hook paused after next() keeps its failure and loses the thrown value", async () => {
  const errors: unknown[] = [];
  const pausing: Middleware = {
    name: "pausing",
    async tool(ctx, next) {
      const result = await next();
      errors.push(result.error);
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Go on?");
      return result;
    },
  };
  const store = memory();
  const cashier = agent({ model: scripted({ calls: [["charge", {}]] }, "Sorry."), tools: [charge], use: [pausing] });
  const { status } = await cashier.run({ prompt: "Charge me", session: "s", store }).result;
  assertEquals(status, "paused");
  assertEquals(JSON.stringify(await store.load("s")).includes("hunter2"), false);
  const resumed = await cashier.resume({ session: "s", store, answers: [{ type: "reply", text: "yes" }] }).result;
  assertEquals(resumed.status, "done");
  assertEquals(resultsOf(resumed.messages).map(({ status }) => status), ["error"]);
  assertEquals(errors, [thrown, undefined]);
});

Deno.test("a failed result that a tool returned, or an execute hook made, has no thrown value", async () => {
  const recover: Middleware = {
    name: "recover",
    async execute(_, next) {
      try {
        return await next();
      } catch {
        return failed("The card was declined.");
      }
    },
  };
  const { seen } = await chargeOnce([recover]);
  assertEquals(seen.map(({ status, error }) => [status, error]), [["error", undefined]]);
});

Deno.test("an error that an execute hook throws replaces the tool's error on the result", async () => {
  const translated = new ToolError("The card was declined.");
  const translate: Middleware = {
    name: "translate",
    async execute(_, next) {
      try {
        return await next();
      } catch {
        throw translated;
      }
    },
  };
  const { seen } = await chargeOnce([translate]);
  assertStrictEquals(seen[0]?.error, translated);
  assertEquals(seen[0]?.parts, [{ type: "text", text: "The card was declined." }]);
});

// The decisions of `error` hooks: one that is none never leaves a run waiting.

const noDecision = 'TypeError: Cannot leave error: "mine" returned no tryAgain(), skip() or abortRun()';
const noTime = (after: unknown) =>
  `RangeError: Cannot try again: "mine" returned \`after: ${after}\`; expected milliseconds below ${2 ** 31}`;

const wrong: readonly (readonly [unknown, string])[] = [
  [null, noDecision],
  ["retry", noDecision],
  [true, noDecision],
  [{ type: "again" }, noDecision],
  [{ type: "retry" }, noTime(undefined)],
  [tryAgain({ after: NaN }), noTime(NaN)],
  [tryAgain({ after: Infinity }), noTime(Infinity)],
  [tryAgain({ after: 1e12 }), noTime(1e12)],
];

for (const [decision, complaint] of wrong) {
  const answer = Deno.inspect(decision);

  Deno.test(`an error hook that returns ${answer} is named in an error, and the failure ends the run`, async () => {
    const model = scripted({ error: new Error("first") }, "Hello!");
    const errors: string[] = [];
    const use = [{ name: "mine", error: () => Promise.resolve(decision as never) }]; // as code without types answers
    const run = agent({ model, use }).run({ prompt: "Hi", onError: (error) => errors.push(String(error)) });
    assertEquals((await run.result).status, "failed");
    assertEquals([model.requests.length, errors], [1, [complaint, "Error: first"]]);
  });

  Deno.test(`an error hook that returns ${answer} for a failed tool is named in an error, and the model reads on`, async () => {
    const look = tool({
      name: "look",
      description: "Looks",
      input: z.object({}),
      execute: () => Promise.reject(new Error("first")),
    });
    const model = scripted({ calls: [["look", {}]] }, "Hello!");
    const errors: string[] = [];
    const use = [{ name: "mine", error: () => Promise.resolve(decision as never) }]; // as code without types answers
    const run = agent({ model, tools: [look], use })
      .run({ prompt: "Hi", onError: (error) => errors.push(String(error)) });
    const { status, text } = await run.result;
    assertEquals([status, text, errors], ["done", "Hello!", [complaint, "Error: first"]]);
  });
}

Deno.test("an error hook may name a time that has passed, and the run tries again at once", async () => {
  using time = new FakeTime();
  const model = scripted({ error: new Error("first") }, "Hello!");
  const use = [{ error: () => Promise.resolve(tryAgain({ after: -5 })) }];
  const run = agent({ model, use }).run({ prompt: "Hi", onError: () => {} });
  await time.tickAsync(0);
  assertEquals([(await run.result).text, model.requests.length], ["Hello!", 2]);
});
