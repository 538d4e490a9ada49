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

/** An agent that anybody may ask twice in ten seconds, and a way to ask it. */
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

Deno.test("rateLimit() cancels what is too much, without asking the model, and says when to come back", async () => {
  using time = new FakeTime();
  const { ask, model } = limited();
  assertEquals([await ask("Ada"), await ask("Ada")], ["done", "done"]);
  time.tick(2_500);
  assertEquals(await ask("Ada"), "Too many requests: try again in 8 s.");
  assertEquals(model.requests.length, 2);
});

Deno.test("rateLimit() slides: each prompt counts for one window, to the millisecond", async () => {
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

Deno.test("rateLimit() counts every key for itself", async () => {
  using _ = new FakeTime();
  const { ask } = limited();
  const answers = [];
  for (const user of ["Ada", "Bob", "Ada", "Ada", "Bob", "Bob"]) answers.push(await ask(user));
  const refusal = "Too many requests: try again in 10 s.";
  assertEquals(answers, ["done", "done", "done", refusal, "done", refusal]);
});

Deno.test("rateLimit() does not count what it refused", async () => {
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

Deno.test("rateLimit() counts a prompt that is refused or fails beneath it", async () => {
  using _ = new FakeTime();
  const no: Middleware = { name: "no", prompt: () => Promise.resolve(cancelled("No.")) };
  const refusing = limited({ use: [no] });
  assertEquals([await refusing.ask("Ada"), await refusing.ask("Ada")], ["No.", "No."]);
  assertEquals(await refusing.ask("Ada"), "Too many requests: try again in 10 s.");
  const failing = limited({ steps: [{ error: new Error("down") }, { error: new Error("down") }] });
  assertEquals([await failing.ask("Ada"), await failing.ask("Ada")], ["failure", "failure"]);
  assertEquals(await failing.ask("Ada"), "Too many requests: try again in 10 s.");
});

Deno.test("rateLimit() lets no more in when they come at once", async () => {
  using _ = new FakeTime();
  const { ask } = limited();
  const refusal = "Too many requests: try again in 10 s.";
  assertEquals(await Promise.all(["Ada", "Ada", "Ada", "Ada"].map(ask)), ["done", "done", refusal, refusal]);
});

Deno.test("rateLimit() counts a run that was paused and resumed once", async () => {
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

Deno.test("rateLimit() forgets keys one window after their last prompt", async () => {
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

Deno.test("rateLimit() refuses a limit or a window that means nothing", () => {
  const per = () => "all";
  for (const limit of [0, 1.5, NaN, Infinity]) {
    assertThrows(
      () => rateLimit({ per, limit, window: 1 }),
      RangeError,
      `Cannot limit a rate to ${limit} runs: expected a whole number of 1 or more`,
    );
  }
  for (const window of [0, -1, NaN]) {
    assertThrows(
      () => rateLimit({ per, limit: 1, window }),
      RangeError,
      `Cannot limit a rate over ${window} ms: expected more than 0`,
    );
  }
});

Deno.test("rateLimit() keeps the laws of a middleware", async () => {
  await testMiddleware(() => rateLimit({ per: () => "all", limit: 1_000, window: 1_000 }));
});
