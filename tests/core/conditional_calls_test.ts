import { allow, type Middleware, text, textOf, type ToolContext, type ToolResult } from "@jizai/jizai";
import { onlyIf } from "@jizai/jizai/kit";
import { assertEquals } from "@std/assert";
import { batch, call, runBatch, three, weather } from "../support/batch.ts";

/** A guard that edits the input of every call once. */
const edits: Middleware = {
  name: "edits",
  approval: (ctx, next) => ctx.input === ctx.call.input ? Promise.resolve(allow({ input: { city: "Nara" } })) : next(),
};

/** Logs how calls pass, if `applies` returns true. */
function watchIf(applies: (ctx: ToolContext) => boolean | Promise<boolean>, log: string[]): Middleware {
  return {
    name: "watch",
    tool: onlyIf(async ({ call, input }, next) => {
      log.push(`in ${call.id} ${JSON.stringify(input)}`);
      try {
        const result = await next();
        log.push(`out ${call.id} ${textOf(result)}`);
        return result;
      } catch (error) {
        log.push(String(error));
        throw error;
      }
    }, applies),
  };
}

/** A middleware that reviews results: all of them, or those with a text. */
function reviews(
  act: (ctx: ToolContext, result: ToolResult) => ToolResult | Promise<ToolResult>,
  wanted?: string,
): Middleware {
  return {
    name: "reviews",
    async tool(ctx, next) {
      const result = await next();
      return wanted === undefined || textOf(result) === wanted ? await act(ctx, result) : result;
    },
  };
}

const cheers = reviews((_, result) => text(`${textOf(result)}!`));

Deno.test("a hook that applies only to edited calls is open in the second pass of a call", async () => {
  const log: string[] = [];
  const { lines } = await runBatch([call("a")], { use: [cheers, watchIf((ctx) => ctx.edited, log), edits] });
  assertEquals(log, ['in a {"city":"Nara"}', "out a sun in Nara"]);
  assertEquals(lines.slice(1), ["ok sun in Nara!", "assistant Done."]);
});

Deno.test("a hook that applies only to unedited calls is left when a guard edits a call", async () => {
  const log: string[] = [];
  const { lines } = await runBatch([call("a")], { use: [cheers, watchIf((ctx) => !ctx.edited, log), edits] });
  assertEquals(log, ['in a {"city":"a"}', "Paused: The call a waits for an answer"]);
  assertEquals(lines.slice(1), ["ok sun in Nara!", "assistant Done."]);
});

Deno.test("the answer of a hook to a call that is edited then does not count if the second pass fails", async () => {
  const answers: Middleware = {
    name: "answers",
    tool: onlyIf((_, next) => next().catch(() => text("The answer.")), (ctx) => !ctx.edited),
  };
  const fails: Middleware = {
    name: "fails",
    tool: onlyIf(() => Promise.reject(new Error("broken")), (ctx) => ctx.edited),
  };
  const { lines, result } = await runBatch([call("a")], { use: [answers, fails, edits] });
  assertEquals(lines.slice(1), ["error Withheld: a hook failed."]);
  assertEquals(result.status, "failed");
});

for (const applies of [(id: string) => id !== "b", async (id: string) => await Promise.resolve(id !== "b")]) {
  const decided = applies.constructor === Function ? "at once" : "later";

  Deno.test(`calls leave in the model's order, with open hooks or without, which is decided ${decided}`, async () => {
    const log: string[] = [];
    const notes = reviews(({ call }, result) => {
      log.push(`review ${call.id}`);
      return result;
    });
    const { lines } = await runBatch(three, { use: [watchIf(({ call }) => applies(call.id), log), notes] });
    assertEquals(log, [
      ...['in a {"city":"a"}', 'in c {"city":"c"}'],
      ...["review a", "out a sun in a", "review b", "review c", "out c sun in c"],
    ]);
    assertEquals(lines.slice(1), ["ok sun in a", "ok sun in b", "ok sun in c", "assistant Done."]);
  });
}

Deno.test("a review that pauses the run receives the same result when the run continues", async () => {
  const log: string[] = [];
  const confirms = reviews(({ run }, result) => {
    if (run.answers.length === 0) throw run.pause("Send it?");
    log.push(`sent ${textOf(result)}`);
    return result;
  });
  const work = weather(({ city }) => {
    log.push(`work ${city}`);
    return "done";
  });
  const started = batch([call("a")], { tools: [work], use: [confirms] });
  const { result } = await started.run().outcome;
  assertEquals([result.status, result.questions.map(({ questions }) => questions)], ["paused", [["Send it?"]]]);
  const { lines } = await started.resume(result.session, [{ type: "reply", text: "yes" }]).outcome;
  assertEquals(log, ["work a", "sent done"]);
  assertEquals(lines.slice(1), ["ok done", "assistant Done."]);
});

Deno.test("a review that throws withholds the result of its call, and the other calls leave", async () => {
  const fails = reviews(() => {
    throw new Error("broken");
  }, "sun in b");
  const failed = await runBatch(three, { use: [cheers, fails] });
  assertEquals(failed.lines.slice(1), ["ok sun in a!", "error Withheld: a hook failed.", "ok sun in c!"]);
  assertEquals([failed.result.status, failed.errors.map(String)], ["failed", ["Error: broken"]]);
  const ends = reviews(({ run }) => {
    throw run.end("enough");
  }, "sun in b");
  const ended = await runBatch(three, { use: [cheers, ends] });
  assertEquals(ended.lines.slice(1), ["ok sun in a!", "error Withheld: enough.", "ok sun in c!"]);
  assertEquals([ended.result.status, ended.result.reason], ["cancelled", "enough"]);
});
