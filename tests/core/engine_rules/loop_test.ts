import { agent, continueWith, type Middleware, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { batch, call, drop, weather } from "../../support/batch.ts";
import { lines } from "../../support/transcript_lines.ts";

Deno.test("Engine: a stop hook that always continues sees the count and is limited", async () => {
  const seen: string[] = [];
  const model = scripted("1", "2", "3", "4");
  const tireless: Middleware = {
    name: "tireless",
    stop(ctx) {
      seen.push(`${ctx.continuations} of ${ctx.limit}`);
      return Promise.resolve(continueWith("more"));
    },
  };
  const { status, reason, text } = await agent({ model, use: [tireless], limits: { continuations: 3 } }).run("Hi")
    .result;
  assertEquals(seen, ["0 of 3", "1 of 3", "2 of 3", "3 of 3"]);
  assertEquals([status, reason, text], ["limit", "continuations", "4"]);
  model.done();
});

Deno.test("Engine: continuations count as turns, so the limit of turns bounds them", async () => {
  const tireless: Middleware = { name: "tireless", stop: () => Promise.resolve(continueWith("more")) };
  const model = scripted("1", "2");
  const { status, reason } = await agent({ model, use: [tireless], limits: { turns: 2 } }).run("Hi").result;
  assertEquals([status, reason], ["limit", "turns"]);
});

Deno.test("Engine: a batch of calls resets the count of continuations", async () => {
  const seen: number[] = [];
  const model = scripted("1", { calls: [call("a")] }, "2", "3");
  const some: Middleware = {
    name: "some",
    async stop(ctx, next) {
      seen.push(ctx.continuations);
      return seen.length < 3 ? continueWith("more") : await next();
    },
  };
  await agent({ model, tools: [weather()], use: [some] }).run("Hi").result;
  assertEquals(seen, [0, 0, 1]);
});

Deno.test("Engine: stop runs for an answer without calls, never between batches", async () => {
  const log: string[] = [];
  const model = scripted({ text: "Let me see.", calls: [call("a")] }, { calls: [call("b")] }, "Done.");
  const look: Middleware = {
    name: "look",
    turn(ctx, next) {
      log.push(`turn ${ctx.index}`);
      return next();
    },
    stop(ctx, next) {
      log.push(`stop ${lines([ctx.message])}`);
      return next();
    },
  };
  await agent({ model, tools: [weather()], use: [look] }).run("Hi").result;
  assertEquals(log, ["turn 1", "turn 2", "turn 3", "stop assistant Done."]);
});

Deno.test("Engine: a prompt enters once; in a resumed run its changes are ignored", async () => {
  const log: string[] = [];
  const started = batch([call("a", { name: "drop" })], {
    tools: [drop()],
    use: [{
      name: "look",
      async prompt(ctx, next) {
        log.push(`prompt ${ctx.resumed} ${lines([ctx.prompt])}`);
        return await next({ prompt: user(`${log.length}`), context: [`context ${log.length}`] });
      },
      model(ctx, next) {
        log.push(`model ${ctx.turn}`);
        return next();
      },
    }],
  });
  const first = await started.run().outcome;
  const second = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(log, ["prompt false user Hi", "model 1", "prompt true user 1", "model 2"]);
  assertEquals(lines(second.result.messages), [
    "user 1",
    "prompt context 1",
    "call drop",
    "ok dropped a",
    "assistant Done.",
  ]);
  const prompts = [...first.events, ...second.events].filter(({ type }) => type === "prompt.accepted");
  assertEquals(prompts.length, 1);
});

Deno.test("Engine: additions to one request or one turn are not in the next", async () => {
  const model = scripted({ calls: [call("a")] }, "Done.");
  const adds: Middleware = {
    name: "adds",
    turn: (ctx, next) => next({ context: [`turn ${ctx.index}`] }),
    model: (ctx, next) => next({ request: { messages: [...ctx.request.messages, user(`request ${ctx.turn}`)] } }),
  };
  const { messages } = await agent({ model, tools: [weather()], use: [adds] }).run("Hi").result;
  assertEquals(model.requests.map((request) => lines(request.messages)), [
    ["user Hi", "turn turn 1", "user request 1"],
    ["user Hi", "call weather", "ok sun in a", "turn turn 2", "user request 2"],
  ]);
  assertEquals(lines(messages), ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
});
