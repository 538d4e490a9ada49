/**
 * The decisions of `error` hooks: one that is none never leaves a run waiting.
 *
 * @module
 */
import { agent, tool, tryAgain } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";

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
