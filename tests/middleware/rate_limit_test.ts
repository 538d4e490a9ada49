import { agent, cancelled, type Middleware, type Scope } from "@jizai/jizai";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";

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
